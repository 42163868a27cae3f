//! Who gets the next frame: the line over which it arrives earliest.
//!
//! Ours. A line that is free asks. It gets something only if that arrives no later this way than by waiting for another line, behind
//! all that waits: a key stroke never goes by satellite while a faster line is there, a short page leaves by the faster line alone, and of a download
//! with much behind it both get as much as they carry. Where nothing is known of the lines, each takes what there is.
//!
//! What a line may be used for comes first: nobody waits for a line that may not carry a frame, and one that may not carry it does not get it.

use base::{Duration, Instant};

use super::Timer;
use super::lines::{LineId, LineTerms, MAX_LINES, When};
use crate::treatment::Treatment;

/// What is known of the lines, and how long those that cost nothing have been too little.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Completion {
    lines: [Option<LineTerms>; MAX_LINES],
    /// Due once more than the next frame has waited for long enough that metered lines help.
    pressed: Timer,
}

impl Completion {
    /// What a line carries, how long it takes, and what it may be used for.
    pub(crate) fn set(&mut self, line: LineId, terms: LineTerms) {
        self.lines[line.at()] = Some(terms);
    }

    /// A frame has left, and so many bytes still wait.
    pub(crate) fn on_frame(&mut self, now: Instant, waiting: u64) {
        if waiting <= FEW {
            self.pressed = Timer::Off;
        } else if self.pressed == Timer::Off {
            self.pressed = Timer::At(now + HOLD);
        }
    }

    /// Whether what an idle line carries costs nobody anything.
    pub(crate) fn is_free(&self, line: LineId) -> bool {
        self.lines[line.at()].is_none_or(|terms| terms.when == When::Always)
    }

    /// Whether a line may carry packets with a treatment, whatever else is said of it.
    pub(crate) fn carries(&self, line: LineId, treatment: Treatment) -> bool {
        self.lines[line.at()].is_none_or(|terms| terms.carries.contains(treatment))
    }

    /// Whether a line may be used at all for packets with a treatment, where of the others that carry these those that `is_there` may be.
    pub(crate) fn may_use(
        &self,
        now: Instant,
        line: LineId,
        treatment: Treatment,
        is_there: impl Fn(LineId) -> bool,
    ) -> bool {
        let Some(this) = self.lines[line.at()] else { return true };
        let has = |when| {
            let mut others = self.all().filter(|(other, it)| *other != line && it.when == when);
            others.any(|(other, it)| it.carries.contains(treatment) && is_there(other))
        };
        match this.when {
            When::Always => true,
            When::Metered => !has(When::Always) || self.pressed.is_due(now),
            When::Backup => !has(When::Always) && !has(When::Metered),
        }
    }

    /// Whether a frame of `len` bytes with a treatment should leave over this line while `waiting` bytes could leave over others that `is_there`.
    pub(crate) fn is_worth(
        &self,
        now: Instant,
        line: LineId,
        (len, waiting, treatment): (u64, u64, Treatment),
        is_there: impl Fn(LineId) -> bool,
    ) -> bool {
        let Some(this) = self.lines[line.at()] else { return true };
        if !this.carries.contains(treatment) || !self.may_use(now, line, treatment, &is_there) {
            return false;
        }
        let arrival = this.delay + this.rate.time_for(len * 8);
        let may_carry = |(other, terms): &(LineId, LineTerms)| {
            *other != line
                && terms.carries.contains(treatment)
                && is_there(*other)
                && self.may_use(now, *other, treatment, &is_there)
        };
        let mut others = self.all().filter(may_carry);
        others.all(|(_, other)| arrival <= other.delay + other.rate.time_for((len + waiting) * 8))
    }

    /// Whether nothing takes less time over any other line that `is_there`.
    pub(crate) fn is_nearest(&self, line: LineId, is_there: impl Fn(LineId) -> bool) -> bool {
        let Some(this) = self.lines[line.at()] else { return true };
        self.all().all(|(other, terms)| other == line || !is_there(other) || this.delay <= terms.delay)
    }

    fn all(&self) -> impl Iterator<Item = (LineId, LineTerms)> {
        self.lines.iter().zip(0..).filter_map(|(terms, number)| Some((LineId::new(number)?, (*terms)?)))
    }

    /// When lines that cost something may be used from on.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.pressed.poll_timeout()
    }

    /// To be called then.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.pressed.handle_timeout(now);
    }
}

/// Bytes that wait when the lines that cost nothing suffice. Ours: two packets.
const FEW: u64 = 3000;
/// For how long more has to wait before lines are used that cost something. Ours: a page is not worth it, a film is.
const HOLD: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use base::Rate;

    use super::super::lines::Treatments;
    use super::*;

    fn line(number: u8) -> LineId {
        LineId::new(number).unwrap()
    }

    fn terms(mbps: u64, millis: u64) -> LineTerms {
        LineTerms::new(Rate::from_bps(mbps * 1_000_000), Duration::from_millis(millis))
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// 20 Mbit/s at 25 ms and 50 Mbit/s at 300 ms: the second is worth it from 275 ms of the first one's line on.
    #[test]
    fn a_slow_line_is_worth_it_once_much_waits() {
        let mut completion = Completion::default();
        let frame = |waiting| (1400, waiting, Treatment::Reliable);
        assert!(completion.is_worth(at(0), line(1), frame(0), |_| true), "nothing is known");
        completion.set(line(0), terms(20, 25));
        completion.set(line(1), terms(50, 300));
        let is_worth = |number, waiting| completion.is_worth(at(0), line(number), frame(waiting), |_| true);
        assert!(is_worth(0, 0) && is_worth(0, 1 << 30));
        // 275 ms, and the 224 us that a frame takes there, less 560 us here.
        let enough = 275 * 20_000 / 8 - 1400 * 3 / 5;
        assert_eq!([enough - 1, enough].map(|waiting| is_worth(1, waiting)), [false, true]);
        let is_there = |other| other != line(0);
        assert!(completion.is_worth(at(0), line(1), frame(0), is_there), "the other one is dark");
    }

    /// What is free comes first, what costs is used where that has been too little for long, and what is kept for bad times in those alone.
    #[test]
    fn lines_are_used_as_they_may_be() {
        let mut completion = Completion::default();
        for (number, when) in [When::Always, When::Metered, When::Backup].into_iter().enumerate() {
            completion.set(line(number as u8), LineTerms { when, ..terms(20, 10) });
        }
        let uses = |completion: &Completion, now, dark: &[u8]| {
            let is_there = |line: LineId| !dark.contains(&line.number());
            [0, 1, 2].map(|number| completion.may_use(now, line(number), Treatment::Reliable, is_there))
        };
        assert_eq!(uses(&completion, at(0), &[]), [true, false, false]);
        assert_eq!(uses(&completion, at(0), &[0]), [true, true, false]);
        assert_eq!(uses(&completion, at(0), &[0, 1]), [true, true, true]);
        assert_eq!(uses(&completion, at(0), &[1]), [true, false, false]);
        completion.on_frame(at(0), FEW + 1);
        completion.on_frame(at(1000), FEW + 1);
        assert_eq!(completion.poll_timeout(), Some(at(2000)));
        assert_eq!(uses(&completion, at(1999), &[]), [true, false, false]);
        assert_eq!(uses(&completion, at(2000), &[]), [true, true, false]);
        completion.on_frame(at(2001), FEW);
        assert_eq!(uses(&completion, at(2001), &[]), [true, false, false]);
        // What is free is no help to packets that it may not carry.
        completion.set(line(0), LineTerms { carries: Treatments::of(&[Treatment::Once]), ..terms(20, 10) });
        assert_eq!(uses(&completion, at(2001), &[]), [true, true, false]);
    }

    /// Nobody waits for a line that may not carry the frame.
    #[test]
    fn what_a_line_may_not_carry_goes_over_another() {
        let mut completion = Completion::default();
        let carries = Treatments::of(&[Treatment::Reliable]);
        completion.set(line(0), LineTerms { carries, ..terms(20, 10) });
        completion.set(line(1), terms(20, 300));
        let lines = |treatment| {
            [0, 1].map(|number| completion.is_worth(at(0), line(number), (1400, 0, treatment), |_| true))
        };
        assert_eq!(lines(Treatment::Reliable), [true, false]);
        assert_eq!(lines(Treatment::Interactive), [false, true]);
    }
}
