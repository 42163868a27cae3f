//! Lines that have fallen silent: what left over one goes again over another, and nothing new goes there until it is heard of.
//!
//! Ours. A line is suspect if a report comes over another line that should have heard of something which left over this one, two round trips and a
//! little ago, and has not. It needs no word from the line itself, and nothing is lost if it was only blocked: what comes late came twice.
//! Meanwhile it carries a probe now and then, and one that is heard of ends it. Where no report comes at all, no line is suspect: then it
//! is the peer that is silent.

use base::{Duration, Instant};

use super::lines::{LineId, MAX_LINES};

/// What is known of each line.
#[derive(Debug, Default)]
pub(crate) struct Suspicion {
    lines: [Line; MAX_LINES],
}

#[derive(Clone, Copy, Debug, Default)]
struct Line {
    /// Since when something has been under way that nobody has heard of.
    waits_since: Option<Instant>,
    /// When the next probe leaves, and how long after it the one behind it; of a suspect line.
    probes: Option<(Instant, Duration)>,
}

impl Suspicion {
    /// A frame leaves over a line.
    pub(crate) fn on_sent(&mut self, now: Instant, line: LineId) {
        let line = &mut self.lines[line.at()];
        line.waits_since = line.waits_since.or(Some(now));
        if let Some((at, pause)) = &mut line.probes {
            *at = now + *pause;
            *pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
        }
    }

    /// A report is the first to have heard of something that left over a line; `is_all` if nothing else is under way.
    pub(crate) fn on_heard(&mut self, now: Instant, line: LineId, is_all: bool) {
        self.lines[line.at()] = Line { waits_since: (!is_all).then_some(now), probes: None };
    }

    /// A report that has heard of nothing new over a line, whose round trip is this; whether the line is suspect from now on.
    pub(crate) fn on_silent(&mut self, now: Instant, line: LineId, round_trip: Duration) -> bool {
        let line = &mut self.lines[line.at()];
        let due = line.waits_since.map(|since| since + round_trip.saturating_mul(2) + SLACK);
        if line.probes.is_some() || due.is_none_or(|due| now < due) {
            return false;
        }
        line.probes = Some((now, FIRST_PAUSE));
        true
    }

    /// Whether a line is suspect.
    pub(crate) const fn is_suspect(&self, line: LineId) -> bool {
        self.lines[line.at()].probes.is_some()
    }

    /// Whether a probe of a suspect line is due.
    pub(crate) fn is_probe_due(&self, now: Instant, line: LineId) -> bool {
        self.lines[line.at()].probes.is_some_and(|(at, _)| at <= now)
    }

    /// When the next probe is due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.lines.iter().filter_map(|line| Some(line.probes?.0)).min()
    }
}

/// Besides two round trips. Ours: a report may be kept back, and a queue be full.
const SLACK: Duration = Duration::from_millis(100);
/// Between the first two probes of a suspect line, and then twice as long each time. Ours: it is used again soon after it has come back.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
