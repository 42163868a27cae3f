//! CUBIC: RFC 9438. What Linux makes of it is beside, in `linux`.
//!
//! Deviations:
//! - the window grows only while it keeps data back, and time without growth for want of data does
//!   not count as `t` (4.2, 5.8);
//! - congestion never opens a window that is already smaller than `beta` of what is in flight (4.6 does not say);
//! - what a spurious time-out (4.9.1) or loss (4.9.2) restores is the response's to say. If that is the whole window, the
//!   growth function goes on as if nothing had been; if it is less, a new one starts there, aimed at the old `W_max`.

mod linux;

use base::{Duration, Instant};

pub use self::linux::LinuxCubic;
use super::{AckSample, Cause, Congestion, Controller, SlowStart, Start};

/// A window that grows with the third power of time around the size at which it was last too large.
#[derive(Clone, Debug)]
pub struct Cubic {
    mss: f64,
    /// `cwnd` in bytes; the fraction is what growth has earned below a byte.
    cwnd: f64,
    restart_window: f64,
    slow_start: SlowStart,
    /// Windows are in bytes here, in segments in the RFC.
    w_max: f64,
    /// `cwnd_prior`: the window when `ssthresh` was last set.
    cwnd_prior: f64,
    /// The current congestion avoidance; none before its first acknowledgement.
    epoch: Option<Epoch>,
    /// The next one is the first after a time-out (4.8).
    after_timeout: bool,
    /// What the last time-out or loss put an end to.
    undo: Option<Box<Undo>>,
}

/// A congestion avoidance stage.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// `t`, in seconds, up to `last`.
    t: f64,
    last: Instant,
    /// Seconds from its begin until the window is `w_max`.
    k: f64,
    /// The window that Reno would have, in bytes.
    w_est: f64,
}

/// The state before a time-out or loss (4.9).
#[derive(Clone, Debug)]
struct Undo {
    cwnd: f64,
    w_max: f64,
    cwnd_prior: f64,
    epoch: Option<Epoch>,
}

impl Cubic {
    /// A controller in slow start.
    #[must_use]
    pub fn new(start: &Start) -> Self {
        Self {
            mss: start.mss as f64,
            cwnd: start.initial_window as f64,
            restart_window: start.initial_window as f64,
            slow_start: SlowStart::new(start),
            w_max: 0.0,
            cwnd_prior: 0.0,
            epoch: None,
            after_timeout: false,
            undo: None,
        }
    }

    fn begin_epoch(&mut self, now: Instant) -> Epoch {
        // 4.8 after a time-out; 4.10 after a slow start that ended without a loss.
        if self.after_timeout || self.w_max < self.cwnd {
            self.w_max = self.cwnd;
        }
        if self.cwnd_prior == 0.0 {
            self.cwnd_prior = self.cwnd;
        }
        self.after_timeout = false;
        let k = libm::cbrt((self.w_max - self.cwnd) / self.mss / C);
        Epoch { t: 0.0, last: now, k, w_est: self.cwnd }
    }

    /// Equation 1.
    fn w_cubic(&self, epoch: &Epoch, t: f64) -> f64 {
        let from_k = t - epoch.k;
        C * from_k * from_k * from_k * self.mss + self.w_max
    }

    /// Grows by an acknowledgement that counts for so many bytes.
    fn avoid_congestion(&mut self, ack: &AckSample, bytes: u64) {
        let mut epoch = self.epoch.take().unwrap_or_else(|| self.begin_epoch(ack.now));
        epoch.t += ack.now.saturating_since(epoch.last).as_secs_f64();
        epoch.last = ack.now;
        let acked = bytes as f64;
        // 4.3: Reno's rate once the window is back where it was.
        let alpha = if epoch.w_est < self.cwnd_prior { ALPHA } else { 1.0 };
        epoch.w_est += alpha * self.mss * acked / self.cwnd;
        if self.w_cubic(&epoch, epoch.t) < epoch.w_est {
            self.cwnd = self.cwnd.max(epoch.w_est);
        } else {
            let rtt = ack.srtt.unwrap_or(Duration::ZERO).as_secs_f64();
            let target = self.w_cubic(&epoch, epoch.t + rtt).max(self.cwnd).min(1.5 * self.cwnd);
            self.cwnd += (target - self.cwnd) / self.cwnd * acked; // 4.4 and 4.5.
        }
        self.cwnd = self.cwnd.min(super::MAX_WINDOW as f64);
        self.epoch = Some(epoch);
    }
}

impl Controller for Cubic {
    fn on_ack(&mut self, ack: &AckSample) {
        if ack.recovering || ack.bytes == 0 {
            return;
        }
        let window = self.window();
        if self.slow_start.active(window) {
            let (grown, rest) = self.slow_start.on_ack(window, ack);
            if grown > window {
                self.cwnd = grown as f64;
            }
            if rest > 0 {
                self.avoid_congestion(ack, rest);
            }
        } else if ack.limited_by_window {
            self.avoid_congestion(ack, ack.opening_bytes());
        } else if let Some(epoch) = &mut self.epoch {
            epoch.last = ack.now;
        }
    }

    fn on_congestion(&mut self, event: &Congestion) {
        let timeout = event.cause == Cause::Timeout;
        self.undo = (event.cause != Cause::Ecn).then(|| {
            let Self { cwnd, w_max, cwnd_prior, epoch, .. } = *self;
            Box::new(Undo { cwnd, w_max, cwnd_prior, epoch })
        });
        // 4.7: fast convergence.
        self.w_max = if self.cwnd < self.w_max { self.cwnd * f64::midpoint(1.0, BETA) } else { self.cwnd };
        self.cwnd_prior = self.cwnd;
        self.epoch = None;
        self.after_timeout = timeout;
        // 4.6.
        let reduced = BETA * (event.flight_size as f64).min(self.cwnd.max(self.mss));
        let threshold = reduced.max(2.0 * self.mss);
        self.slow_start.set_threshold(threshold as u64, timeout);
        self.cwnd = match event.cause {
            Cause::Loss => threshold,
            Cause::Ecn => reduced.max(self.mss),
            Cause::Timeout => self.mss, // 4.8.
        };
    }

    fn on_send_opportunity(&mut self, now: Instant, in_flight: u64) {
        if let Some(epoch) = self.epoch.as_mut().filter(|_| in_flight == 0) {
            epoch.last = now;
        }
    }

    fn on_spurious_congestion(&mut self, now: Instant, window: u64, ssthresh: u64) {
        let outgrown = self.undo.as_ref().is_some_and(|undo| self.cwnd >= undo.cwnd);
        self.set_window(window, Some(ssthresh));
        let Some(undo) = self.undo.take().filter(|_| !outgrown) else { return };
        (self.w_max, self.cwnd_prior, self.after_timeout) = (undo.w_max, undo.cwnd_prior, false);
        // The response knows whole bytes.
        self.epoch = undo.epoch.filter(|_| self.cwnd > undo.cwnd - 1.0);
        if let Some(epoch) = &mut self.epoch {
            epoch.last = now;
        }
    }

    fn on_restart(&mut self, _now: Instant) {
        self.cwnd = self.cwnd.min(self.restart_window);
        self.epoch = None;
    }

    fn window(&self) -> u64 {
        self.cwnd as u64
    }

    fn set_window(&mut self, window: u64, ssthresh: Option<u64>) {
        if let Some(ssthresh) = ssthresh {
            self.slow_start.set_threshold(ssthresh, false);
        }
        self.cwnd = (window as f64).max(self.mss).min(super::MAX_WINDOW as f64);
    }

    fn ssthresh(&self) -> Option<u64> {
        Some(self.slow_start.threshold())
    }
}

/// RFC 9438 (5.1): segments per cubic second.
const C: f64 = 0.4;
/// RFC 9438 (4.6): `beta_cubic`.
const BETA: f64 = 0.7;
/// RFC 9438 (4.3): `alpha_cubic`.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::samples::{MSS, ack, at_ms, congestion, spare, start};

    /// A controller that had 100 segments out and lost one.
    fn reduced() -> Cubic {
        let mut cubic = Cubic::new(&start(100));
        cubic.on_congestion(&congestion(100 * MSS, Cause::Loss));
        cubic
    }

    /// A window's worth of acknowledgements at `ms`.
    fn round(cubic: &mut Cubic, ms: u64, rtt_ms: u64) {
        let srtt = Some(Duration::from_millis(rtt_ms));
        for _ in 0..cubic.window() / MSS {
            let window = cubic.window();
            cubic.on_ack(&AckSample { now: at_ms(ms), srtt, ..ack(MSS, window) });
        }
    }

    /// RFC 9438 (4.6): `beta_cubic` = 0.7; (4.8): one segment after a time-out.
    #[test]
    fn congestion_takes_three_tenths() {
        assert_eq!((reduced().window(), reduced().ssthresh()), (70 * MSS, Some(70 * MSS)));
        let mut cubic = Cubic::new(&start(100));
        cubic.on_congestion(&congestion(100 * MSS, Cause::Timeout));
        assert_eq!((cubic.window(), cubic.ssthresh()), (MSS, Some(70 * MSS)));
        // FlightSize counts, not cwnd.
        let mut cubic = Cubic::new(&start(100));
        cubic.on_congestion(&congestion(50 * MSS, Cause::Loss));
        assert_eq!(cubic.window(), 35 * MSS);
    }

    /// RFC 9438 (4.6): ssthresh is at least two segments, cwnd at least two after a loss and one after a mark.
    #[test]
    fn the_window_has_a_floor() {
        for (cause, window) in [(Cause::Loss, 2 * MSS), (Cause::Ecn, MSS), (Cause::Timeout, MSS)] {
            let mut cubic = Cubic::new(&start(1));
            cubic.on_congestion(&congestion(MSS, cause));
            assert_eq!((cubic.window(), cubic.ssthresh()), (window, Some(2 * MSS)), "{cause:?}");
        }
    }

    /// RFC 9438 (4.2), equation 2: K = cbrt(30 / 0.4) = 4.217 s.
    #[test]
    fn the_old_window_is_reached_after_k() {
        let mut cubic = reduced();
        cubic.on_ack(&ack(MSS, 70 * MSS));
        let epoch = cubic.epoch.unwrap();
        assert!((epoch.k - 4.217_163).abs() < 1e-6, "{}", epoch.k);
        // Equation 1 at t = 0, 2 s, K and K + 1 s.
        for (t, segments) in [(0.0, 70.0), (2.0, 95.640_34), (epoch.k, 100.0), (epoch.k + 1.0, 100.4)] {
            let window = cubic.w_cubic(&epoch, t) / cubic.mss;
            assert!((window - segments).abs() < 1e-3, "{t}: {window}");
        }
    }

    /// RFC 9438 (4.4): each acknowledged segment adds (target - cwnd) / cwnd.
    #[test]
    fn concave_growth_heads_for_the_target() {
        let mut cubic = reduced();
        cubic.on_ack(&ack(MSS, 70 * MSS));
        let before = cubic.cwnd;
        let srtt = Some(Duration::from_millis(500));
        cubic.on_ack(&AckSample { now: at_ms(1000), srtt, ..ack(MSS, 71 * MSS) });
        // W_cubic(1.5 s) = 0.4 * (1.5 - 4.217163)^3 + 100 = 91.97544; (91.97544 - 70.00756) / 70.00756 segments.
        assert!((before - 70_007.563).abs() < 0.01, "{before}");
        assert!((cubic.cwnd - before - 313.79).abs() < 0.05, "{}", cubic.cwnd - before);
    }

    /// RFC 9438 (4.2): the target is at most half as much again as cwnd.
    #[test]
    fn growth_is_at_most_by_half_a_round_trip() {
        let mut cubic = reduced();
        cubic.on_ack(&ack(MSS, 70 * MSS));
        let before = cubic.cwnd;
        cubic.on_ack(&AckSample { now: at_ms(60_000), ..ack(MSS, 71 * MSS) });
        assert!((cubic.cwnd - before - 500.0).abs() < 1e-6);
    }

    /// RFC 9438 (4.3): at small round trips, Reno's pace with alpha = 0.529 until `cwnd_prior`, then 1.
    #[test]
    fn the_reno_friendly_region_grows_like_reno() {
        assert!((ALPHA - 0.529_411_76).abs() < 1e-8);
        let mut cubic = Cubic::new(&start(10));
        cubic.on_congestion(&congestion(10 * MSS, Cause::Loss));
        let mut windows = vec![cubic.cwnd];
        for number in 0..20 {
            round(&mut cubic, number * 10, 10);
            windows.push(cubic.cwnd);
        }
        let growth = |at: usize| (windows[at + 1] - windows[at]) / 1000.0;
        assert!((growth(1) - ALPHA).abs() < 0.06, "{}", growth(1));
        assert!((growth(17) - 1.0).abs() < 0.06, "{}", growth(17));
    }

    /// RFC 9438 (4.7): a second reduction below the old maximum lowers it by (1 + beta) / 2.
    #[test]
    fn fast_convergence_gives_way() {
        let mut cubic = reduced();
        assert!((cubic.w_max - 100_000.0).abs() < 1e-6);
        cubic.on_congestion(&congestion(70 * MSS, Cause::Loss));
        assert!((cubic.w_max - 59_500.0).abs() < 1e-6, "{}", cubic.w_max);
        assert_eq!(cubic.window(), 49 * MSS);
    }

    /// RFC 9438 (4.8): after a time-out K is 0 and `W_max` the window at which congestion avoidance begins.
    #[test]
    fn a_timeout_restarts_the_function_at_the_threshold() {
        let mut cubic = Cubic::new(&start(100));
        cubic.on_congestion(&congestion(4 * MSS, Cause::Timeout));
        assert_eq!(cubic.ssthresh(), Some(2800));
        for _ in 0..2 {
            let window = cubic.window();
            cubic.on_ack(&ack(MSS, window));
        }
        assert_eq!(cubic.window(), 3 * MSS);
        cubic.on_ack(&ack(MSS, 3 * MSS));
        let epoch = cubic.epoch.unwrap();
        assert!(epoch.k == 0.0 && (cubic.w_max - 3000.0).abs() < 1e-6);
    }

    /// RFC 9438 (4.9.1): a spurious time-out that restores the window restores the growth function.
    #[test]
    fn a_spurious_timeout_is_undone() {
        let mut cubic = reduced();
        round(&mut cubic, 0, 100);
        round(&mut cubic, 1000, 100);
        let before = cubic.clone();
        cubic.on_congestion(&congestion(70 * MSS, Cause::Timeout));
        cubic.on_spurious_congestion(at_ms(1500), before.window(), 70 * MSS);
        // The whole bytes of the window come back.
        assert_eq!((cubic.window(), cubic.ssthresh()), (before.window(), Some(70 * MSS)));
        assert!(cubic.w_max == before.w_max && cubic.cwnd_prior == before.cwnd_prior);
        assert_eq!(cubic.epoch.map(|it| it.t), before.epoch.map(|it| it.t));
        // A response that halves starts anew and aims at the old maximum.
        cubic.on_congestion(&congestion(70 * MSS, Cause::Timeout));
        cubic.on_spurious_congestion(at_ms(1500), 35 * MSS, 35 * MSS);
        assert!(cubic.epoch.is_none() && cubic.w_max == before.w_max);
        cubic.on_ack(&AckSample { now: at_ms(1600), ..ack(MSS, 35 * MSS) });
        let expected = libm::cbrt(65.0 / 0.4);
        assert!((cubic.epoch.unwrap().k - expected).abs() < 1e-9);
    }

    /// RFC 9438 (4.9.2): so does a spurious loss; but not where the window has grown beyond what it was, meanwhile.
    #[test]
    fn a_spurious_loss_is_undone_unless_outgrown() {
        for outgrown in [false, true] {
            let mut cubic = reduced();
            round(&mut cubic, 0, 100);
            let before = cubic.clone();
            cubic.on_congestion(&congestion(70 * MSS, Cause::Loss));
            let reduced = cubic.w_max;
            if outgrown {
                cubic.set_window(80 * MSS, None);
            }
            cubic.on_spurious_congestion(at_ms(500), cubic.window().max(before.window()), 70 * MSS);
            assert_eq!(cubic.window(), if outgrown { 80 * MSS } else { before.window() });
            assert!(cubic.w_max == if outgrown { reduced } else { before.w_max });
            assert_eq!(cubic.epoch.is_some(), !outgrown);
        }
    }

    /// RFC 9438 (4.8): whoever sets the window after a time-out that was needed does not undo it.
    #[test]
    fn a_window_that_is_set_keeps_what_a_timeout_taught() {
        let mut cubic = reduced();
        cubic.on_congestion(&congestion(70 * MSS, Cause::Timeout));
        cubic.set_window(8 * MSS, Some(8 * MSS));
        assert_eq!((cubic.window(), cubic.ssthresh()), (8 * MSS, Some(8 * MSS)));
        cubic.on_ack(&ack(MSS, 8 * MSS));
        let epoch = cubic.epoch.unwrap();
        assert!(epoch.k == 0.0 && (cubic.w_max - 8000.0).abs() < 1e-6);
    }

    /// RFC 9438 (4.2 and 5.8): time in which the application did not use the window does not count.
    #[test]
    fn idle_time_is_not_elapsed_time() {
        let mut cubic = reduced();
        cubic.on_ack(&ack(MSS, 70 * MSS));
        cubic.on_ack(&AckSample { now: at_ms(1000), ..spare(MSS, 10 * MSS) });
        cubic.on_send_opportunity(at_ms(9000), 0);
        cubic.on_ack(&AckSample { now: at_ms(9100), ..ack(MSS, 71 * MSS) });
        let t = cubic.epoch.unwrap().t;
        assert!((t - 0.1).abs() < 1e-9, "{t}");
    }

    /// RFC 9438 (4.10): a slow start that ended at a threshold starts with K = 0.
    #[test]
    fn a_cached_threshold_ends_slow_start() {
        let mut cubic = Cubic::new(&Start { ssthresh: 4 * MSS, ..start(3) });
        cubic.on_ack(&ack(MSS, 3 * MSS));
        assert_eq!(cubic.window(), 4 * MSS);
        cubic.on_ack(&ack(MSS, 4 * MSS));
        assert_eq!(cubic.epoch.unwrap().k, 0.0);
        // alpha is 1 here: there was no reduction to make up for.
        assert_eq!(cubic.window(), 4250);
    }

    #[test]
    fn the_window_holds_during_recovery() {
        let mut cubic = reduced();
        cubic.on_ack(&AckSample { recovering: true, ..ack(MSS, 70 * MSS) });
        assert_eq!(cubic.window(), 70 * MSS);
    }

    /// RFC 9438 (4.2, 5.8): after a restart congestion avoidance is a new stage: the curve begins where slow start ends, whatever time the
    /// last one had lasted. Its K is that of 30 segments.
    #[test]
    fn a_restart_begins_a_new_stage() {
        let mut cubic = Cubic::new(&start(69));
        cubic.set_window(100 * MSS, None);
        cubic.on_congestion(&congestion(100 * MSS, Cause::Loss));
        round(&mut cubic, 0, 100);
        round(&mut cubic, 4000, 100);
        assert!(cubic.window() > 80 * MSS, "{}", cubic.window());
        cubic.on_restart(at_ms(60_000));
        assert_eq!(cubic.window(), 69 * MSS);
        cubic.on_send_opportunity(at_ms(60_000), 0);
        cubic.on_ack(&AckSample { now: at_ms(60_100), ..ack(MSS, 69 * MSS) });
        round(&mut cubic, 60_100, 100);
        assert!((70 * MSS..72 * MSS).contains(&cubic.window()), "{}", cubic.window());
    }
}
