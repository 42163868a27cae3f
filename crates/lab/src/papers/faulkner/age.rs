//! Section 2.3: how old an acknowledgement is when it arrives, in a trailer that is filled as it leaves and in one that is
//! filled when its frame starts.
//!
//! An acknowledgement is dated by when it is said to be filled in. Whether it says what had come by then, and no less, its
//! contents show: a date alone would make the claim true by definition. The line must lose nothing.

use base::Instant;
use link::FrameKind;

use super::{LINK, SPACE};
use crate::observe::EventLog;
use crate::observe::events::LinkDirection;
use crate::statistics::mean;
use crate::study::probe::{Method, Probe};

/// Means over the acknowledgements that arrive from the terminal: `age`, from filling to arrival in seconds, of those in full
/// frames; `age_all`, of all; `since_news`, from the arrival of the newest frame covered to the acknowledgement's;
/// `as_dated`, the share that covers all that had come when it was filled, and nothing else; `as_at_start`, the share of
/// which the same is true of the moment at which its frame started.
pub(super) const AGE: Probe = Probe {
    name: "age",
    version: 1,
    quantities: &["age", "age_all", "since_news", "as_dated", "as_at_start"],
    series: &[],
    method: Method::Run {
        watch: |watch| watch.events = true,
        read: |_, run, measured| {
            let (mut full, mut all) = (Vec::new(), Vec::new());
            for frame in run.log.frames(LINK, LinkDirection::Up) {
                let (Some(arrived), Some(filled)) = (frame.arrived_at, frame.filled_at()) else { continue };
                let age = arrived.saturating_since(filled).as_secs_f64();
                all.push(age);
                if frame.bits == FULL_FRAME {
                    full.push(age);
                }
            }
            let contents = contents(&run.log);
            let of_all = |value: fn(&Contents) -> f64| mean(&contents.iter().map(value).collect::<Vec<_>>());
            measured.note("age", mean(&full));
            measured.note("age_all", mean(&all));
            measured.note("since_news", of_all(|one| one.since_news));
            measured.note("as_dated", of_all(|one| f64::from(u8::from(one.is_as_dated))));
            measured.note("as_at_start", of_all(|one| f64::from(u8::from(one.is_as_at_start))));
            Ok(())
        },
    },
};

/// Bits of a full frame (section 2.3).
const FULL_FRAME: u32 = 3968;

/// What an acknowledgement that arrives from the terminal says.
#[derive(Clone, Copy, Debug)]
struct Contents {
    /// How long ago the newest frame that it covers had come there, in seconds.
    since_news: f64,
    /// Whether it covers all that had come when it was filled in, and nothing else.
    is_as_dated: bool,
    /// Whether the same would be true of the moment at which its frame started.
    is_as_at_start: bool,
}

/// What each acknowledgement from the terminal says. The line loses nothing, so all of them are cumulative.
fn contents(log: &EventLog) -> Vec<Contents> {
    let came: Vec<Instant> = log
        .frames(LINK, LinkDirection::Down)
        .into_iter()
        .filter(|frame| frame.kind == FrameKind::New)
        .filter_map(|frame| frame.arrived_at)
        .collect();
    let (mut covered, mut all) = (0_usize, Vec::new());
    for frame in log.frames(LINK, LinkDirection::Up) {
        let (Some(arrived), Some(trailer)) = (frame.arrived_at, frame.trailer) else { continue };
        let Some(filled) = frame.filled_at() else { continue };
        // Numbers on the air are modulo 1024, and never go back on a line that keeps order.
        covered += (usize::from(trailer.ack) + SPACE - covered % SPACE) % SPACE;
        let Some(newest) = covered.checked_sub(1).and_then(|last| came.get(last)) else { continue };
        // Of what comes at the very moment either is right.
        let is_all_by =
            |moment: Instant| *newest <= moment && came.get(covered).is_none_or(|next| *next >= moment);
        all.push(Contents {
            since_news: arrived.saturating_since(*newest).as_secs_f64(),
            is_as_dated: is_all_by(filled),
            is_as_at_start: is_all_by(frame.on_air.start),
        });
    }
    all
}
