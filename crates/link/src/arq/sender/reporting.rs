//! What reports tell a sender: which frames have come, which came late, and which are taken for lost.

use super::{Frame, LOOKS_PER_REPORT, MOST_LOOKS, Sender};
use crate::arq::frame::Report;
use crate::arq::lines::{LineId, PerLine};
use crate::arq::policy::Policy;
use crate::arq::sequence::{SPACE, beyond};

/// A frame has come, as a report is the first to tell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) sequence: u64,
    /// The line over which it came.
    pub(crate) line: LineId,
    /// The latest transmission by which it can have come.
    pub(crate) serial: u64,
    /// The newest transmission over that line that the report has heard of.
    pub(crate) heard: u64,
    /// Whether it was sent again meanwhile.
    pub(crate) is_needless: bool,
    /// Whether it was taken for lost, and had only been overtaken if it was.
    pub(crate) was_lost: bool,
}

impl Arrival {
    fn new(sequence: u64, frame: &Frame, was_flagged: bool, heard: &PerLine) -> Self {
        let lines = frame.lines;
        let (serial, line) = match frame.serial <= heard.of(lines.latest) {
            true => (frame.serial, lines.latest),
            false => (frame.before, lines.before),
        };
        let is_needless = frame.repaired > heard.of(lines.repaired);
        let was_lost = is_needless || was_flagged;
        Self { sequence, line, serial, heard: heard.of(line), is_needless, was_lost }
    }
}

/// What a report tells: of frames `start..end`, when the transmission `heard` over a line had come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    pub(crate) heard: u64,
    start: u64,
    /// The end of the runs that it lists.
    runs_end: u64,
    /// Whether it tells of all frames beyond too.
    is_open: bool,
}

impl Told {
    /// The same as of another transmission, over another line.
    pub(crate) const fn over(self, heard: u64) -> Self {
        Self { heard, ..self }
    }

    /// All frames, none of which had come.
    #[cfg(test)]
    pub(crate) const fn nothing(heard: u64) -> Self {
        Self { heard, start: 0, runs_end: 0, is_open: true }
    }

    pub(crate) fn covers(&self, sequence: u64) -> bool {
        self.start <= sequence && (sequence < self.runs_end || self.is_open)
    }
}

/// What a report was.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Taken {
    /// None that a receiver of these frames can have sent.
    Invalid,
    /// An older one that was overtaken.
    Old,
    Told(Told),
}

impl<P: Policy> Sender<P> {
    /// The unacknowledged frame that was sent least recently over a line, if `heard` would do to take it for lost.
    pub(crate) fn oldest_overtaken(&mut self, line: LineId, heard: u64) -> Option<u64> {
        let (serial, _) = self.oldest_over(line)?;
        (serial.saturating_add(P::REORDERING) <= heard).then_some(serial)
    }

    /// Takes a report by a receiver that had heard of `heard`, the number of a transmission over each line; whether it is one that a receiver of these
    /// frames can have sent. One that is none, or old, changes nothing. Of what is missing, what was sent up to `ripe` may be lost.
    /// `on_arrival` hears of each frame that has come, before the others are judged.
    pub(crate) fn handle_report(
        &mut self,
        report: &Report<'_>,
        heard: &PerLine,
        ripe: &PerLine,
        mut on_arrival: impl FnMut(Arrival),
    ) -> Taken {
        let in_flight = self.in_flight();
        let count = beyond(self.base, report.next);
        let next = self.base + count;
        if count > in_flight {
            // An older report that was overtaken is nothing wrong, and nothing new.
            return if SPACE - count <= self.window { Taken::Old } else { Taken::Invalid };
        }
        let Some(stretch) = Self::stretch(report, next, self.next()) else { return Taken::Invalid };
        self.looks = (self.looks + LOOKS_PER_REPORT).min(MOST_LOOKS);
        self.slide(next, heard, &mut on_arrival);
        self.loss = report.loss;
        if let Some((_, pairs)) = report.runs() {
            let mut at = stretch.0;
            for (missing, received) in pairs.flatten() {
                self.settle(at + missing, at + missing + received, heard, &mut on_arrival);
                at += missing + received;
            }
        }
        let told = Told { heard: 0, start: stretch.0, runs_end: stretch.1, is_open: report.is_open };
        for (line, heard) in heard.iter() {
            self.flag(line, Told { heard, ..told }, ripe.of(line));
        }
        Taken::Told(told)
    }

    /// The frames that a report tells of, if all of them were sent.
    fn stretch(report: &Report<'_>, next: u64, end: u64) -> Option<(u64, u64)> {
        let (from, pairs) = report.runs()?;
        let (start, mut at) = (next + from, next + from);
        for pair in pairs {
            let (missing, received) = pair?;
            at += missing + received;
        }
        (at <= end).then_some((start, at))
    }

    /// Moves the window's start: all frames before it have come.
    fn slide(&mut self, base: u64, heard: &PerLine, on_arrival: &mut impl FnMut(Arrival)) {
        while self.base < base
            && let Some(frame) = self.frames.pop_front()
        {
            if !frame.is_received {
                self.outstanding -= 1;
                let was_flagged = self.flagged.remove(&self.base);
                self.policy.on_settled(self.base);
                on_arrival(Arrival::new(self.base, &frame, was_flagged, heard));
            }
            if frame.last {
                self.buffers -= self.packets.pop_front().map_or(0, |packet| packet.capacity());
                self.packets_done += 1;
            }
            self.base += 1;
        }
        self.told.forget_before(self.base);
        self.policy.forget_before(self.base);
        self.forget_expiries();
        self.give_room_back();
    }

    /// Frames `start..end` have come, or count as if they had. Those of which that was known are passed over in one step, since each report
    /// may say it again.
    pub(super) fn settle(
        &mut self,
        start: u64,
        end: u64,
        heard: &PerLine,
        on_arrival: &mut impl FnMut(Arrival),
    ) {
        let Self { told, frames, flagged, policy, outstanding, base, .. } = self;
        told.insert(start.max(*base), end, |from, to| {
            for sequence in from..to {
                let frame = &mut frames[(sequence - *base) as usize];
                frame.is_received = true;
                let was_flagged = flagged.remove(&sequence);
                policy.on_settled(sequence);
                on_arrival(Arrival::new(sequence, frame, was_flagged, heard));
            }
            *outstanding -= to - from;
        });
    }

    /// Flags frames that are missing from a report although a later transmission over their line was heard, of those that were sent up to `ripe`. Those
    /// that it says nothing about wait for one that does; they hold up nobody whom it does tell of.
    pub(crate) fn flag(&mut self, line: LineId, told: Told, ripe: u64) {
        let Some(until) = told.heard.checked_sub(P::REORDERING).map(|until| until.min(ripe)) else {
            return;
        };
        while let Some((serial, sequence)) = self.oldest_over(line) {
            if serial > until {
                return;
            }
            if !told.covers(sequence) {
                return self.flag_all(line, told, until);
            }
            self.take_for_lost(sequence);
        }
    }

    /// Flags frames of the report alone that are missing from it and were sent up to the transmission `until` over a line, whatever
    /// was sent before them. Who reports again and again what loses nothing runs out of looks; then further reports
    /// will do.
    fn flag_all(&mut self, line: LineId, told: Told, until: u64) {
        let mut at = told.start.max(self.base);
        while let Some((from, to)) = self.told.first_gap(at, told.runs_end) {
            for sequence in from..to {
                let frame = self.frame(sequence);
                let is_ripe = frame.serial <= until && frame.lines.latest == line;
                if is_ripe && !self.flagged.contains(&sequence) {
                    self.take_for_lost(sequence);
                    continue;
                }
                let Some(looks) = self.looks.checked_sub(1) else { return };
                self.looks = looks;
                #[cfg(test)]
                {
                    self.looked += 1;
                }
            }
            at = to;
        }
    }
}
