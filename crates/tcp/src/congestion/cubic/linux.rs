//! CUBIC as Linux has it (`tcp_cubic.c` of 6.x), in whole segments.
//!
//! Deviations from RFC 9438, which are Linux's:
//! - window and threshold are whole segments: in small windows rounding decides;
//! - the window follows the curve one least round trip ahead, by a segment for so many that are acknowledged, at least two (4.4
//!   and 4.5 take a smoothed round trip, and go by fractions);
//! - Reno's rate is imitated with `alpha_cubic` for as long as it takes, never with 1 (4.3);
//! - a time-out forgets `W_max` (4.8 keeps it);
//! - before the first loss the window grows by a twentieth a round trip at least.
//!
//! Deviations from Linux: time is exact, not in jiffies; growth after a spurious congestion starts anew.

use base::{Duration, Instant};

use super::super::{AckSample, Cause, Congestion, Controller, MAX_WINDOW, SlowStart, Start};

/// Linux's CUBIC. Windows are in segments, but where it says bytes.
#[derive(Clone, Debug)]
pub struct LinuxCubic {
    mss: u64,
    cwnd: u64,
    restart_window: u64,
    slow_start: SlowStart,
    /// Bytes acknowledged that are not a whole segment yet.
    part: u64,
    /// Segments acknowledged since the window last grew in congestion avoidance.
    acked: u64,
    /// The window at the last loss, a little less if that came early; zero before one, and after a time-out.
    w_max: u64,
    /// The least round trip since the last time-out.
    delay_min: Duration,
    epoch: Option<Epoch>,
    /// When data were last sent or acknowledged.
    active_at: Instant,
}

/// A congestion avoidance stage.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    began: Instant,
    /// Where the curve is flat.
    origin: u64,
    /// Seconds from its begin until there.
    k: f64,
    /// The window that Reno would have, and the segments acknowledged since that grew.
    reno: u64,
    reno_acked: u64,
    /// Segments to be acknowledged for one more of window, as of `looked_at` and the window then.
    per_segment: u64,
    looked_at: Instant,
    looked_with: u64,
}

impl LinuxCubic {
    /// A controller in slow start.
    #[must_use]
    pub fn new(start: &Start) -> Self {
        let initial = (start.initial_window / start.mss).max(1);
        Self {
            mss: start.mss,
            cwnd: initial,
            restart_window: initial,
            slow_start: SlowStart::new(start),
            part: 0,
            acked: 0,
            w_max: 0,
            delay_min: Duration::MAX,
            epoch: None,
            active_at: Instant::ZERO,
        }
    }

    fn begin_epoch(&self, now: Instant) -> Epoch {
        let below = self.w_max.saturating_sub(self.cwnd);
        Epoch {
            began: now,
            origin: self.w_max.max(self.cwnd),
            k: libm::cbrt(below as f64 / C),
            reno: self.cwnd,
            reno_acked: 0,
            per_segment: u64::MAX,
            looked_at: Instant::ZERO,
            looked_with: 0,
        }
    }

    /// `bictcp_update`: how many acknowledged segments make the window one larger.
    fn per_segment(&mut self, now: Instant, acked: u64) -> u64 {
        let mut epoch = self.epoch.take().unwrap_or_else(|| self.begin_epoch(now));
        epoch.reno_acked += acked;
        let is_fresh = epoch.looked_with == self.cwnd && now.saturating_since(epoch.looked_at) <= LOOK_AGAIN;
        if !is_fresh {
            (epoch.looked_at, epoch.looked_with) = (now, self.cwnd);
            let cubic = self.by_curve(&epoch, now);
            epoch.per_segment = cubic.min(self.by_reno(&mut epoch)).max(FEWEST_PER_SEGMENT);
        }
        self.epoch = Some(epoch);
        epoch.per_segment
    }

    fn by_curve(&self, epoch: &Epoch, now: Instant) -> u64 {
        let ahead = if self.delay_min == Duration::MAX { Duration::ZERO } else { self.delay_min };
        let t = (now.saturating_since(epoch.began) + ahead).as_secs_f64();
        let off = (t - epoch.k).abs();
        // A float-to-integer cast saturates.
        let delta = (C * off * off * off) as u64;
        let target =
            if t < epoch.k { epoch.origin.saturating_sub(delta) } else { epoch.origin.saturating_add(delta) };
        let by_curve = if target > self.cwnd {
            self.cwnd / (target - self.cwnd)
        } else {
            self.cwnd.saturating_mul(PER_SEGMENT_ABOVE)
        };
        if self.w_max == 0 { by_curve.min(PER_SEGMENT_AT_FIRST) } else { by_curve }
    }

    /// Where Reno, with the reduction of CUBIC, would have grown further.
    fn by_reno(&self, epoch: &mut Epoch) -> u64 {
        let delta = (self.cwnd * RENO_SCALE / 8).max(1);
        let grown = epoch.reno_acked.saturating_sub(1) / delta;
        epoch.reno += grown;
        epoch.reno_acked -= grown * delta;
        match epoch.reno.saturating_sub(self.cwnd) {
            0 => u64::MAX,
            ahead => self.cwnd / ahead,
        }
    }

    /// `tcp_cong_avoid_ai`.
    fn avoid_congestion(&mut self, now: Instant, acked: u64) {
        let per_segment = self.per_segment(now, acked);
        if self.acked >= per_segment {
            self.acked = 0;
            self.cwnd += 1;
        }
        self.acked += acked;
        if self.acked >= per_segment {
            self.cwnd += self.acked / per_segment;
            self.acked %= per_segment;
        }
        self.cwnd = self.cwnd.min(self.most());
    }

    const fn most(&self) -> u64 {
        MAX_WINDOW / self.mss
    }

    /// The segments in so many acknowledged bytes and what was left before.
    const fn whole(&mut self, bytes: u64) -> u64 {
        let bytes = self.part + bytes;
        self.part = bytes % self.mss;
        bytes / self.mss
    }
}

impl Controller for LinuxCubic {
    fn on_ack(&mut self, ack: &AckSample) {
        self.active_at = ack.now;
        if let Some(rtt) = ack.rtt {
            // `cubictcp_acked`: right after a recovery a queue may still be full.
            let settled = self.epoch.is_none_or(|it| ack.now.saturating_since(it.began) >= SETTLED);
            if settled || self.delay_min == Duration::MAX {
                self.delay_min = self.delay_min.min(rtt);
            }
        }
        if ack.recovering || ack.bytes == 0 {
            return;
        }
        let (window, in_slow_start) = (self.window(), self.slow_start.active(self.window()));
        if !ack.fills(window, in_slow_start) {
            return;
        }
        let mut acked = self.whole(ack.opening_bytes());
        if in_slow_start {
            let whole = AckSample { delivered_bytes: acked * self.mss, ..*ack };
            let (window, rest) = self.slow_start.on_ack(window, &whole);
            self.cwnd = (window / self.mss).max(self.cwnd).min(self.most());
            acked = rest / self.mss;
        }
        if acked > 0 {
            self.avoid_congestion(ack.now, acked);
        }
    }

    fn on_congestion(&mut self, event: &Congestion) {
        let timeout = event.cause == Cause::Timeout;
        let flight = (event.flight_size / self.mss).min(self.cwnd);
        let threshold = (flight * BETA_1024 / 1024).max(2);
        self.w_max = if self.cwnd < self.w_max { self.cwnd * (1024 + BETA_1024) / 2048 } else { self.cwnd };
        self.epoch = None;
        // `tcp_init_cwnd_reduction`, `tcp_enter_loss`: what was acknowledged for the larger window does not count for this one.
        self.acked = 0;
        self.slow_start.set_threshold(threshold * self.mss, timeout);
        if timeout {
            // `bictcp_reset`.
            (self.w_max, self.delay_min) = (0, Duration::MAX);
            self.cwnd = 1;
        } else {
            self.cwnd = threshold;
        }
    }

    fn on_send_opportunity(&mut self, now: Instant, in_flight: u64) {
        // `CA_EVENT_TX_START`: an idle time is no time of growth.
        if in_flight == 0
            && let Some(epoch) = &mut self.epoch
        {
            let idle = now.saturating_since(self.active_at);
            epoch.began = epoch.began.saturating_add(idle).min(now);
        }
        self.active_at = now;
    }

    fn on_spurious_congestion(&mut self, _now: Instant, window: u64, ssthresh: u64) {
        self.set_window(window, Some(ssthresh));
        self.epoch = None;
    }

    fn on_restart(&mut self, _now: Instant) {
        self.cwnd = self.cwnd.min(self.restart_window);
        self.epoch = None;
    }

    fn window(&self) -> u64 {
        self.cwnd * self.mss
    }

    fn set_window(&mut self, window: u64, ssthresh: Option<u64>) {
        if let Some(ssthresh) = ssthresh {
            self.slow_start.set_threshold(ssthresh, false);
        }
        self.cwnd = (window.min(MAX_WINDOW) / self.mss).max(1);
    }

    fn ssthresh(&self) -> Option<u64> {
        Some(self.slow_start.threshold())
    }
}

/// Segments per cubic second: `bic_scale` = 41 of Linux, where RFC 9438 (5.1) has 0.4.
const C: f64 = 410.0 / 1024.0;
/// `beta_cubic` in 1/1024: `beta` = 717 of Linux, 0.7 in RFC 9438 (4.6).
const BETA_1024: u64 = 717;
/// Acknowledged segments, in eighths of the window, for one more of Reno's: `beta_scale` of Linux,
/// 8 (1 + beta) / 3 (1 - beta); its inverse is `alpha_cubic` of RFC 9438 (4.3).
const RENO_SCALE: u64 = 15;
/// Linux: the window at most grows by one for two acknowledged.
const FEWEST_PER_SEGMENT: u64 = 2;
/// Linux: what the window grows by where it is above the curve, a hundredth a round trip.
const PER_SEGMENT_ABOVE: u64 = 100;
/// Linux: before the first loss, a twentieth a round trip.
const PER_SEGMENT_AT_FIRST: u64 = 20;
/// Linux, HZ / 32: how long what the curve said counts while the window stays.
const LOOK_AGAIN: Duration = Duration::from_micros(31_250);
/// Linux, HZ: round trips count again so long after a recovery.
const SETTLED: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::samples::{MSS, ack, at_ms, congestion, start};

    fn avoiding(segments: u64) -> LinuxCubic {
        let mut cubic = LinuxCubic::new(&start(segments));
        cubic.slow_start.set_threshold(2 * MSS, false);
        cubic
    }

    /// So many acknowledgements of a segment each at `ms`, with the window full.
    fn acknowledge(cubic: &mut LinuxCubic, ms: u64, segments: u64) {
        for _ in 0..segments {
            let rtt = Some(Duration::from_millis(20));
            let sample = AckSample { now: at_ms(ms), rtt, ..ack(MSS, 0) };
            cubic.on_ack(&sample);
        }
    }

    /// 717 / 1024 of the window, rounded down: 3 become 2, 6 become 4, and 2 is the least.
    #[test]
    fn reductions_are_whole_segments() {
        for (before, after) in [(1, 2), (3, 2), (5, 3), (6, 4), (10, 7), (100, 70)] {
            let mut cubic = avoiding(before);
            cubic.on_congestion(&congestion(before * MSS, Cause::Loss));
            assert_eq!((cubic.cwnd, cubic.ssthresh()), (after, Some(after * MSS)), "from {before}");
        }
    }

    /// A window of 4 is Reno's to grow, by one for each 4 * 15 / 8 = 7 acknowledged segments beyond the first: the eighth raises
    /// what Reno would have, and from then on two fours of acknowledgements make a segment.
    #[test]
    fn small_windows_grow_as_reno_with_alpha_below_one() {
        let mut cubic = avoiding(6);
        cubic.on_congestion(&congestion(6 * MSS, Cause::Loss));
        assert_eq!(cubic.cwnd, 4);
        let mut grown_after = Vec::new();
        for round in 0..40 {
            let before = cubic.cwnd;
            acknowledge(&mut cubic, 100 * round, before);
            if cubic.cwnd > before {
                grown_after.push(round);
            }
        }
        // About .53 of a segment a round trip: Reno's rate, alpha_cubic, also beyond the old window of 6.
        assert!((20..=24).contains(&(cubic.cwnd - 4)), "{} after {grown_after:?}", cubic.cwnd);
    }

    /// `tcp_init_cwnd_reduction`: acknowledgements before a loss do not count after it.
    #[test]
    fn growth_begins_anew_after_a_loss() {
        let mut cubic = avoiding(10);
        acknowledge(&mut cubic, 0, 9);
        cubic.on_congestion(&congestion(10 * MSS, Cause::Loss));
        let reduced = cubic.cwnd;
        acknowledge(&mut cubic, 100, 3);
        assert_eq!(cubic.cwnd, reduced);
    }

    /// A part of a segment opens nothing, and is not lost.
    #[test]
    fn parts_of_segments_add_up() {
        let mut cubic = LinuxCubic::new(&start(10));
        for _ in 0..4 {
            cubic.on_ack(&ack(MSS / 2, 10 * MSS));
        }
        assert_eq!(cubic.window(), 12 * MSS);
    }

    /// A time-out leaves no old window to aim at: the next stage starts flat.
    #[test]
    fn a_timeout_forgets_the_old_window() {
        let mut cubic = avoiding(100);
        cubic.on_congestion(&congestion(100 * MSS, Cause::Timeout));
        assert_eq!((cubic.cwnd, cubic.w_max, cubic.ssthresh()), (1, 0, Some(70 * MSS)));
        acknowledge(&mut cubic, 0, 69);
        assert_eq!(cubic.cwnd, 70);
        acknowledge(&mut cubic, 10, 1);
        assert_eq!(cubic.epoch.map(|it| (it.origin, it.k.to_bits())), Some((70, 0)));
    }

    /// The window follows `W(t) = W_max + C (t - K)^3`, back at the old window after K = cbrt(30 / .4004) = 4.2 s, and beyond it.
    #[test]
    fn the_curve_leads_back_to_the_old_window_and_beyond() {
        let mut cubic = avoiding(100);
        cubic.on_congestion(&congestion(100 * MSS, Cause::Loss));
        for step in 0..80 {
            let window = cubic.cwnd;
            acknowledge(&mut cubic, 100 * step, window / 2);
            // From the second step on: the first began it.
            let off = 0.1 * step as f64 + 0.02 - 4.21;
            let curve = 100.0 + 0.4004 * off * off * off;
            let behind = curve - cubic.cwnd as f64;
            assert!(step < 3 || (-1.0..3.0).contains(&behind), "{curve} and {} after {step}", cubic.cwnd);
        }
        assert!((118..=123).contains(&cubic.cwnd), "{}", cubic.cwnd);
    }

    /// `tcp_cong_avoid_ai`: what makes no whole segment counts later, but once, as one, where fewer have come to be enough.
    #[test]
    fn what_is_left_of_a_round_counts_in_the_next() {
        let mut cubic = avoiding(100);
        cubic.per_segment(at_ms(0), 1);
        for (acked, grown, left) in [(7, 0, 7), (4, 1, 4), (9, 2, 3), (19, 4, 2)] {
            let (before, mut fixed) = (cubic.cwnd, cubic.epoch.unwrap());
            (fixed.per_segment, fixed.looked_with, fixed.looked_at) =
                (if acked == 7 { 10 } else { 5 }, before, at_ms(0));
            cubic.epoch = Some(fixed);
            cubic.avoid_congestion(at_ms(1), acked);
            assert_eq!((cubic.cwnd - before, cubic.acked), (grown, left), "{acked}");
        }
    }

    /// `cubictcp_acked`: for a second after a reduction round trips may be those of a full queue; then the least counts again.
    #[test]
    fn round_trips_right_after_a_reduction_do_not_count() {
        let mut cubic = avoiding(100);
        let rtt = |cubic: &mut LinuxCubic, at, rtt| {
            cubic.on_ack(&AckSample { now: at_ms(at), rtt: Some(Duration::from_millis(rtt)), ..ack(MSS, 0) });
            cubic.delay_min.as_millis()
        };
        assert_eq!(rtt(&mut cubic, 0, 80), 80, "the first counts, whenever it comes");
        assert_eq!(rtt(&mut cubic, 500, 40), 80);
        assert_eq!(rtt(&mut cubic, 1000, 60), 60);
    }

    /// Acknowledgements during recovery, and those that bring nothing, leave the window alone.
    #[test]
    fn only_what_is_new_and_outside_of_recovery_opens_the_window() {
        for sample in [AckSample { recovering: true, ..ack(10 * MSS, 0) }, ack(0, 0)] {
            let mut cubic = LinuxCubic::new(&start(10));
            cubic.on_ack(&AckSample { now: at_ms(0), ..sample });
            assert_eq!((cubic.cwnd, cubic.epoch.is_some()), (10, false));
        }
    }

    /// Idle time is no time on the curve.
    #[test]
    fn an_idle_time_does_not_count() {
        let mut cubic = avoiding(100);
        cubic.on_congestion(&congestion(100 * MSS, Cause::Loss));
        acknowledge(&mut cubic, 1000, 1);
        cubic.on_send_opportunity(at_ms(61_000), 0);
        assert_eq!(cubic.epoch.map(|it| it.began), Some(at_ms(61_000)));
        cubic.on_send_opportunity(at_ms(62_000), 5 * MSS);
        assert_eq!(cubic.epoch.map(|it| it.began), Some(at_ms(61_000)));
    }

    /// `tcp_cwnd_restart`, `bictcp_cwnd_event`: after a restart congestion avoidance is a new stage, whose curve begins where slow start ends.
    #[test]
    fn a_restart_begins_a_new_stage() {
        let mut cubic = LinuxCubic::new(&start(69));
        cubic.set_window(100 * MSS, None);
        cubic.on_congestion(&congestion(100 * MSS, Cause::Loss));
        for step in 0..40 {
            let window = cubic.cwnd;
            acknowledge(&mut cubic, 100 * step, window / 2);
        }
        assert!(cubic.cwnd > 80, "{}", cubic.cwnd);
        cubic.on_restart(at_ms(60_000));
        assert_eq!(cubic.cwnd, 69);
        cubic.on_send_opportunity(at_ms(60_000), 0);
        acknowledge(&mut cubic, 60_100, 70);
        assert!((70..=72).contains(&cubic.cwnd), "{}", cubic.cwnd);
    }

    /// `bictcp_recalc_ssthresh`: a loss below the last maximum leaves room for others (fast convergence): `W_max` is a little less than the
    /// window, by (1 + beta) / 2; at the maximum it is the window.
    #[test]
    fn fast_convergence_leaves_room() {
        for (window, w_max) in [(99, 84), (100, 100), (120, 120)] {
            let mut cubic = avoiding(100);
            cubic.on_congestion(&congestion(100 * MSS, Cause::Loss));
            assert_eq!(cubic.w_max, 100);
            cubic.set_window(window * MSS, None);
            cubic.on_congestion(&congestion(window * MSS, Cause::Loss));
            assert_eq!(cubic.w_max, w_max, "{window}");
        }
    }

    /// RFC 9438 (4.6): a sender that used a part of its window is reduced from that.
    #[test]
    fn a_reduction_goes_by_what_was_out() {
        let mut cubic = LinuxCubic::new(&start(100));
        cubic.on_congestion(&congestion(20 * MSS, Cause::Loss));
        assert_eq!(
            (cubic.window(), cubic.ssthresh()),
            (14 * MSS, Some(14 * MSS)),
            "reduced from what was not used"
        );
    }
}
