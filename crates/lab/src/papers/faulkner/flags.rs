//! Section 2.3: which frames a block acknowledgement flags, beside what became of them, which the lab knows.
//!
//! A flag is false if the latest transmission of its frame is going to arrive, or has, or has not yet had the time to.

use std::io;

use base::{Duration, Instant};
use link::FrameKind;
use link::cotmll::SubProtocol;

use super::{DIRECTIONS, LINK, SPACE};
use crate::observe::EventLog;
use crate::observe::events::{FramesFlagged, LinkDirection, TrailerMark, What};
use crate::study::probe::{Method, Probe};

/// Counts over both directions: `flags`, all; `fresh`, those by blocks of which no frame had been sent more than once;
/// `fresh_false`, false ones of these; `cycled_false`, of the others; `fresh_in_order` and `in_order`, false ones of frames
/// that had come before the acknowledgement left, of the fresh and of all; `repeated`, flags beyond the first for one
/// sending; `lost`, frames that the line lost.
pub(super) const FLAGS: Probe = Probe {
    name: "flags",
    version: 1,
    quantities: &[
        "flags",
        "fresh",
        "fresh_false",
        "cycled_false",
        "fresh_in_order",
        "in_order",
        "repeated",
        "lost",
    ],
    series: &[],
    method: Method::Run {
        watch: |watch| watch.events = true,
        read: |trial, run, measured| {
            let channel = &trial.scenario().link[LINK].channel;
            let trailer = TRAILER_BITS / channel.down().rate.as_bps() as f64;
            let under_way = channel.delay + Duration::from_secs_f64(trailer);
            let both = DIRECTIONS.map(|direction| Flags::of(&run.log, direction, under_way));
            let sum = |count: fn(&Flags) -> u32| f64::from(both.iter().map(count).sum::<u32>());
            let counted = |name: &str| -> f64 {
                DIRECTIONS.map(|direction| run.links[&direction.of(LINK)][name] as f64).iter().sum()
            };
            // What the log shows has to be what the endpoints counted.
            if counted("endpoint-frames-flagged") != sum(|flags| flags.all) {
                return Err(io::Error::other("the log does not hold every flag"));
            }
            measured.note("flags", sum(|flags| flags.all));
            measured.note("fresh", sum(|flags| flags.fresh));
            measured.note("fresh_false", sum(|flags| flags.fresh_false));
            measured.note("cycled_false", sum(|flags| flags.cycled_false));
            measured.note("fresh_in_order", sum(|flags| flags.fresh_in_order));
            measured.note("in_order", sum(|flags| flags.in_order));
            measured.note("repeated", sum(|flags| flags.repeated));
            measured.note("lost", counted("frames-lost"));
            Ok(())
        },
    },
};

/// Bits of a trailer, which is filled as it leaves.
const TRAILER_BITS: f64 = 32.0;

/// What became of the flags of one direction.
#[derive(Debug, Default, PartialEq, Eq)]
struct Flags {
    all: u32,
    /// By a block of which no frame had been sent more than once.
    fresh: u32,
    /// Of those, false ones.
    fresh_false: u32,
    /// False ones of all others.
    cycled_false: u32,
    /// Of the false ones by such blocks, frames that had come before the acknowledgement left. Since the block is the first
    /// beyond a gap, they lie before the gap.
    fresh_in_order: u32,
    /// Of all false ones, such frames.
    in_order: u32,
    /// Flags beyond the first for one transmission.
    repeated: u32,
}

/// The transmissions of the frame with a number.
#[derive(Clone, Copy, Default)]
struct Sent {
    times: u32,
    /// Of the latest.
    arrives_at: Instant,
    intact: bool,
    flags: u32,
}

impl Flags {
    fn of(log: &EventLog, direction: LinkDirection, under_way: Duration) -> Self {
        let mut flags = Self::default();
        let mut sent = [Sent::default(); SPACE];
        // Every started frame is there, with what became known of it later.
        let mut frames = log.frames(LINK, direction).into_iter();
        for event in log.link_events(LINK, direction) {
            match &event.what {
                What::FrameStarted(_) => {
                    let Some(frame) = frames.next() else { return flags };
                    let Some(trailer) = frame.trailer.filter(|t| t.class == SubProtocol::Reliable) else {
                        continue;
                    };
                    let before = &mut sent[usize::from(trailer.tx)];
                    let times = if frame.kind == FrameKind::New { 1 } else { before.times + 1 };
                    let intact = frame.intact == Some(true);
                    *before = Sent { times, arrives_at: frame.arrives_at, intact, flags: 0 };
                }
                What::FramesFlagged(flagged) => flags.note(flagged, event.at, under_way, &mut sent),
                _ => {}
            }
        }
        flags
    }

    fn note(&mut self, flagged: &FramesFlagged, now: Instant, under_way: Duration, sent: &mut [Sent; SPACE]) {
        let Some(TrailerMark { ack, ack_count, .. }) = flagged.trailer else { return };
        let mut block = (0..usize::from(ack_count)).map(|k| (usize::from(ack) + k) % SPACE);
        let is_fresh = block.all(|number| sent[number].times <= 1);
        for &number in &flagged.frames {
            let frame = &mut sent[usize::from(number)];
            let is_false = u32::from(frame.intact || frame.arrives_at > now);
            self.all += 1;
            self.repeated += u32::from(frame.flags > 0);
            let had_come = u32::from(frame.intact && frame.arrives_at.saturating_add(under_way) <= now);
            self.in_order += had_come;
            frame.flags += 1;
            if is_fresh {
                self.fresh += 1;
                self.fresh_false += is_false;
                self.fresh_in_order += had_come;
            } else {
                self.cycled_false += is_false;
            }
        }
    }
}
