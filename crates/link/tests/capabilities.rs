//! Every protocol does what its capabilities say, and no more.

use std::collections::{BTreeSet, VecDeque};

use base::{Duration, Instant, Packet, Rng};
use longhaul_link::{Capabilities, Demand, Endpoint, FrameKind, LineLimits, Protocol, Treatment};

/// Between two frames of a line.
const STEP: Duration = Duration::from_millis(1);
const LINE: LineLimits = LineLimits::new(600, None);

/// Every protocol, with the parameters that change what it can do.
fn protocols() -> impl Iterator<Item = Protocol> {
    #[derive(serde::Deserialize)]
    struct Written {
        protocol: Protocol,
    }
    let read = |text| {
        let text = format!("protocol = {text}");
        base::config::parse::<Written>("p.toml", &text).unwrap().protocol
    };
    [
        "\"plain\"",
        "\"cotmll-thesis\"",
        "{ cotmll-thesis = { ordered = false } }",
        "\"cotmll\"",
        "{ cotmll = { ordered = true } }",
        "\"coded\"",
        "{ coded = { ordered = true } }",
        "\"slacp\"",
        "{ slacp = { ordered = true } }",
        "\"harq\"",
        "{ harq = { ordered = false } }",
        "{ harq = { transmissions = 1 } }",
        "{ harq = { transmissions = 1, ordered = false } }",
    ]
    .into_iter()
    .map(read)
}

/// Two ends, and a line each way that holds a few frames.
struct Pair {
    ends: [Box<dyn Endpoint>; 2],
    lines: [VecDeque<Option<Vec<u8>>>; 2],
    fillers: bool,
    retransmissions: u32,
    now: Instant,
}

/// Steps that are enough for what was taken to arrive, if it ever does.
const AFTER: u32 = 2000;
/// Frames on their way.
const IN_FLIGHT: usize = 6;

impl Pair {
    fn new(protocol: &Protocol) -> Self {
        Self {
            ends: [protocol.build(&LINE), protocol.build(&LINE)],
            lines: Default::default(),
            fillers: true,
            retransmissions: 0,
            now: Instant::ZERO,
        }
    }

    fn capabilities(&self) -> Capabilities {
        self.ends[0].capabilities()
    }

    /// Each end sends a frame, which `line` may take away or swap with those before; what came out of the second end.
    fn step(&mut self, mut line: impl FnMut(usize, &mut VecDeque<Option<Vec<u8>>>)) -> Vec<Packet> {
        self.now += STEP;
        let now = self.now;
        for side in 0..2 {
            self.ends[side].handle_timeout(now);
            let least = if self.fillers { Demand::Filler } else { Demand::Fresh };
            let mut frame = Vec::new();
            let end = &mut self.ends[side];
            let info = (end.demand(now) >= least).then(|| end.poll_frame(now, &mut frame)).flatten();
            if let Some(info) = info {
                end.seal_frame(now, &mut frame);
                self.retransmissions += u32::from(info.kind == FrameKind::Retransmission);
            }
            self.lines[side].push_back(info.map(|_| frame));
            line(side, &mut self.lines[side]);
            if self.lines[side].len() > IN_FLIGHT
                && let Some(frame) = self.lines[side].pop_front().flatten()
            {
                let _ = self.ends[1 - side].handle_frame(now, &frame);
            }
        }
        core::iter::from_fn(|| self.ends[1].poll_packet()).collect()
    }

    /// Carries packets from the first end to the second, until all are taken and some steps longer; those that arrived.
    fn carry(
        &mut self,
        packets: Vec<Packet>,
        mut line: impl FnMut(usize, &mut VecDeque<Option<Vec<u8>>>),
    ) -> Vec<Packet> {
        let (mut waiting, mut arrived, mut after) = (VecDeque::from(packets), Vec::new(), 0);
        while after < AFTER {
            let treatment = Treatment::Reliable;
            while self.ends[0].has_room(treatment)
                && let Some(packet) = waiting.pop_front()
            {
                self.ends[0].offer(self.now, packet, treatment).unwrap();
            }
            arrived.extend(self.step(&mut line));
            after += u32::from(waiting.is_empty());
        }
        arrived
    }
}

/// UDP packets of different flows and sizes.
fn packets(count: u8, len: usize) -> Vec<Packet> {
    let packet = |n: u8| {
        let mut bytes = vec![0; len + usize::from(n % 3) * 300];
        bytes[0] = 0x45;
        bytes[9] = 17;
        // Addresses, ports and a number.
        bytes[12..28].fill(n % 7);
        bytes[28] = n;
        Packet::from_slice(&bytes)
    };
    (0..count).map(packet).collect()
}

fn losing(probability: f64) -> impl FnMut(usize, &mut VecDeque<Option<Vec<u8>>>) {
    let mut rng = Rng::named(1, "losses");
    move |_, line| {
        if rng.unit() < probability
            && let Some(latest) = line.back_mut()
        {
            *latest = None;
        }
    }
}

#[test]
fn a_protocol_and_its_endpoints_say_the_same() {
    for protocol in protocols() {
        let mut pair = Pair::new(&protocol);
        assert_eq!(protocol.capabilities(), pair.capabilities(), "{protocol:?}");
        assert_eq!(pair.ends[0].lines().is_some(), pair.capabilities().several_lines, "{protocol:?}");
    }
}

#[test]
fn losses_are_recovered_and_order_is_kept_as_claimed() {
    for protocol in protocols() {
        let mut pair = Pair::new(&protocol);
        let Capabilities { recovers_losses, keeps_order, .. } = pair.capabilities();
        let sent = packets(100, 400);
        let arrived = pair.carry(sent.clone(), losing(0.2));
        let number = |packet: &Packet| packet[28];
        let numbers: Vec<_> = arrived.iter().map(number).collect();
        let distinct: BTreeSet<_> = numbers.iter().copied().collect();
        assert_eq!(distinct.len(), numbers.len(), "{protocol:?}: twice");
        let most = match protocol {
            // It gives up what is lost again and again.
            Protocol::Slacp(_) => 90,
            // The same; at twice the rate of loss that its code is for, four transmissions of five in vain are not rare.
            Protocol::Harq(_) => 75,
            _ => sent.len(),
        };
        assert_eq!(distinct.len() >= most, recovers_losses, "{protocol:?}: {numbers:?}");
        assert_eq!(numbers.is_sorted(), keeps_order, "{protocol:?}: {numbers:?}");
    }
}

#[test]
fn super_segments_cross_as_claimed() {
    for protocol in protocols() {
        let mut pair = Pair::new(&protocol);
        let arrived = pair.carry(packets(3, 60_000), losing(0.3));
        assert_eq!(arrived.len() == 3, pair.capabilities().carries_super_segments, "{protocol:?}");
    }
}

#[test]
fn overtaken_frames_mislead_whom_they_are_said_to() {
    for protocol in protocols() {
        let mut pair = Pair::new(&protocol);
        let mut steps = 0_u32;
        let arrived = pair.carry(packets(100, 400), |side, line| {
            steps += u32::from(side == 0);
            let len = line.len();
            if len > 3 && side == 0 && steps.is_multiple_of(5) {
                line.swap(len - 1, len - 3);
            }
        });
        // Nothing was lost.
        assert_eq!(pair.retransmissions > 0, pair.capabilities().needs_order, "{protocol:?}");
        assert!(!pair.capabilities().recovers_losses || arrived.len() == 100, "{protocol:?}");
    }
}

#[test]
fn the_last_frames_need_fillers_as_claimed() {
    for protocol in protocols() {
        let mut pair = Pair::new(&protocol);
        let mut arrivals = |fillers| {
            pair.fillers = fillers;
            // The packet's only frame is lost, and nothing follows.
            let mut lost = false;
            let lose_first = |side, line: &mut VecDeque<Option<Vec<u8>>>| {
                if side == 0 && !lost && line.back().is_some_and(Option::is_some) {
                    lost = true;
                    line.pop_back();
                    line.push_back(None);
                }
            };
            pair.carry(packets(1, 100), lose_first).len()
        };
        let (without, with) = (arrivals(false), arrivals(true));
        let expected = match protocol {
            // A fragment of several, which the others make good.
            Protocol::Harq(_) => (1, 1),
            // Without them the packet stays away until the next run, whose fillers bring it.
            _ if protocol.capabilities().wants_fillers => (0, 2),
            _ => (0, 0),
        };
        assert_eq!((without, with), expected, "{protocol:?}");
    }
}

/// A path that gets narrower: what is cut from then on fits, and everything arrives.
#[test]
fn frames_get_shorter_when_the_line_does() {
    for protocol in protocols() {
        let mut pair = Pair::new(&protocol);
        let wider = pair.carry(packets(20, 1000), |_, _| ()).len();
        pair.ends.iter_mut().for_each(|end| end.set_line(&LineLimits::new(200, None)));
        let mut longest = 0;
        let arrived = pair.carry(packets(20, 1000), |_, line| {
            longest = longest.max(line.back().and_then(Option::as_ref).map_or(0, Vec::len));
        });
        assert!(longest <= 200 && longest > 150, "{protocol:?}: {longest}");
        assert_eq!((wider, arrived.len()), (20, 20), "{protocol:?}");
    }
}
