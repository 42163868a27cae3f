//! Transfers with an erasure code, both ways at once, and what somebody on the path may do to its segments.
#![allow(missing_docs, unreachable_pub)]

pub mod hostile;

use base::wire::tcp::coding::Coding;
use base::wire::tcp::{Flags, View};
use base::wire::{ip, tcp};
use base::{Duration, Rng};
use longhaul_tcp::{Event, FecStatistics, RepairStatistics, TcpConfig};

use crate::pair::{Pair, Path};

pub const PRESETS: [&str; 2] = ["lt-tcp", "lt-tcp-plus"];

/// A preset that gives up late, for paths that lose half of everything.
pub fn patient(preset: &str) -> TcpConfig {
    TcpConfig::preset(preset).unwrap().with(|it| {
        (it.limits.data_retries, it.limits.syn_retries) = (1000, 1000);
        it.rto.max = Duration::from_secs(4);
        it.limits.time_wait = Duration::from_secs(1);
    })
}

pub fn hours(hours: u64) -> Duration {
    Duration::from_secs(3600 * hours)
}

/// A packet's segment and its data.
pub fn parse(packet: &[u8]) -> (tcp::Repr, Vec<u8>) {
    let header = ip::View::parse(packet).unwrap();
    let segment = View::parse(header.payload()).unwrap();
    (tcp::Repr::parse_verified(&segment), segment.payload().to_vec())
}

/// The packet with another segment, and a checksum that fits.
pub fn rewrite(packet: &[u8], change: impl FnOnce(&mut tcp::Repr, &mut Vec<u8>)) -> Vec<u8> {
    let header = ip::View::parse(packet).unwrap();
    let (mut repr, mut data) = parse(packet);
    change(&mut repr, &mut data);
    let (src, dst, len) = (header.src(), header.dst(), repr.header_len());
    let header = ip::Repr::new(src, dst, ip::Protocol::TCP, header.ecn(), len + data.len());
    let at = header.header_len();
    let mut out = vec![0; at + len];
    header.emit(&mut out);
    out.extend_from_slice(&data);
    repr.emit(&mut out[at..], src, dst);
    out
}

pub fn is_repair(packet: &[u8]) -> bool {
    parse(packet).0.options.coding.repair.is_some()
}

pub fn is_syn(packet: &[u8]) -> bool {
    parse(packet).0.flags.has(Flags::SYN)
}

pub fn strip(packet: &[u8]) -> Vec<u8> {
    rewrite(packet, |repr, _| repr.options.coding = Coding::default())
}

/// What both ends counted, the client first.
pub type Counts = [Option<Counted>; 2];

/// Of blocks that an end sent, and of those that it received.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    pub sent: FecStatistics,
    pub received: RepairStatistics,
}

/// Both ends send so many bytes and finish: all of it has come, and after that both fall silent.
#[track_caller]
pub fn exchange(
    (client, server): (&TcpConfig, &TcpConfig),
    (path, seed): (Path, u64),
    bytes: [u64; 2],
    setup: impl FnOnce(&mut Pair),
) -> (Pair, Counts) {
    let mut pair = Pair::new(seed, path, server);
    setup(&mut pair);
    pair.connect(client);
    for (end, bytes) in pair.ends.iter_mut().zip(bytes) {
        (end.to_send, end.finish) = (bytes, true);
    }
    pair.drain();
    let mut counts = Counts::default();
    let done = |pair: &Pair| (0..2).all(|side| pair.saw(side, Event::PeerFinished));
    let ended = pair.run_until(hours(48), |pair| {
        for (side, counts) in counts.iter_mut().enumerate() {
            let connection = pair.ends[side].id.and_then(|id| pair.hosts[side].connection(id));
            let halves = connection.and_then(|it| it.fec_statistics().zip(it.repair_statistics()));
            if let Some((&sent, &received)) = halves {
                *counts = Some(Counted { sent, received });
            }
        }
        done(pair)
    });
    let came = [pair.ends[1].received, pair.ends[0].received];
    assert!(
        ended,
        "{came:?} of {bytes:?} at {:?}: {:?}",
        pair.now,
        pair.ends.each_ref().map(|it| &it.events)
    );
    assert_eq!(came, bytes);
    assert!(pair.ends.iter().all(|end| !end.corrupt), "the stream is corrupt");
    expect_silence(&mut pair);
    (pair, counts)
}

/// Nothing wakes the hosts for ever.
#[track_caller]
pub fn expect_silence(pair: &mut Pair) {
    let steps = (0..100_000).take_while(|_| pair.step()).count();
    assert!(steps < 100_000, "the hosts do not fall silent");
}

/// Flips a bit of what follows the first `from` bytes of a packet's TCP header, up to `to`, and mends the checksum.
pub fn flip(packet: &[u8], (from, to): (usize, usize), rng: &mut Rng) -> Vec<u8> {
    let header = ip::View::parse(packet).unwrap();
    let (src, dst) = (header.src(), header.dst());
    let mut out = packet.to_vec();
    let bit = rng.below((to - from) as u64 * 8) as usize + from * 8;
    let at = packet.len() - header.payload().len();
    out[at + bit / 8] ^= 1 << (bit % 8);
    let segment = &mut out[at..];
    segment[16..18].fill(0);
    let sum = base::wire::checksum::Sum::pseudo_header(src, dst, 6, segment.len())
        .and(base::wire::checksum::Sum::of(segment))
        .finish();
    segment[16..18].copy_from_slice(&sum.to_be_bytes());
    out
}

/// Bytes of a packet's TCP header, and of its whole segment.
pub fn lengths(packet: &[u8]) -> (usize, usize) {
    let header = ip::View::parse(packet).unwrap();
    let segment = View::parse(header.payload()).unwrap();
    (segment.header_len(), header.payload().len())
}
