//! What the bottleneck carries.
//!
//! While a queue stands, the bottleneck is never idle: what it lets through is what it carries. That counts where it differs from what we sent, so that a delay
//! of other origin changes nothing. While none stands, the capacity is at least what was sent and arrived, and what is sent grows beyond it, by more and more.

use base::Instant;

use super::losses::Losses;
use super::pacing::Pacing;
use super::queue::Queue;
use super::window::{Line, Window};

/// The capacity as far as it is known, and by how much more is sent to find out whether there is more.
#[derive(Clone, Copy, Debug)]
pub struct Capacity {
    /// Bits per second, headers included.
    bits: f64,
    /// Growth above it, as a part of it, while no queue stands.
    growth: f64,
    grown_at: Instant,
    /// What the bottleneck let through in the latest window, if a queue stood and we used what we may.
    carried: Option<f64>,
    /// What it let through in the latest window, whatever we may.
    passed: f64,
    /// Whether a little more is lost than the channel loses, as by a queue that is too short to be seen.
    overflows: bool,
}

/// What a window tells about the bottleneck. Rates are in bits per second.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// What was sent.
    pub offered: f64,
    /// What the bottleneck let through.
    pub carried: f64,
    /// Whether a queue stood all the time.
    pub is_busy: bool,
    /// Whether we sent what we may.
    pub is_used: bool,
    /// Whether a little more is lost than the channel loses.
    pub overflows: bool,
    /// When the first of it left.
    pub since: Instant,
    /// Whether that was while the queue was to run empty, or soon after: then it is no wonder that none stands.
    pub is_drained: bool,
}

impl Measured {
    /// What a `window` tells, if it took any time. `pacing` knows whether we sent what we may.
    #[must_use]
    pub fn of(window: &Window, line: Line, losses: &Losses, pacing: &Pacing) -> Option<Self> {
        let span = &window.span;
        let (sent_in, received_in) = (span.sent_in.as_secs_f64(), span.received_in.as_secs_f64());
        let overflows = losses.are_some(span);
        let sent = line.bits(span.sent) as f64;
        let arrived = line.bits(span.received) as f64 / (1.0 - losses.channel());
        // A bottleneck lets through what the channel then loses, but not what its own queue drops.
        let through = if overflows { arrived.min(sent) } else { sent };
        (sent_in > 0.0 && received_in > 0.0).then(|| Self {
            offered: sent / sent_in,
            carried: through / received_in,
            is_busy: window.is_busy,
            is_used: pacing.is_used(window, line),
            overflows,
            since: window.since.unwrap_or(Instant::ZERO),
            is_drained: window.since.is_some_and(|since| pacing.is_of_drain(since)),
        })
    }
}

/// Arrivals that differ from what was sent by this part tell of the bottleneck. Ours.
const DIFFERENCE: f64 = 0.03;
/// A window makes the capacity this part of what it was at least: the line may have been blocked meanwhile. Ours.
pub const LEAST: f64 = 0.125;
/// What is sent must be this part of the capacity to show that there is more. Ours.
const PROBED: f64 = 0.98;
/// Growth at most, while what stands counts as the path's delay: others may share the bottleneck, and their queue must not overflow by it. Ours.
const CAREFUL: f64 = 0.25;
/// Growth this much above the least counts as the least: remainders of floating point.
const ABOUT: f64 = 1.01;

impl Capacity {
    /// A capacity that is believed until something else is measured; `growth` above it is tried.
    #[must_use]
    pub const fn new(bits: f64, growth: f64) -> Self {
        Self { bits, growth, grown_at: Instant::ZERO, carried: None, passed: bits, overflows: false }
    }

    /// In bits per second.
    #[must_use]
    pub const fn bits(&self) -> f64 {
        self.bits
    }

    /// What the bottleneck let through in the latest window, if a queue stood and we used what we may.
    #[must_use]
    pub const fn carried(&self) -> Option<f64> {
        self.carried
    }

    /// What it let through in the latest window, whether or not we used what we may.
    #[must_use]
    pub const fn passed(&self) -> f64 {
        self.passed
    }

    /// Growth above the capacity, as a part of it, while no queue stands.
    #[must_use]
    pub const fn growth(&self) -> f64 {
        self.growth
    }

    /// Whether a little more is lost than the channel loses.
    #[must_use]
    pub const fn overflows(&self) -> bool {
        self.overflows
    }

    /// Whether the capacity was measured, rather than only being known to be no less.
    #[must_use]
    pub fn is_known(&self, queue: &Queue) -> bool {
        self.growth <= queue.least_growth(self.bits) * ABOUT
    }

    /// Takes another capacity for the truth, with `growth` above it.
    pub const fn set(&mut self, now: Instant, bits: f64, growth: f64) {
        (self.bits, self.growth, self.grown_at) = (bits, growth, now);
    }

    /// It is at least this.
    pub const fn raise(&mut self, bits: f64) {
        self.bits = self.bits.max(bits);
    }

    /// It is at most this.
    pub const fn limit(&mut self, bits: f64) {
        self.bits = self.bits.min(bits);
    }

    /// What was believed is only the part `part` of what there is.
    pub const fn divide(&mut self, part: f64) {
        self.bits /= part;
    }

    /// No more is tried than what builds the queue that is kept.
    pub fn settle(&mut self, now: Instant, queue: &Queue) {
        (self.growth, self.grown_at) = (queue.least_growth(self.bits), now);
    }

    /// Takes in what a window told; whether it is the bottleneck itself that was measured.
    pub fn observe(&mut self, now: Instant, measured: &Measured, queue: &Queue) -> bool {
        let Measured { offered, carried, is_busy, is_used, overflows, since, is_drained } = *measured;
        self.overflows = overflows;
        if overflows {
            self.settle(now, queue);
        }
        self.carried = (is_busy && is_used).then_some(carried);
        self.passed = carried;
        let differs = (carried - offered).abs() > DIFFERENCE * offered;
        if is_busy && differs && (carried > offered || is_used) {
            self.bits = carried.max(self.bits * LEAST);
            self.settle(now, queue);
            return true;
        }
        let passed = offered.min(carried);
        if is_used && (passed > self.bits || !is_busy) {
            // Only what was sent beyond what is known shows that there is more.
            let was_probed = offered >= PROBED * self.bits && !overflows;
            self.raise(passed);
            let is_empty = queue.newest() < queue.target(self.bits);
            // What left before it grew shows nothing of that.
            if !is_busy && was_probed && is_empty && since >= self.grown_at && !is_drained {
                let most = if queue.is_accepted() { CAREFUL } else { 1.0 };
                self.growth = (self.growth * 2.0).min(most).max(queue.least_growth(self.bits));
                self.grown_at = now;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survey::report::{Span, Totals};
    use base::Duration;

    const SENT: Measured = Measured {
        offered: 10e6,
        carried: 10e6,
        is_busy: false,
        is_used: true,
        overflows: false,
        since: Instant::ZERO,
        is_drained: false,
    };

    /// At a time in ms, of what left in the 200 ms before.
    fn observe(capacity: &mut Capacity, at: u64, measured: Measured) -> bool {
        let ms = |millis| Instant::ZERO + Duration::from_millis(millis);
        let measured = Measured { since: ms(at - 200), ..measured };
        capacity.observe(ms(at), &measured, &Queue::default())
    }

    #[test]
    fn a_busy_bottleneck_tells_what_it_carries() {
        for (measured, bits) in [
            (Measured { carried: 8e6, is_busy: true, ..SENT }, 8e6),
            // A delay that neither grows nor shrinks may be no queue.
            (Measured { carried: 9.8e6, is_busy: true, ..SENT }, 10e6),
            // Nothing stood, so it may have been idle.
            (Measured { carried: 8e6, ..SENT }, 10e6),
            // We sent too little to say that there is no more, but more came than we sent.
            (Measured { carried: 8e6, is_busy: true, is_used: false, ..SENT }, 10e6),
            (Measured { carried: 12e6, is_busy: true, is_used: false, ..SENT }, 12e6),
        ] {
            let mut capacity = Capacity::new(10e6, 0.0);
            let is_measured = observe(&mut capacity, 1000, measured);
            assert_eq!((capacity.bits(), is_measured), (bits, bits != 10e6), "{measured:?}");
        }
    }

    #[test]
    fn a_bottleneck_lets_through_what_the_channel_loses_but_not_what_it_drops() {
        let totals = |datagrams| Totals { datagrams, bytes: 1250 * datagrams };
        let (sent_in, received_in) = (Duration::from_millis(500), Duration::from_secs(1));
        let span = Span { sent: totals(1000), sent_in, received: totals(800), received_in };
        let window = Window { span, since: Some(Instant::ZERO), is_busy: true };
        for (channel, carried) in [(0.2, 10e6), (0.0, 8e6)] {
            let mut losses = Losses::default();
            losses.accept(channel);
            let measured = Measured::of(&window, Line { overhead: 0 }, &losses, &Pacing::new(20e6)).unwrap();
            assert!((measured.carried - carried).abs() < 1.0 && measured.offered == 20e6, "{measured:?}");
        }
        let pacing = Pacing::new(20e6);
        let mut instant = window;
        instant.span.received_in = Duration::ZERO;
        for window in [Window::default(), instant] {
            assert!(Measured::of(&window, Line { overhead: 0 }, &Losses::default(), &pacing).is_none());
        }
    }

    /// Of 1000 datagrams that left the channel loses a fifth, and the bottleneck's queue dropped more.
    #[test]
    fn what_a_queue_drops_besides_the_channel_s_losses_was_not_carried() {
        let totals = |datagrams| Totals { datagrams, bytes: 1250 * datagrams };
        let time = Duration::from_secs(1);
        let span = Span { sent: totals(1000), sent_in: time, received: totals(640), received_in: time };
        let window = Window { span, since: Some(Instant::ZERO), is_busy: true };
        let mut losses = Losses::default();
        losses.accept(0.2);
        let measured = Measured::of(&window, Line { overhead: 0 }, &losses, &Pacing::new(20e6)).unwrap();
        assert!((measured.carried - 8e6).abs() < 1.0 && measured.overflows, "{measured:?}");
    }

    #[test]
    fn what_arrives_is_carried_and_growth_doubles_while_more_is_tried() {
        let mut capacity = Capacity::new(5e6, 0.2);
        observe(&mut capacity, 1000, SENT);
        assert_eq!((capacity.bits(), capacity.growth()), (10e6, 0.4));
        observe(&mut capacity, 1100, SENT);
        assert_eq!(capacity.growth(), 0.4, "it was not tried yet");
        observe(&mut capacity, 1250, Measured { is_drained: true, ..SENT });
        assert_eq!(capacity.growth(), 0.4, "the queue was made to run empty");
        observe(&mut capacity, 1300, Measured { offered: 9e6, carried: 9e6, ..SENT });
        assert_eq!((capacity.bits(), capacity.growth()), (10e6, 0.4), "no more was tried");
        observe(&mut capacity, 1300, SENT);
        observe(&mut capacity, 1600, SENT);
        assert_eq!(capacity.growth(), 1.0, "at most twice as much");
    }

    #[test]
    fn a_queue_or_losses_end_the_growth() {
        for measured in [
            Measured { carried: 8e6, is_busy: true, ..SENT },
            Measured { overflows: true, carried: 9e6, ..SENT },
        ] {
            let mut capacity = Capacity::new(5e6, 1.0);
            assert!(!capacity.is_known(&Queue::default()));
            observe(&mut capacity, 1000, measured);
            assert!(capacity.is_known(&Queue::default()), "{measured:?}");
            assert_eq!(capacity.carried(), measured.is_busy.then_some(8e6));
        }
    }

    #[test]
    fn it_is_kept_within_bounds() {
        let mut capacity = Capacity::new(5e6, 1.0);
        capacity.limit(4e6);
        capacity.raise(3e6);
        assert_eq!(capacity.bits(), 4e6);
        capacity.limit(2e6);
        capacity.raise(3e6);
        assert_eq!(capacity.bits(), 3e6);
    }
}
