//! When a rate-controlled source generates its records.

use base::{Duration, Instant, Rate};

/// Records of one size at a fixed rate: record k is due `k * record / rate` after the first, to the nanosecond.
#[derive(Clone, Debug)]
pub struct Schedule {
    rate: Rate,
    record: u32,
    /// For how long records are due.
    span: Option<Duration>,
    start: Option<Instant>,
    next: u64,
    due: Option<Instant>,
}

impl Schedule {
    /// Records of `record` bytes at `rate`, which is not zero, for `span` from their start, or for ever.
    #[must_use]
    pub const fn new(rate: Rate, record: u32, span: Option<Duration>) -> Self {
        Self { rate, record, span, start: None, next: 0, due: None }
    }

    /// Bytes of a record.
    #[must_use]
    pub const fn record(&self) -> u32 {
        self.record
    }

    /// Whether it ends by itself.
    #[must_use]
    pub const fn ends(&self) -> bool {
        self.span.is_some()
    }

    /// Records that have been due.
    #[must_use]
    pub const fn generated(&self) -> u64 {
        self.next
    }

    /// The first record is due now.
    pub fn start(&mut self, now: Instant) {
        if self.start.is_none() {
            self.start = Some(now);
            self.due = self.time_of_next();
        }
    }

    /// No further record is due.
    pub const fn stop(&mut self) {
        self.due = None;
    }

    /// When the next record is due.
    #[must_use]
    pub const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Whether records were due and will not be again.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.start.is_some() && self.due.is_none()
    }

    /// Takes the next record that is due by `now`: the time at which it was.
    pub fn take(&mut self, now: Instant) -> Option<Instant> {
        let due = self.due.filter(|&due| due <= now)?;
        self.next += 1;
        self.due = self.time_of_next();
        Some(due)
    }

    fn time_of_next(&self) -> Option<Instant> {
        // From the first record, not from the last: no remainder is ever dropped.
        let nanobits = u128::from(self.next) * u128::from(self.record) * 8 * 1_000_000_000;
        let nanos = nanobits / u128::from(self.rate.as_bps());
        let after = Duration::from_nanos(u64::try_from(nanos).ok()?);
        let in_time = self.span.is_none_or(|span| after < span);
        Some(self.start?.saturating_add(after)).filter(|_| in_time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_records_drift_by_nothing() {
        // 700 bit/s in records of 100 bytes: 1.142857... s each.
        let mut schedule = Schedule::new(Rate::from_bps(700), 100, None);
        assert_eq!(schedule.due(), None);
        let start = Instant::from_nanos(5);
        schedule.start(start);
        let last = (0..700_001).map(|_| schedule.take(Instant::MAX).unwrap()).last().unwrap();
        assert_eq!(last, start + Duration::from_secs(800_000));
    }

    #[test]
    fn records_are_due_for_their_span() {
        let mut schedule = Schedule::new(Rate::from_bps(8_000), 1000, Some(Duration::from_secs(3)));
        schedule.start(Instant::ZERO);
        assert_eq!(schedule.take(Instant::ZERO), Some(Instant::ZERO));
        assert_eq!(schedule.take(Instant::ZERO), None);
        while schedule.take(Instant::MAX).is_some() {}
        assert!(schedule.generated() == 3 && schedule.is_over() && schedule.ends());
    }
}
