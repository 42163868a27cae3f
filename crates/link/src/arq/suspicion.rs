//! Lines that have fallen silent: what left over one goes again over another, and nothing new goes there until it is heard of.
//!
//! Ours. A line is suspect if a report comes over another line that should have heard of something which left over this one, two round trips and a
//! little ago, and has not. It needs no word from the line itself, and nothing is lost if it was only blocked: what comes late came twice.
//! Meanwhile it carries a probe now and then, and one that is heard of ends it. Where no report comes at all, no line is suspect: then it
//! is the peer that is silent. But nobody waits for a line in such *doubt*, and lines are tried that are kept for bad times.
//!
//! Of frames without serials no report tells. Where they are all that a line carries, one with a serial goes before them twice in the line's patience,
//! as a *sign*: that nothing is heard of it says as much.

use base::{Duration, Instant};

use super::lines::{LineId, MAX_LINES};
use super::{Timer, earliest};

/// What is known of each line. Where packets are of several classes, each counts its own transmissions, and what one finds out about a line
/// holds for all: they share a copy.
#[derive(Clone, Debug, Default)]
pub(crate) struct Suspicion {
    lines: [Line; MAX_LINES],
}

#[derive(Clone, Copy, Debug, Default)]
struct Line {
    /// Classes of which something is under way that nobody has heard of, a bit each.
    waiting: u8,
    /// Until when something of that should have been heard of.
    doubt: Timer,
    /// The shortest between a transmission and a report of it.
    round_trip: Option<Duration>,
    /// When something left last.
    sent_at: Instant,
    /// When the next probe leaves, and how long after it the one behind it; of a suspect line.
    probes: Option<(Timer, Duration)>,
    /// Until when it is hoped that it comes back soon.
    hope: Timer,
}

impl Suspicion {
    /// A frame of a class leaves over a line.
    pub(crate) fn on_sent(&mut self, now: Instant, line: LineId, class: u8) {
        let line = &mut self.lines[line.at()];
        line.waiting |= 1 << class;
        // A peer with nothing to say need not have answered what left last before a pause.
        let has_paused = now >= line.sent_at + line.patience();
        line.sent_at = now;
        if line.doubt == Timer::Off || has_paused {
            line.doubt = Timer::At(now + line.patience().saturating_mul(UNASKED));
        }
        if let Some((at, pause)) = &mut line.probes {
            *at = Timer::At(now + *pause);
            *pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
        }
    }

    /// What leaves over a line is to be reported, which a report by itself need not be.
    pub(crate) fn on_asked(&mut self, now: Instant, line: LineId) {
        let line = &mut self.lines[line.at()];
        if let Timer::At(at) = line.doubt {
            line.doubt = Timer::At(at.min(now + line.patience()));
        }
    }

    /// For how long nothing may be heard of what left over a line.
    pub(crate) fn patience(&self, line: LineId) -> Duration {
        self.lines[line.at()].patience()
    }

    /// A report is the first to have heard of something of a class that left over a line with this round trip; `is_all` if nothing else of the
    /// class is under way, and `asks` if something is that is to be reported.
    pub(crate) fn on_heard(
        &mut self,
        now: Instant,
        line: LineId,
        class: u8,
        round_trip: Option<Duration>,
        (is_all, asks): (bool, bool),
    ) {
        let line = &mut self.lines[line.at()];
        line.round_trip = line.round_trip.map_or(round_trip, |before| round_trip.map(|it| it.min(before)));
        if is_all {
            line.waiting &= !(1 << class);
        }
        let patience = line.patience().saturating_mul(if asks { 1 } else { UNASKED });
        line.doubt = if line.waiting == 0 { Timer::Off } else { Timer::At(now + patience) };
        line.probes = None;
    }

    /// A report that has heard of nothing new of a class over a line; whether the line is suspect from now on.
    pub(crate) fn on_silent(&mut self, now: Instant, line: LineId, class: u8) -> bool {
        let line = &mut self.lines[line.at()];
        if line.probes.is_some() || !line.doubt.is_due(now) || line.waiting & 1 << class == 0 {
            return false;
        }
        line.probes = Some((Timer::Due, FIRST_PAUSE));
        line.hope = Timer::At(now + HOPE);
        true
    }

    /// A line is dark; whether that is news.
    pub(crate) fn darken(&mut self, line: LineId) -> bool {
        let line = &mut self.lines[line.at()];
        let is_news = line.probes.is_none();
        line.probes.get_or_insert((Timer::Due, FIRST_PAUSE));
        line.hope = Timer::Due;
        is_news
    }

    /// A frame has come over a line: it may carry something the other way too.
    pub(crate) fn on_sign(&mut self, line: LineId) {
        if let Some((at, pause)) = &mut self.lines[line.at()].probes
            && *pause > FIRST_PAUSE
        {
            (*at, *pause) = (Timer::Due, FIRST_PAUSE);
        }
    }

    /// Whether a line is suspect.
    pub(crate) const fn is_suspect(&self, line: LineId) -> bool {
        self.lines[line.at()].probes.is_some()
    }

    /// Whether a suspect line may come back soon.
    pub(crate) fn may_hope(&self, now: Instant, line: LineId) -> bool {
        !self.lines[line.at()].hope.is_due(now)
    }

    /// Whether nobody should wait for a line: it is suspect, or would be if any report came.
    pub(crate) fn is_doubtful(&self, now: Instant, line: LineId) -> bool {
        let line = &self.lines[line.at()];
        line.probes.is_some() || line.doubt.is_due(now)
    }

    /// Whether a probe of a suspect line is due.
    pub(crate) fn is_probe_due(&self, now: Instant, line: LineId) -> bool {
        self.lines[line.at()].probes.is_some_and(|(at, _)| at.is_due(now))
    }

    /// When the next probe is due, or a line becomes doubtful.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let of = |line: &Line| match line.probes {
            Some((at, _)) => earliest([at.poll_timeout(), line.hope.poll_timeout()]),
            None => line.doubt.poll_timeout(),
        };
        self.lines.iter().filter_map(of).min()
    }

    /// To be called then.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        for line in &mut self.lines {
            line.doubt.handle_timeout(now);
            line.hope.handle_timeout(now);
            line.probes.iter_mut().for_each(|(at, _)| at.handle_timeout(now));
        }
    }
}

impl Line {
    /// For how long nothing may be heard of what left over it.
    fn patience(&self) -> Duration {
        self.round_trip.unwrap_or(UNKNOWN).saturating_mul(2) + SLACK
    }
}

/// A line's round trip before anything was heard of it. Ours.
const UNKNOWN: Duration = Duration::from_secs(1);

/// Besides two round trips. Ours: a report may be kept back, and a queue be full.
const SLACK: Duration = Duration::from_millis(100);
/// So much longer nothing may be heard of what nobody has to answer. Ours.
const UNASKED: u64 = 3;
/// Between the first two probes of a suspect line, and then twice as long each time. Ours: it is used again soon after it has come back.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Of a suspect line. Ours: obstacles are passed in that time, and what is gone for longer is not to be sent to at full speed.
const HOPE: Duration = Duration::from_secs(30);
