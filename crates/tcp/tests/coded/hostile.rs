//! Two hosts that code, and somebody between who loses, repeats, reorders and strips segments, changes what they say of blocks and
//! forges repairs, as `bytes` tell. The fuzz target `tcp_coding` runs this too.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use base::units::Size;
use base::wire::tcp::coding::{Coding, Place, Repair, Report};
use base::wire::tcp::{Flags, View};
use base::wire::{ip, tcp};
use base::{Duration, Instant, Packet, Rng, SeqNum};
use longhaul_tcp::{ConnectionId, Event, Host, TcpConfig};

/// Bytes that each end sends.
const STREAM: u64 = 30_000;
/// Steps after the last fate: time-outs of up to two seconds, many of them.
const AFTER: usize = 200_000;
const LIMIT: usize = 80_000;

/// What is left of the fates; zeros follow.
struct Fates<'a>(&'a [u8]);

impl Fates<'_> {
    fn next(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    fn word(&mut self) -> u16 {
        u16::from_be_bytes([self.next(), self.next()])
    }
}

struct End {
    host: Host,
    id: Option<ConnectionId>,
    sent: u64,
    received: u64,
}

fn byte_at(from: usize, position: u64) -> u8 {
    (position.wrapping_add(from as u64 * 77).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

impl End {
    /// The application writes and reads; what it reads is the other's stream.
    fn act(&mut self, now: Instant, side: usize) {
        while let Some((id, event)) = self.host.poll_event() {
            assert!(!matches!(event, Event::Failed(_)), "{event:?}");
            self.id = Some(id);
        }
        let Some(id) = self.id else { return };
        let position = &mut self.sent;
        let left = (STREAM - *position) as usize;
        let fill = |out: &mut [u8]| {
            for byte in out {
                *byte = byte_at(side, *position);
                *position += 1;
            }
        };
        let _ = self.host.write_with(now, id, left, fill);
        let received = &mut self.received;
        let check = |bytes: &[u8]| {
            for &byte in bytes {
                assert_eq!(byte, byte_at(1 - side, *received), "the stream is corrupt");
                *received += 1;
            }
        };
        let _ = self.host.read_with(now, id, check);
    }
}

/// The packet, with something else said of blocks: all of it as the fates say.
fn forge(packet: &[u8], fates: &mut Fates<'_>) -> Vec<u8> {
    let header = ip::View::parse(packet).expect("a packet of ours");
    let view = View::parse(header.payload()).expect("a segment of ours");
    let (mut repr, mut data) = (tcp::Repr::parse_verified(&view), view.payload().to_vec());
    let what = fates.next();
    let coding = &mut repr.options.coding;
    let known = coding.place.unwrap_or(Place { block: 1, number: 0, sources: 10, repairs: 2, again: false });
    let mut place = known;
    if what & 1 != 0 {
        place.block = known.block.wrapping_add(fates.next() % 8).wrapping_sub(4);
    }
    if what & 2 != 0 {
        (place.sources, place.repairs) = (1 + fates.next() % 127, fates.next() % 128);
    }
    if what & 4 != 0 {
        place.number = fates.next();
    }
    let is_repair = coding.repair.is_some() || what & 8 != 0;
    repr.options.sack = tcp::SackBlocks::default();
    (coding.place, coding.report) = (Some(place), None);
    if is_repair {
        let genuine = coding.repair.unwrap_or(Repair { start: repr.seq, tail: 1, check: 0 });
        let mut repair = genuine;
        if what & 16 != 0 {
            (repair.start, repair.tail) = (repr.seq + u32::from(fates.word()) - 20_000, fates.word());
        }
        if what & 32 != 0 {
            repair.check ^= u32::from(fates.word());
        }
        if what & 64 != 0 || coding.repair.is_none() {
            data = vec![fates.next(); 1 + usize::from(fates.word() % 1400)];
            repr.seq = repr.seq - data.len() as u32 + u32::from(fates.next() % 4);
        }
        coding.repair = Some(repair);
        if let Some(place) = &mut coding.place {
            place.again = false;
        }
    } else if what & 128 != 0 {
        let mut any = || fates.next();
        coding.report =
            Some(Report { ended: [(any(), any()), (any(), any())], missing: (place.block, any()) });
    }
    repr.flags = Flags::ACK;
    emit(&header, &repr, &data)
}

fn strip(packet: &[u8]) -> Vec<u8> {
    let header = ip::View::parse(packet).expect("a packet of ours");
    let view = View::parse(header.payload()).expect("a segment of ours");
    let mut repr = tcp::Repr::parse_verified(&view);
    repr.options.coding = Coding::default();
    emit(&header, &repr, view.payload())
}

fn emit(header: &ip::View<'_>, repr: &tcp::Repr, data: &[u8]) -> Vec<u8> {
    let (src, dst, len) = (header.src(), header.dst(), repr.header_len());
    let header = ip::Repr::new(src, dst, ip::Protocol::TCP, header.ecn(), len + data.len());
    let at = header.header_len();
    let mut out = vec![0; at + len];
    header.emit(&mut out);
    out.extend_from_slice(data);
    repr.emit(&mut out[at..], src, dst);
    out
}

/// What becomes of a packet.
fn deliver(line: &mut VecDeque<Vec<u8>>, packet: &Packet, fates: &mut Fates<'_>) {
    let bytes = packet.to_vec();
    let is_syn = bytes[33] & Flags::SYN.0 != 0;
    match fates.next() % 16 {
        0..7 => line.push_back(bytes),
        // A SYN that is sent again and again says nothing of a code, and then there are no repairs to forge.
        7..10 if !is_syn => {}
        10 => line.extend([bytes.clone(), bytes]),
        11 => line.push_front(bytes),
        12 if !is_syn => line.push_back(strip(&bytes)),
        13 | 14 if !is_syn => {
            let false_one = forge(&bytes, fates);
            line.extend([false_one, bytes]);
        }
        15 if !is_syn => {
            let false_one = forge(&bytes, fates);
            line.extend([bytes, false_one]);
        }
        _ => line.push_back(bytes),
    }
}

fn hosts(setting: u8) -> [End; 2] {
    let preset = ["lt-tcp", "lt-tcp-plus"][usize::from(setting & 1)];
    let config = TcpConfig::preset(preset).expect("a preset").with(|it| {
        (it.limits.data_retries, it.limits.syn_retries) = (100_000, 100_000);
        it.rto.max = Duration::from_secs(2);
        it.initial_sequence = Some(SeqNum(0_u32.wrapping_sub(u32::from(setting) * 100)));
        if setting & 2 != 0 {
            it.window.receive_buffer = Size(4000);
        }
    });
    let address = |side: u8| IpAddr::from(Ipv4Addr::new(10, 0, 0, side + 1));
    let mut ends = [0, 1].map(|side| {
        let host = Host::new(address(side), Rng::named(u64::from(side), "hostile"));
        End { host, id: None, sent: 0, received: 0 }
    });
    if setting & 4 != 0 {
        ends.iter_mut().for_each(|end| end.host.limit_memory(LIMIT));
    }
    ends[1].host.listen(80, &config).expect("a free port");
    let remote = SocketAddr::new(address(1), 80);
    ends[0].id = Some(ends[0].host.connect(Instant::ZERO, remote, &config).expect("a free port"));
    ends
}

/// Runs the fates, and then honestly until everything has come.
#[allow(unreachable_pub, reason = "the fuzz target has it too")]
pub fn run(bytes: &[u8]) {
    let Some((&setting, rest)) = bytes.split_first() else { return };
    let mut fates = Fates(rest);
    let mut ends = hosts(setting);
    let mut lines: [VecDeque<Vec<u8>>; 2] = Default::default();
    let (mut now, mut after) = (Instant::ZERO, 0);
    while ends.iter().any(|end| end.received < STREAM) {
        after += usize::from(fates.0.is_empty());
        assert!(after < AFTER, "{:?} bytes have come", ends.each_ref().map(|end| end.received));
        now += Duration::from_millis(10);
        for side in 0..2 {
            if ends[side].host.poll_timeout().is_some_and(|due| due <= now) {
                ends[side].host.handle_timeout(now);
            }
            ends[side].act(now, side);
            while let Some(packet) = ends[side].host.poll_transmit(now) {
                deliver(&mut lines[side], &packet, &mut fates);
            }
        }
        for side in 0..2 {
            let arriving: Vec<_> = lines[1 - side].drain(..).collect();
            for packet in arriving {
                let _ = ends[side].host.handle_packet(now, &packet);
                ends[side].act(now, side);
            }
            let memory = ends[side].host.memory();
            // Buffers grow to what they are set to, and a decoder to a megabyte.
            assert!(memory <= if setting & 4 != 0 { LIMIT } else { 3 << 20 }, "{memory} bytes");
        }
    }
}
