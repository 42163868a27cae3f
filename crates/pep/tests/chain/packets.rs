//! Packets made by hand, for a proxy alone.

use base::wire::ip::{self, Ecn, Protocol};
use base::wire::tcp::{Flags, Options, Repr};
use base::{Instant, Packet, SeqNum};
use longhaul_pep::{Proxy, Side};

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
