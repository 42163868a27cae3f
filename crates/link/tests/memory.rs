//! What a peer that breaks the rules can make an endpoint hold, in bytes really allocated, and that the link goes on behind it.

mod allocations;

use allocations::{live, take_peak};
use base::{Instant, Rate};
use longhaul_link::coded::{self, Coded};
use longhaul_link::cotmll::{self, Cotmll, Wide, wide};
use longhaul_link::harq::{self, Harq};
use longhaul_link::plain::{self, Plain};
use longhaul_link::slacp::{self, Slacp};
use longhaul_link::{Endpoint, LineLimits, Treatment};

/// 1 Gbit/s with frames of an Ethernet, so that windows are as wide as they may be.
const LINE: LineLimits = LineLimits::new(1466, Some(Rate::from_bps(1_000_000_000)));
const MAX_WINDOW: u32 = 1 << 17;
const MIB: usize = 1 << 20;

/// Buffers that a thread keeps for later packets.
const POOL: usize = 22 * MIB;

/// Flags of a frame's trailer: its class, and whether it starts and ends a packet.
const RELIABLE: u8 = 1 << 5;
const REPAIR: u8 = 3 << 5;
const FIRST: u8 = 1 << 4;
const LAST: u8 = 1 << 3;

/// A frame as `arq::frame` has it, that reports nothing.
fn frame(flags: u8, sequence: u32, serial: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = payload.to_vec();
    let back = flags & FIRST != 0;
    frame.extend(back.then_some(0));
    frame.extend([flags, back.into()]);
    for number in [sequence, serial, 0, 0] {
        frame.extend_from_slice(&number.to_be_bytes()[1..]);
    }
    frame.push(0);
    frame
}

fn take(end: &mut dyn Endpoint, frame: &[u8]) -> bool {
    end.handle_frame(Instant::ZERO, frame).is_ok()
}

/// Packets that come out, and their bytes.
fn drain(end: &mut dyn Endpoint) -> (usize, usize) {
    let packets = core::iter::from_fn(|| end.poll_packet());
    packets.fold((0, 0), |(count, bytes), packet| (count + 1, bytes + packet.len()))
}

/// Sends all frames of a window but the first, of each class of `classes` (numbers behind the trailer), then the first of each; how many
/// were taken, and the most that was held.
fn fill(
    end: &mut dyn Endpoint,
    classes: &[Option<u8>],
    flags: impl Fn(u32) -> u8,
    len: usize,
) -> (u32, usize) {
    let payload = vec![0x45; len];
    let (before, mut taken) = (live(), 0);
    take_peak();
    for class in classes {
        for sequence in 1..MAX_WINDOW {
            let mut frame = frame(flags(sequence), sequence, sequence, &payload);
            frame.extend(class);
            taken += u32::from(take(end, &frame));
            // As every owner does: what waits for nothing has gone up.
            drain(end);
        }
    }
    for class in classes {
        let mut first = frame(RELIABLE | FIRST | LAST, 0, MAX_WINDOW, &payload);
        first.extend(class);
        assert!(take(end, &first), "the first that is missing always gets in");
    }
    let peak = take_peak() - before;
    assert!(drain(end).0 > 0);
    (taken, peak)
}

/// Goal: whatever its frames are, a peer takes no more than 256 MiB in all classes together, and the window moves on.
#[test]
fn frames_beyond_gaps_take_256_mib_in_all_classes_together() {
    let classes = [0, 1, 3, 4, 2].map(Some);
    for (len, flags) in [(1, RELIABLE), (1665, RELIABLE), (9000, RELIABLE | FIRST | LAST)] {
        let mut end = Coded::new(coded::Config::default(), &LINE);
        let (_, peak) = fill(&mut end, &classes, |_| flags, len);
        // Copies of what came, for sums, are limited by themselves.
        assert!(peak < 256 * MIB + 64 * MIB + POOL, "{len} bytes each: {} MiB", peak / MIB);
    }
}

/// Goal: the same of a protocol with one window.
#[test]
fn frames_beyond_a_gap_take_256_mib() {
    let ends: [Box<dyn Fn() -> Box<dyn Endpoint>>; 2] = [
        Box::new(|| Box::new(Wide::new(wide::Config::default(), &LINE))),
        Box::new(|| Box::new(Slacp::new(slacp::Config::default(), &LINE))),
    ];
    for new in ends {
        for (len, flags) in [(1, RELIABLE), (1665, RELIABLE), (60_000, RELIABLE | FIRST | LAST)] {
            let (_, peak) = fill(&mut *new(), &[None], |_| flags, len);
            assert!(peak < 256 * MIB + POOL, "{len} bytes each: {} MiB", peak / MIB);
        }
    }
}

/// Goal: an honest sender may have a whole window of ordinary frames on its way at 1 Gbit/s, the first of them lost.
#[test]
fn a_window_of_ordinary_frames_is_held_whole() {
    let whole = RELIABLE | FIRST | LAST;
    let mut coded = Coded::new(coded::Config::default(), &LINE);
    let ends: [(&mut dyn Endpoint, Option<u8>); 2] =
        [(&mut coded, Some(2)), (&mut Wide::new(wide::Config::default(), &LINE), None)];
    for (end, class) in ends {
        assert_eq!(fill(end, &[class], |_| whole, 1400).0, MAX_WINDOW - 1);
    }
}

/// Goal: packets of two frames that one frame lets go up do not each take a buffer for the longest packet.
#[test]
fn what_goes_up_at_once_takes_little_more_than_its_bytes() {
    let config = wide::Config { ordered: longhaul_link::arq::Order::Link, ..wide::Config::default() };
    let mut end = Wide::new(config, &LINE);
    let flags = |sequence: u32| RELIABLE | if sequence.is_multiple_of(2) { LAST } else { FIRST };
    let (_, peak) = fill(&mut end, &[None], flags, 1000);
    assert!(peak < 300 * MIB, "{} MiB", peak / MIB);
}

/// Goal: sums without end, with a long frame behind them that is in all of them, take no more than is said, and other traffic goes on.
#[test]
fn sums_take_23_mb_in_all_classes_together() {
    let mut end = Coded::new(coded::Config::default(), &LINE);
    let before = live();
    take_peak();
    for class in [1, 3, 4, 2] {
        for serial in 1..=4096 {
            // Two hundred frames up to a moving end.
            let mut sum = frame(REPAIR, 300 + serial % 1000, serial, &[0, 200, 1, 7, 7, 7, 7, 7]);
            sum.push(class);
            take(&mut end, &sum);
        }
        let mut long = frame(RELIABLE, 300, 5000, &[7; 60_000]);
        long.push(class);
        take(&mut end, &long);
    }
    let peak = take_peak() - before;
    assert!(peak < 30 * MIB, "{} MiB", peak / MIB);
    let mut next = frame(RELIABLE | FIRST | LAST, 0, 5001, &[0x45; 1000]);
    next.push(2);
    assert!(take(&mut end, &next));
    assert_eq!(drain(&mut end), (1, 1000));
}

/// Goal: sums of one frame are frames, for which there must be memory as for others.
#[test]
fn frames_that_are_solved_take_no_more_than_others() {
    let mut end = Coded::new(coded::Config::default(), &LINE);
    let before = live();
    take_peak();
    for sequence in 1..20_000 {
        let mut symbol = vec![0, 1, 1, 0xea, 0x60];
        symbol.resize(5 + 60_000, 7);
        let mut sum = frame(REPAIR, sequence, sequence, &symbol);
        sum.push(2);
        take(&mut end, &sum);
    }
    let peak = take_peak() - before;
    assert!(peak < 256 * MIB + 64 * MIB + POOL, "{} MiB", peak / MIB);
}

/// Goal: blocks of SLACP of which too little comes take 16 MiB.
#[test]
fn blocks_of_slacp_take_16_mib() {
    let mut end = Slacp::new(slacp::Config::default(), &LINE);
    let before = live();
    take_peak();
    for block in 0..20_u8 {
        for index in 128..=255 {
            let mut repair = vec![7; 60_000];
            // The place is the extension.
            repair.extend([0, block, index, REPAIR | 2, 3, 0, 0, 127]);
            repair.extend([0; 10]);
            take(&mut end, &repair);
        }
    }
    let peak = take_peak() - before;
    assert!(peak < 17 * MIB, "{} MiB", peak / MIB);
}

/// Goal: the same of fragments of hybrid ARQ, a byte of each block.
#[test]
fn fragments_of_blocks_take_64_mib() {
    let mut end = Harq::new(harq::Config::default(), &LINE);
    for len in [1, 5000] {
        let before = live();
        take_peak();
        for number in 1..MAX_WINDOW {
            let [_, a, b, c] = number.to_be_bytes();
            let mut fragment = vec![1 << 6, a, b, c, a, b, c];
            fragment.resize(7 + len, 7);
            take(&mut end, &fragment);
        }
        let peak = take_peak().saturating_sub(before);
        assert!(peak < 65 * MIB, "{len} bytes each: {} MiB", peak / MIB);
        assert!(len > 1 || peak > 10 * MIB, "they were taken: {peak}");
    }
}

/// Goal: the thesis's window of 511 frames takes 35 MB with the longest, and a packet that never ends 66 KiB.
#[test]
fn small_windows_take_what_their_frames_take() {
    let mut end = Cotmll::new(cotmll::Config::default(), &LINE);
    let (before, mut other) = (live(), Cotmll::new(cotmll::Config::default(), &LINE));
    other.offer(Instant::ZERO, base::Packet::from_slice(&[0x45; 60]), Treatment::Reliable).unwrap();
    let mut template = Vec::new();
    other.poll_frame(Instant::ZERO, &mut template);
    take_peak();
    for fill in 0..=255_u8 {
        // Whatever its trailer says, it is long.
        let trailer = template[template.len() - cotmll::TRAILER_LEN..].iter().map(|byte| byte ^ fill);
        let long: Vec<u8> = core::iter::repeat_n(7, 60_000).chain(trailer).collect();
        take(&mut end, &long);
    }
    assert!(take_peak() - before < 36 * MIB);
    let mut plain = Plain::new(plain::Config::default(), &LINE);
    let before = live();
    for number in 0..100_000_u32 {
        let [_, a, b, c] = number.to_be_bytes();
        let mut fragment = vec![0x10 | u8::from(number == 0) << 1, a, b, c];
        fragment.resize(1004, 7);
        take(&mut plain, &fragment);
        assert!(live() - before < MIB);
    }
}
