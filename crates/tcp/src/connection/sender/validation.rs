//! The congestion window of a sender that does not use it: RFC 7661, or the decay of RFC 2861 as Linux has it
//! (`tcp_cwnd_restart`, `tcp_cwnd_application_limited`), or a plain restart (RFC 5681, 4.1).
//!
//! Only a sender that its application has limited keeps anything here.
//!
//! Deviations from RFC 7661:
//! - the phase is not entered while the application fills the window: in slow start, which doubles it in a round trip,
//!   what was acknowledged in the last one is always less than half of it (4.3);
//! - a mark of congestion is answered as a loss is (4.4.1), but nothing was sent again;
//! - R counts what was sent again as often as it was, where the RFC leaves out repetitions (4.4.1): the window falls no less.

use base::{Duration, Instant};

use super::Sender;
use crate::config::AfterIdle;
use crate::congestion::MaxFilter;
use crate::recovery::Phase;

/// How much of its window a sender has used.
#[derive(Clone, Debug)]
pub(super) struct Validation {
    /// `pipeACK` samples, by milliseconds; none counts before the first.
    pipe_ack: MaxFilter,
    sampled: bool,
    /// The round trip of the sample that is being taken, and the bytes delivered in it.
    round: u64,
    delivered: u64,
    /// The last round trip in which the application had nothing more to send.
    limited_in: u64,
    /// When the non-validated phase began, if it is in progress.
    since: Option<Instant>,
    /// In the recovery that ended the phase: max(`pipeACK`, `LossFlightSize`), and the bytes sent again before it.
    recovery: Option<(u64, u64)>,
    /// RFC 2861: the most that was in the network, and since when: `W_used` and `T_prev`.
    used: u64,
    used_since: Instant,
}

impl Validation {
    fn new(now: Instant, round: u64) -> Self {
        Self {
            pipe_ack: MaxFilter::default(),
            sampled: false,
            round,
            delivered: 0,
            limited_in: round,
            since: None,
            recovery: None,
            used: 0,
            used_since: now,
        }
    }

    /// Takes a `pipeACK` sample (RFC 7661, 4.2).
    fn sample(&mut self, now: Instant, srtt: Duration, bytes: u64) {
        self.pipe_ack.update(sampling_period(srtt).as_millis(), now.as_nanos() / 1_000_000, bytes);
    }

    /// RFC 7661 (4.3).
    fn judge(&mut self, began_at: Instant, window: u64) {
        let limited = self.limited_in + 1 >= self.round;
        let validated = !self.sampled || self.pipe_ack.get() >= window / 2;
        if validated {
            self.since = None;
        } else if limited {
            self.since.get_or_insert(began_at);
        }
    }
}

impl Sender {
    /// Whether the window is larger than the path has lately been seen to carry, so that data are to be spaced out
    /// (RFC 7661, 4.4.2).
    pub(super) fn is_unvalidated(&self) -> bool {
        self.validation.as_ref().is_some_and(|it| it.since.is_some())
    }

    /// New data are about to leave, and nothing is outstanding.
    pub(super) fn resume(&mut self, now: Instant) {
        let window = &self.config.window;
        let (idle, rto) = (now.saturating_since(self.last_sent_at), self.rtt.rto());
        match window.after_idle {
            AfterIdle::Restart if idle > rto => self.controller.on_restart(now),
            AfterIdle::Decay if idle > rto && !self.controller.steers_recovery() => {
                let halvings = (idle.as_nanos() - 1) / rto.as_nanos();
                let cwnd = self.controller.window();
                let restart = window.initial.bytes(u64::from(self.mss)).min(cwnd);
                self.lower_window((cwnd >> halvings.min(63)).max(restart));
            }
            AfterIdle::Validate => self.resume_unvalidated(now),
            _ => {}
        }
    }

    /// RFC 7661 (4.4.3): for each five minutes of the phase the window halves.
    fn resume_unvalidated(&mut self, now: Instant) {
        let (round, srtt) = (self.meter.round(), self.rtt.srtt().unwrap_or_default());
        if self.validation.is_none() && now.saturating_since(self.last_sent_at) > sampling_period(srtt) {
            // No sample counts any more, whatever there was.
            self.validation = Some(Box::new(Validation { sampled: true, ..Validation::new(now, round) }));
        }
        let Some(validation) = &mut self.validation else { return };
        validation.sample(now, srtt, 0);
        validation.judge(self.last_sent_at, self.controller.window());
        let initial = self.config.window.initial.bytes(u64::from(self.mss));
        while let Some(since) = self.validation.as_ref().and_then(|it| it.since)
            && now.saturating_since(since) > NON_VALIDATED_PERIOD
        {
            let half = (self.controller.window() / 2).max(initial);
            self.lower_window(half);
            if let Some(validation) = &mut self.validation {
                validation.since = Some(since + NON_VALIDATED_PERIOD);
            }
        }
    }

    /// The window becomes this, if it is less, and the threshold remembers three quarters of what it was (RFC 2861, 3;
    /// RFC 7661, 4.4.3).
    fn lower_window(&mut self, window: u64) {
        let controller = &mut self.controller;
        let cwnd = controller.window();
        if window < cwnd && !controller.steers_recovery() {
            let ssthresh = controller.ssthresh().map(|ssthresh| ssthresh.max(cwnd / 4 * 3));
            controller.set_window(window, ssthresh);
        }
    }

    /// New data left; `limited` says whether the application has no more although the window would allow it.
    pub(super) fn note_use(&mut self, now: Instant, limited: bool) {
        if !matches!(self.config.window.after_idle, AfterIdle::Decay | AfterIdle::Validate) {
            return;
        }
        let round = self.meter.round();
        if limited {
            let validation = self.validation.get_or_insert_with(|| Box::new(Validation::new(now, round)));
            validation.limited_in = round;
        }
        if self.config.window.after_idle == AfterIdle::Decay {
            self.decay_unused(now);
        }
    }

    /// RFC 2861 (3): a window that was not used for a time-out falls half of the way to what was used of it.
    fn decay_unused(&mut self, now: Instant) {
        let pipe = self.board.pipe();
        let (limited, most) = self.window_use(pipe);
        let Some(validation) = &mut self.validation else { return };
        let cwnd = self.controller.window();
        validation.used = validation.used.max(pipe);
        let slow_start = self.controller.ssthresh().is_some_and(|ssthresh| cwnd < ssthresh);
        let in_use = limited || (slow_start && cwnd < 2 * most);
        let over = now.saturating_since(validation.used_since) >= self.rtt.rto();
        if !in_use && !over {
            return;
        }
        let used = core::mem::take(&mut validation.used);
        validation.used_since = now;
        if !in_use && self.recovery.phase() == Phase::Open {
            let used = used.max(self.config.window.initial.bytes(u64::from(self.mss)));
            self.lower_window(cwnd.midpoint(used));
        }
    }

    /// An acknowledgement delivered so many bytes (RFC 7661, 4.2).
    pub(super) fn note_pipe_ack(&mut self, now: Instant, bytes: u64) {
        let Some(validation) = &mut self.validation else { return };
        if self.config.window.after_idle != AfterIdle::Validate || self.recovery.phase() != Phase::Open {
            return;
        }
        validation.delivered += bytes;
        let round = self.meter.round();
        if round != validation.round {
            validation.round = round;
            let delivered = core::mem::take(&mut validation.delivered);
            validation.sample(now, self.rtt.srtt().unwrap_or_default(), delivered);
            validation.sampled = true;
            validation.judge(now, self.controller.window());
        }
    }

    /// The controller has responded to congestion with `flight_size` bytes outstanding: a window that was not validated
    /// does not count (RFC 7661, 4.4.1).
    pub(super) fn respond_unvalidated(&mut self, flight_size: u64) {
        let Some(validation) = self.validation.as_mut().filter(|it| it.since.is_some()) else { return };
        validation.since = None;
        let safe = validation.pipe_ack.get().max(flight_size);
        validation.recovery = Some((safe, self.statistics.bytes_retransmitted));
        (validation.pipe_ack, validation.sampled) = (MaxFilter::default(), false);
        let window = (safe / 2).max(u64::from(self.mss));
        if window < self.controller.window() && !self.controller.steers_recovery() {
            self.controller.set_window(window, None);
        }
    }

    /// Fast recovery ended (RFC 7661, 4.4.1): what was sent again was too much as well.
    pub(super) fn leave_unvalidated(&mut self) {
        let Some((safe, before)) = self.validation.as_mut().and_then(|it| it.recovery.take()) else {
            return;
        };
        let resent = self.statistics.bytes_retransmitted - before;
        let window = (safe.saturating_sub(resent) / 2).max(u64::from(self.mss));
        if window < self.controller.window() && !self.controller.steers_recovery() {
            self.controller.set_window(window, Some(window));
        }
    }
}

/// RFC 7661 (4.2): how long the largest sample counts.
fn sampling_period(srtt: Duration) -> Duration {
    srtt.saturating_mul(3).max(LEAST_SAMPLING_PERIOD)
}

/// RFC 7661 (4.2).
const LEAST_SAMPLING_PERIOD: Duration = Duration::from_secs(1);
/// RFC 7661 (4.4): no more than five minutes.
const NON_VALIDATED_PERIOD: Duration = Duration::from_secs(300);
