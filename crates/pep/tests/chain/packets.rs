//! Packets made by hand, for a proxy alone.

use base::wire::ip::{self, Ecn, Protocol};
use base::wire::tcp::{Flags, Options, Repr, View};
use base::{Instant, Packet, SeqNum};
use longhaul_pep::{Proxy, Side, Verdict};

use super::{CLIENT, SERVER, address};

pub const NOW: Instant = Instant::ZERO;

pub fn packet(protocol: Protocol, payload: &[u8]) -> Vec<u8> {
    let header = ip::Repr::new(address(CLIENT), address(SERVER), protocol, Ecn::NotEct, payload.len());
    let mut packet = vec![0; header.header_len()];
    header.emit(&mut packet);
    packet.extend_from_slice(payload);
    packet
}

/// A segment, in an IP packet.
pub fn segment((src, dst): (&str, &str), repr: &Repr, data: &[u8]) -> Vec<u8> {
    let (src, dst) = (address(src), address(dst));
    let len = repr.header_len() + data.len();
    let header = ip::Repr::new(src, dst, Protocol::TCP, Ecn::NotEct, len);
    let mut packet = vec![0; header.header_len() + repr.header_len()];
    header.emit(&mut packet);
    packet.extend_from_slice(data);
    repr.emit(&mut packet[header.header_len()..], src, dst);
    packet
}

/// A header without options: ports, numbers and flags.
pub fn header((src_port, dst_port): (u16, u16), seq: SeqNum, ack: SeqNum, flags: Flags) -> Repr {
    Repr { src_port, dst_port, seq, ack, flags, window: 65_535, urgent: 0, options: Options::default() }
}

/// A SYN from `port` of the client, or of another host, to port 80 of the server.
pub fn syn(from: &str, port: u16, options: Options) -> Vec<u8> {
    let to = if from.contains(':') { "2001:db8::7" } else { SERVER };
    let repr = Repr { options, ..header((port, 80), SeqNum(1000), SeqNum(0), Flags::SYN) };
    segment((from, to), &repr, &[])
}

pub fn plain_syn(port: u16) -> Vec<u8> {
    syn(CLIENT, port, Options { mss: Some(1460), ..Options::default() })
}

pub fn sent(proxy: &mut Proxy, to: Side) -> Vec<Packet> {
    core::iter::from_fn(|| proxy.poll_transmit(NOW, to)).collect()
}

/// A SYN reaches the proxy.
pub fn call(proxy: &mut Proxy, now: Instant, side: Side, from: &str, port: u16) -> Verdict {
    let options = Options { mss: Some(1460), ..Options::default() };
    proxy.handle_packet(now, side, &mut syn(from, port, options))
}

/// Completes a connection of a host to a server that is there; the proxy's next number towards the link, if it splits it.
pub fn open(proxy: &mut Proxy, now: Instant, from: &str, port: u16) -> Option<SeqNum> {
    if call(proxy, now, Side::Lan, from, port) != Verdict::Taken {
        return None;
    }
    let next = |proxy: &mut Proxy, side| proxy.poll_transmit(now, side).unwrap();
    let seq = |packet: &[u8]| View::parse(&packet[20..]).unwrap().seq();
    let asked = seq(&next(proxy, Side::Link)) + 1;
    let answer = header((80, port), SeqNum(7), asked, Flags::SYN | Flags::ACK);
    let mut answer = segment((SERVER, from), &answer, &[]);
    assert_eq!(proxy.handle_packet(now, Side::Link, &mut answer), Verdict::Taken);
    let answered = next(proxy, Side::Lan);
    let ack = header((port, 80), SeqNum(1001), seq(&answered) + 1, Flags::ACK);
    let mut ack = segment((from, SERVER), &ack, &[]);
    assert_eq!(proxy.handle_packet(now, Side::Lan, &mut ack), Verdict::Taken);
    for side in Side::ALL {
        while proxy.poll_transmit(now, side).is_some() {}
    }
    Some(asked)
}

/// Completes connections of a host to a server that is there, from `ports` on; how many of them were split.
pub fn establish(proxy: &mut Proxy, now: Instant, from: &str, ports: core::ops::Range<u16>) -> usize {
    ports.filter(|&port| open(proxy, now, from, port).is_some()).count()
}
