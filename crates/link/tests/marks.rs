//! Each frame of each protocol has the marks of the packet that it carries a piece of, whenever it is sent: its ECN field always, and its
//! DSCP where order does not matter.

use std::collections::{BTreeMap, VecDeque};

use base::wire::ip::Ecn;
use base::{Duration, Instant, Packet, Rate};
use longhaul_link::{Demand, Endpoint, FrameInfo, FrameKind, LineLimits, Marks, Protocol, Treatment};

use FrameKind::{Control, Filler, New, Repair, Retransmission};

/// A frame a millisecond.
const STEP: Duration = Duration::from_millis(1);
const LINE: LineLimits = LineLimits::new(600, Some(Rate::from_bps(4_800_000)));
/// Frames on their way.
const IN_FLIGHT: usize = 6;
const PACKETS: u8 = 64;
/// Bytes, of which each piece is longer than what any protocol puts around it.
const LEN: usize = 1400;

fn protocol(text: &str) -> Protocol {
    #[derive(serde::Deserialize)]
    struct Written {
        protocol: Protocol,
    }
    base::config::parse::<Written>("p.toml", &format!("protocol = {text}")).unwrap().protocol
}

/// Neighbours differ, and so do packets of which only the version does.
fn marks(number: u8) -> Marks {
    Marks::new(number.wrapping_mul(29) % 64, Ecn::from_bits(number))
}

/// A packet of IPv4 or IPv6, whole or a super-segment, of which all bytes are `number` but for those that hold the marks.
fn packet(number: u8) -> Packet {
    let class = marks(number).traffic_class();
    let header =
        if number.is_multiple_of(3) { [0x40 | number >> 4, class] } else { [0x60 | class >> 4, class << 4] };
    let metadata: &[u8] = if number.is_multiple_of(5) { &[1; 8] } else { &[] };
    let mut packet = Packet::from_slice(&[metadata, &header].concat());
    packet.as_vec_mut().resize(LEN, number);
    packet
}

/// How many frames of each kind there were.
type Told = BTreeMap<&'static str, u32>;

/// Counts a frame and checks its marks, of which the DSCP is copied or not.
fn check(told: &mut Told, protocol: &Protocol, has_dscp: bool, info: FrameInfo, frame: &[u8]) {
    let name = match info.kind {
        New => "new",
        Retransmission => "retransmission",
        Filler => "filler",
        Control => "control",
        Repair => "repair",
    };
    *told.entry(name).or_default() += 1;
    if info.kind == Control {
        assert_eq!(info.marks, Marks::default());
        return;
    }
    // A sum of frames of several packets has the ECN field of the last, and no byte of it.
    if info.kind == Repair && matches!(protocol, Protocol::Coded(_)) {
        assert_eq!(info.marks, info.marks.without_dscp());
        return;
    }
    // The middle of a frame lies in its payload. Redundancy for bytes that are all the same is the same byte.
    let number = frame[frame.len() / 2];
    let marks = if has_dscp { marks(number) } else { marks(number).without_dscp() };
    assert_eq!(info.marks, marks, "{:?} of packet {number}", info.kind);
}

/// Sends all packets over a line that loses every fifth frame; how many frames of each kind that took.
fn carry(protocol: &Protocol, treatment: Treatment) -> Told {
    let has_dscp = treatment.is_once() && matches!(protocol, Protocol::Cotmll(_));
    let mut ends = [protocol.build(&LINE), protocol.build(&LINE)];
    let mut lines: [VecDeque<Option<Vec<u8>>>; 2] = Default::default();
    let mut waiting = (1..=PACKETS).map(packet).collect::<VecDeque<_>>();
    let (mut told, mut now) = (Told::new(), Instant::ZERO);
    for step in 0..3000_u32 {
        now += STEP;
        while ends[0].has_room(treatment)
            && let Some(packet) = waiting.pop_front()
        {
            ends[0].offer(now, packet, treatment).unwrap();
        }
        for side in 0..2 {
            let frame = poll(&mut *ends[side], protocol, now, has_dscp, &mut told);
            lines[side].push_back(frame.filter(|_| side == 1 || step % 5 != 0));
            if lines[side].len() > IN_FLIGHT
                && let Some(frame) = lines[side].pop_front().flatten()
            {
                let _ = ends[1 - side].handle_frame(now, &frame);
            }
        }
        while ends[1].poll_packet().is_some() {}
    }
    assert!(waiting.is_empty());
    told
}

fn poll(
    end: &mut dyn Endpoint,
    protocol: &Protocol,
    now: Instant,
    has_dscp: bool,
    told: &mut Told,
) -> Option<Vec<u8>> {
    end.handle_timeout(now);
    if end.demand(now) == Demand::Nothing {
        return None;
    }
    let mut frame = Vec::new();
    let info = end.poll_frame(now, &mut frame)?;
    end.seal_frame(now, &mut frame);
    check(told, protocol, has_dscp, info, &frame);
    Some(frame)
}

#[test]
fn a_frame_has_the_marks_of_its_packet_whenever_it_is_sent() {
    let repeating = &["control", "filler", "new", "retransmission"][..];
    let fragmented = &["control", "new", "repair", "retransmission"][..];
    let coded = &["control", "filler", "new", "repair", "retransmission"][..];
    for (text, kinds) in [
        ("\"plain\"", &["new"][..]),
        ("\"cotmll-thesis\"", repeating),
        ("{ cotmll-thesis = { acknowledge = \"start\", frame-payload = 100 } }", repeating),
        ("{ cotmll-thesis = { attempts = 2 } }", repeating),
        ("\"cotmll\"", repeating),
        ("{ coded = { ordered = true } }", coded),
        ("\"harq\"", fragmented),
        (
            "{ harq = { combine = true, fragments = 4, data = 4, transmissions = 3 } }",
            &["control", "new", "repair"],
        ),
        ("{ harq = { transmissions = 1 } }", &["new", "repair"]),
    ] {
        let told = carry(&protocol(text), Treatment::Reliable);
        assert_eq!(told.keys().copied().collect::<Vec<_>>(), kinds, "{text}");
        assert!(told["new"] > 2 * u32::from(PACKETS), "{text}: {told:?}");
    }
}

#[test]
fn so_has_one_that_is_sent_once() {
    for text in ["\"cotmll-thesis\"", "\"cotmll\""] {
        let told = carry(&protocol(text), Treatment::Once);
        assert_eq!(told.keys().copied().collect::<Vec<_>>(), ["control", "new"], "{text}");
    }
    let told = carry(&protocol("\"harq\""), Treatment::Once);
    assert_eq!(told.into_iter().collect::<Vec<_>>(), [("new", 9 * 64), ("repair", 64)]);
}

/// A packet as long as a frame at most is a frame of `plain` as it is.
#[test]
fn a_whole_packet_has_its_own_marks() {
    let mut end = protocol("\"plain\"").build(&LINE);
    for number in 1..=10 {
        let mut short = packet(number);
        short.truncate(500);
        end.offer(Instant::ZERO, short, Treatment::Once).unwrap();
        let mut frame = Vec::new();
        let info = end.poll_frame(Instant::ZERO, &mut frame).unwrap();
        assert_eq!((info.marks, frame.len()), (marks(number), 500));
    }
}

/// What was not cut to its end starts again, with the same marks.
#[test]
fn a_packet_keeps_its_marks_over_a_reset() {
    // A packet of several frames, or of several blocks of them.
    let blocks = "{ harq = { fragments = 2, data = 1 } }";
    for text in ["\"plain\"", "\"cotmll-thesis\"", "\"coded\"", "\"cotmll\"", blocks] {
        let mut end = protocol(text).build(&LINE);
        for number in [1, 2] {
            if end.has_room(Treatment::Reliable) {
                end.offer(Instant::ZERO, packet(number), Treatment::Reliable).unwrap();
            }
            for _ in 0..2 {
                let info = end.poll_frame(Instant::ZERO, &mut Vec::new()).unwrap();
                assert_eq!(info.marks, marks(1).without_dscp(), "{text}");
                end.reset();
            }
        }
    }
}
