//! Section 2.3: what the sender does with a free line, in every combination that its rules distinguish, and in random steps
//! beside a model of them.

mod model;

use std::io;

use base::{Instant, Packet, Rng};
use link::cotmll::{Ack, Config, Cotmll, SubProtocol, Trailer};
use link::{Endpoint, FrameKind, LineLimits, Treatment};

use crate::claims::Measurements;
use crate::study::probe::{Method, Probe, Trial};
use model::Model;

/// `combinations` and `combinations_wrong`, those that go otherwise than published; `steps` and `steps_wrong`, random steps
/// in which endpoint and model differ; `choices(kind)`: random choices by the rule that makes them, `KINDS`. `with.steps`
/// says how many steps.
pub(super) const ORDER: Probe = Probe {
    name: "transmission-order",
    version: 1,
    quantities: &["combinations", "combinations_wrong", "steps", "steps_wrong", "choices", "KINDS"],
    series: &[],
    method: Method::Trial(measure),
};

/// What the four rules choose, in their order.
const KINDS: [&str; 4] = ["retransmission", "new", "filler", "control"];
/// Windows of the random steps, from the least to the thesis's.
const WINDOWS: [u32; 5] = [1, 2, 8, 64, 512];
/// Steps with one endpoint before the next one starts with nothing said.
const EPISODE: u32 = 2000;
/// Bytes of a frame's payload, so that some packets take several frames.
const PAYLOAD: u32 = 100;
const NOW: Instant = Instant::ZERO;

fn measure(trial: &Trial<'_>, measured: &mut Measurements) -> io::Result<()> {
    let wrong = combinations().filter(|combination| !combination.goes_as_published()).count();
    measured.note("combinations", combinations().count() as f64);
    measured.note("combinations_wrong", wrong as f64);
    let mut rng = Rng::named(trial.seed, ORDER.name);
    let mut walk = Walk::default();
    for episode in 0..trial.number("steps")? as u32 / EPISODE {
        walk.run(&mut Pair::new(WINDOWS[episode as usize % WINDOWS.len()]), &mut rng);
    }
    measured.note("steps", f64::from(walk.steps));
    measured.note("steps_wrong", f64::from(walk.wrong));
    measured.set_texts("KINDS", &KINDS);
    for (kind, count) in KINDS.into_iter().zip(walk.chosen) {
        measured.set("choices", &[kind.into()], f64::from(count));
    }
    Ok(())
}

/// An endpoint under test.
fn endpoint(window: u32) -> Cotmll {
    let config = Config {
        window: window.try_into().unwrap_or_default(),
        frame_payload: PAYLOAD.try_into().unwrap_or_default(),
        ..Config::default()
    };
    Cotmll::new(config, &LineLimits::default())
}

/// What goes next: its kind, and its sequence number if it carries data.
fn poll(endpoint: &mut Cotmll) -> (FrameKind, Option<u16>) {
    let mut frame = Vec::new();
    let info = endpoint.poll_frame(NOW, &mut frame);
    let trailer = Trailer::parse(&frame).ok().map(|(trailer, _)| trailer);
    let kind = info.map_or(FrameKind::Control, |info| info.kind);
    (kind, trailer.filter(|trailer| trailer.protocol == SubProtocol::Reliable).map(|trailer| trailer.tx))
}

fn offer(endpoint: &mut Cotmll, frames: u32) -> bool {
    let packet = Packet::from_slice(&vec![0; (frames * PAYLOAD) as usize]);
    endpoint.offer(NOW, packet, Treatment::Reliable).is_ok()
}

/// A bare acknowledgement arrives.
fn acknowledge(endpoint: &mut Cotmll, ack: Ack) {
    let trailer = Trailer { protocol: SubProtocol::Control, first: false, last: false, tx: 0, ack };
    // Of a control frame nothing but its acknowledgement counts.
    let _ = endpoint.handle_frame(NOW, &trailer.emit());
}

/// What the rules distinguish: whether frames are unacknowledged, whether one of them is flagged, whether the window has room,
/// and whether there is new data. A flagged frame is unacknowledged, and a full window has such a frame.
#[derive(Clone, Copy, Debug)]
struct Combination {
    outstanding: bool,
    flagged: bool,
    has_room: bool,
    has_data: bool,
}

fn combinations() -> impl Iterator<Item = Combination> {
    let bit = |number: u32, place: u32| number >> place & 1 == 1;
    let all = (0..16).map(move |number| Combination {
        outstanding: bit(number, 0),
        flagged: bit(number, 1),
        has_room: bit(number, 2),
        has_data: bit(number, 3),
    });
    all.filter(|c| c.outstanding || (!c.flagged && c.has_room))
}

impl Combination {
    const WINDOW: u32 = 4;

    fn goes_as_published(self) -> bool {
        let mut sender = endpoint(Self::WINDOW);
        let sent = if !self.outstanding {
            0
        } else if self.has_room {
            2
        } else {
            Self::WINDOW
        };
        for _ in 0..sent {
            offer(&mut sender, 1);
            poll(&mut sender);
        }
        if self.flagged {
            // The second frame has arrived, so that the first one is lost.
            acknowledge(&mut sender, Ack::Block { start: 1, count: 1 });
        }
        if self.has_data {
            offer(&mut sender, 1);
        }
        let expected = if self.flagged {
            (FrameKind::Retransmission, Some(0))
        } else if self.has_data && self.has_room {
            (FrameKind::New, Some(sent as u16))
        } else if self.outstanding {
            (FrameKind::Filler, Some(0))
        } else {
            (FrameKind::Control, None)
        };
        poll(&mut sender) == expected
    }
}

/// An endpoint and the model beside it.
struct Pair {
    endpoint: Cotmll,
    model: Model,
}

/// What came of random steps.
#[derive(Debug, Default)]
struct Walk {
    steps: u32,
    wrong: u32,
    /// Choices by the rule that makes them.
    chosen: [u32; 4],
}

impl Walk {
    fn run(&mut self, pair: &mut Pair, rng: &mut Rng) {
        // In some episodes the line is seldom free, in others packets or acknowledgements are rare.
        let offers = 0.05 + 0.3 * rng.unit();
        let acks = 0.02 + 0.3 * rng.unit();
        for _ in 0..EPISODE {
            self.steps += 1;
            let choice = rng.unit();
            if choice < offers {
                let frames = 1 + rng.below(4) as u32;
                if offer(&mut pair.endpoint, frames) {
                    pair.model.offer(frames);
                }
            } else if choice < offers + acks {
                let ack = pair.acknowledgement(rng);
                acknowledge(&mut pair.endpoint, ack);
                pair.model.acknowledge(ack);
            } else {
                let expected = pair.model.choose();
                let rule = match expected.0 {
                    FrameKind::Retransmission => 0,
                    FrameKind::New => 1,
                    FrameKind::Filler => 2,
                    FrameKind::Repair | FrameKind::Control => 3,
                };
                self.chosen[rule] += 1;
                self.wrong += u32::from(poll(&mut pair.endpoint) != expected);
            }
        }
    }
}

impl Pair {
    fn new(window: u32) -> Self {
        Self { endpoint: endpoint(window), model: Model::new(window) }
    }

    /// Mostly one that a receiver could send, sometimes any at all.
    fn acknowledgement(&self, rng: &mut Rng) -> Ack {
        let in_flight = self.model.in_flight();
        if in_flight == 0 || rng.chance(0.1) {
            let number = rng.below(1024) as u16;
            return match rng.below(128) as u8 {
                0..64 => Ack::Cumulative(number),
                count => Ack::Block { start: number, count },
            };
        }
        // Few frames at a time, so that windows stay filled.
        let few = |rng: &mut Rng, most: u64| {
            let most = if rng.chance(0.7) { most.min(4) } else { most };
            rng.below(most)
        };
        if rng.chance(0.4) {
            return Ack::Cumulative(self.model.on_air(few(rng, in_flight + 1)));
        }
        let offset = rng.below(in_flight);
        let longest = (in_flight - offset).min(127);
        Ack::Block { start: self.model.on_air(offset), count: 1 + few(rng, longest) as u8 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_ten_combinations() {
        assert_eq!(combinations().count(), 10);
        assert!(combinations().all(Combination::goes_as_published));
    }

    /// An endpoint that compares otherwise differs from the model: the comparison can fail.
    #[test]
    fn another_rule_is_noticed() {
        let mut walk = Walk::default();
        let config = Config { flag_against: link::cotmll::FlagAgainst::First, ..Config::default() };
        let mut pair = Pair { endpoint: Cotmll::new(config, &LineLimits::default()), model: Model::new(512) };
        walk.run(&mut pair, &mut Rng::named(1, "test"));
        assert!(walk.wrong > 0, "{walk:?}");
    }
}
