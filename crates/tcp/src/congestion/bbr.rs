//! BBR, version 1: draft-cardwell-iccrg-bbr-congestion-control-00, and Linux's `tcp_bbr.c` where the draft is silent.
//!
//! Deviations:
//! - `ProbeBW` begins with the first cruising phase, where the draft draws one of seven (4.3.4.2): the same run is the
//!   same anywhere, and several flows differ by when they began;
//! - the losses that end the probing phase early are those of a fast recovery in progress, and in recovery the window
//!   does not fall by what each acknowledgement finds lost (4.2.3.4), for that is known to recovery alone;
//! - samples of `ProbeRTT` count like those that the application limits;
//! - a marked window is a lost segment (the draft does not know ECN): packets are conserved for a round trip;
//! - the end of a time-out's recovery, at which the window comes back (4.2.3.4), is when as many bytes are
//!   acknowledged as were outstanding;
//! - Linux's later additions, the policer model and the allowance for aggregated acknowledgements, are not here;
//! - there is no slow start threshold: a cached one is ignored, and an idle time costs no window (as in Linux).

pub(crate) mod max_filter;

use base::{Duration, Instant, Rate};

use self::max_filter::MaxFilter;
use super::{AckSample, Cause, Congestion, Controller, MAX_WINDOW, Start, burst_quantum};

/// A model of the path, its bottleneck's rate and its round trip, and a rate and window that follow from it.
#[derive(Clone, Debug)]
pub struct Bbr {
    mss: u64,
    initial_window: u64,
    window: u64,
    mode: Mode,
    round: u64,
    /// `BtlBw`: bits per second.
    bandwidth: MaxFilter,
    /// `RTprop`; [`Duration::MAX`] before the first sample.
    rtt_min: Duration,
    /// When it was last confirmed; none before the first transmission.
    rtt_min_at: Option<Instant>,
    /// Bits per second at which the pipe looked full last, and the rounds since.
    full_bandwidth: u64,
    full_rounds: u32,
    full: bool,
    /// Bits per second.
    pacing_rate: u64,
    /// Bytes delivered in all, up to the initial window.
    delivered: u64,
    /// The window before recovery or `ProbeRTT`.
    prior_window: u64,
    repair: Repair,
    idle_restart: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw {
        phase: usize,
        since: Instant,
    },
    ProbeRtt {
        /// When the flight had become small, and the bytes that were delivered since then.
        low: Option<(Instant, u64)>,
    },
}

/// What the window is held down for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repair {
    None,
    /// Recovery or a mark was just reported.
    Begun {
        mark: bool,
    },
    /// Packets are conserved until this round ends.
    Conserving {
        round: u64,
        mark: bool,
    },
    /// The rest of fast recovery.
    Recovering,
    /// Bytes still to be acknowledged of what was outstanding at a time-out.
    TimedOut {
        left: u64,
    },
}

impl Bbr {
    /// A controller in Startup.
    #[must_use]
    pub fn new(start: &Start) -> Self {
        let mut bbr = Self {
            mss: start.mss,
            initial_window: start.initial_window,
            window: start.initial_window,
            mode: Mode::Startup,
            round: 0,
            bandwidth: MaxFilter::default(),
            rtt_min: start.srtt.unwrap_or(Duration::MAX),
            rtt_min_at: None,
            full_bandwidth: 0,
            full_rounds: 0,
            full: false,
            pacing_rate: 0,
            delivered: 0,
            prior_window: 0,
            repair: Repair::None,
            idle_restart: false,
        };
        // 4.2.1: before the first sample, the initial window in the handshake's round trip, or in 1 ms.
        let rtt = start.srtt.unwrap_or(Duration::from_millis(1)).as_nanos().max(1);
        let bits = u128::from(start.initial_window) * 8 * NANOS_PER_SEC / u128::from(rtt);
        bbr.pacing_rate = scaled(u64::try_from(bits).unwrap_or(u64::MAX), HIGH_GAIN);
        bbr
    }

    fn pacing_gain(&self) -> u64 {
        match self.mode {
            Mode::Startup => HIGH_GAIN,
            Mode::Drain => DRAIN_GAIN,
            Mode::ProbeBw { phase, .. } => CYCLE[phase],
            Mode::ProbeRtt { .. } => UNIT,
        }
    }

    const fn cwnd_gain(&self) -> u64 {
        match self.mode {
            Mode::Startup | Mode::Drain => HIGH_GAIN,
            Mode::ProbeBw { .. } => CWND_GAIN,
            Mode::ProbeRtt { .. } => UNIT,
        }
    }

    /// `BBRInflight` (4.2.3.2): `gain` times the estimated product of bandwidth and delay, and room for three bursts.
    fn inflight(&self, gain: u64) -> u64 {
        if self.rtt_min == Duration::MAX {
            return self.initial_window;
        }
        let bits = u128::from(self.bandwidth.get()) * u128::from(self.rtt_min.as_nanos());
        let product = u64::try_from(bits / 8 / NANOS_PER_SEC).unwrap_or(u64::MAX);
        let quantum = burst_quantum(Rate::from_bps(self.pacing_rate), self.mss);
        scaled(product, gain).saturating_add(3 * quantum).min(MAX_WINDOW)
    }

    /// `BBRUpdateBtlBw` (4.1.1.3).
    fn update_bandwidth(&mut self, ack: &AckSample) {
        let Some(delivery) = ack.delivery else { return };
        // Linux: what seems faster than a round trip is an artefact of merged acknowledgements.
        if delivery.interval < ack.rtt_min && ack.rtt_min < Duration::MAX {
            return;
        }
        let sample = delivery.rate().as_bps();
        let limited = delivery.app_limited || matches!(self.mode, Mode::ProbeRtt { .. });
        if !limited || sample >= self.bandwidth.get() {
            self.bandwidth.update(BANDWIDTH_ROUNDS, self.round, sample);
        }
    }

    /// `BBRCheckCyclePhase` (4.3.4.3).
    fn check_phase(&mut self, ack: &AckSample) {
        let Mode::ProbeBw { phase, since } = self.mode else { return };
        let lasted = ack.now.saturating_since(since) > self.rtt_min;
        let gain = CYCLE[phase];
        let next = if gain > UNIT {
            lasted && (ack.recovering || ack.prior_in_flight >= self.inflight(gain))
        } else if gain < UNIT {
            lasted || ack.prior_in_flight <= self.inflight(UNIT)
        } else {
            lasted
        };
        if next {
            self.mode = Mode::ProbeBw { phase: (phase + 1) % CYCLE.len(), since: ack.now };
        }
    }

    /// `BBRCheckFullPipe` (4.3.2.2), at the end of a round.
    fn check_full(&mut self, ack: &AckSample) {
        if self.full || ack.app_limited() {
            return;
        }
        if self.bandwidth.get() >= scaled(self.full_bandwidth, FULL_GROWTH) {
            (self.full_bandwidth, self.full_rounds) = (self.bandwidth.get(), 0);
            return;
        }
        self.full_rounds += 1;
        self.full = self.full_rounds >= FULL_ROUNDS;
    }

    /// `BBRCheckDrain` (4.3.3).
    fn check_drain(&mut self, ack: &AckSample) {
        if self.mode == Mode::Startup && self.full {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && ack.in_flight <= self.inflight(UNIT) {
            self.probe_bandwidth(ack.now);
        }
    }

    const fn probe_bandwidth(&mut self, now: Instant) {
        self.mode = Mode::ProbeBw { phase: FIRST_PHASE, since: now };
    }

    /// `BBRUpdateRTprop` and `BBRCheckProbeRTT` (4.1.2.3, 4.3.5).
    fn update_rtt_min(&mut self, ack: &AckSample) {
        let confirmed_at = *self.rtt_min_at.get_or_insert(ack.now);
        let expired = ack.now.saturating_since(confirmed_at) > RTT_MIN_WINDOW;
        if let Some(rtt) = ack.rtt.filter(|&rtt| rtt <= self.rtt_min || expired) {
            (self.rtt_min, self.rtt_min_at) = (rtt, Some(ack.now));
        }
        let probing = matches!(self.mode, Mode::ProbeRtt { .. });
        if expired && !self.idle_restart && !probing {
            self.save_window();
            self.mode = Mode::ProbeRtt { low: None };
        }
        self.check_probe_rtt(ack);
        self.idle_restart = false;
    }

    fn check_probe_rtt(&mut self, ack: &AckSample) {
        let Mode::ProbeRtt { low } = self.mode else { return };
        let Some((low_since, delivered)) = low else {
            if ack.in_flight <= MIN_SEGMENTS * self.mss {
                self.mode = Mode::ProbeRtt { low: Some((ack.now, 0)) };
            }
            return;
        };
        let delivered = delivered + ack.delivered_bytes;
        self.mode = Mode::ProbeRtt { low: Some((low_since, delivered)) };
        // A round trip has passed when something sent since then arrives: all that was delivered in its time came since then. What
        // is sent again counts, which gives no round-trip time.
        let round_done = ack.delivery.is_some_and(|delivery| delivery.bytes <= delivered);
        if round_done && ack.now.saturating_since(low_since) >= PROBE_RTT_TIME {
            self.rtt_min_at = Some(ack.now);
            self.restore_window();
            if self.full {
                self.probe_bandwidth(ack.now);
            } else {
                self.mode = Mode::Startup;
            }
        }
    }

    /// `BBRSetPacingRate` (4.2.1); 1 % below the model, as in Linux, so that queues drain.
    fn set_pacing_rate(&mut self, gain: u64) {
        let bandwidth = self.bandwidth.get();
        let rate = scaled(bandwidth - bandwidth / 100, gain);
        if bandwidth > 0 && (self.full || rate > self.pacing_rate) {
            self.pacing_rate = rate.max(1);
        }
    }

    /// `BBRSaveCwnd` (4.2.3.4).
    fn save_window(&mut self) {
        let held = self.repair != Repair::None || matches!(self.mode, Mode::ProbeRtt { .. });
        self.prior_window = if held { self.prior_window.max(self.window) } else { self.window };
    }

    fn restore_window(&mut self) {
        self.window = self.window.max(self.prior_window);
    }

    /// `BBRModulateCwndForRecovery` (4.2.3.4); true if packets are conserved.
    fn modulate(&mut self, ack: &AckSample, new_round: bool) -> bool {
        match self.repair {
            Repair::Begun { mark } => {
                self.window = ack.in_flight + ack.delivered_bytes.max(self.mss);
                self.repair = Repair::Conserving { round: self.round, mark };
                true
            }
            Repair::Conserving { round, .. } if self.round == round && !new_round => {
                self.window = self.window.max(ack.in_flight + ack.delivered_bytes);
                true
            }
            Repair::Conserving { mark: true, .. } => {
                self.repair = Repair::None;
                self.restore_window();
                false
            }
            Repair::Conserving { mark: false, .. } => {
                self.repair = Repair::Recovering;
                false
            }
            Repair::TimedOut { left } if left <= ack.bytes => {
                self.repair = Repair::None;
                self.restore_window();
                false
            }
            Repair::TimedOut { left } => {
                self.repair = Repair::TimedOut { left: left - ack.bytes };
                false
            }
            Repair::Recovering | Repair::None => false,
        }
    }

    /// `BBRSetCwnd` (4.2.3.6) and `BBRModulateCwndForProbeRTT` (4.2.3.5).
    fn set_window(&mut self, ack: &AckSample, new_round: bool) {
        let acked = ack.delivered_bytes;
        self.delivered = self.delivered.saturating_add(acked).min(self.initial_window);
        if !self.modulate(ack, new_round) {
            let target = self.inflight(self.cwnd_gain());
            if self.full {
                self.window = (self.window + acked).min(target);
            } else if self.window < target || self.delivered < self.initial_window {
                self.window += acked;
            }
            self.window = self.window.max(MIN_SEGMENTS * self.mss);
        }
        if matches!(self.mode, Mode::ProbeRtt { .. }) {
            self.window = self.window.min(MIN_SEGMENTS * self.mss);
        }
        self.window = self.window.min(MAX_WINDOW);
    }
}

impl Controller for Bbr {
    fn on_ack(&mut self, ack: &AckSample) {
        let new_round = ack.round != self.round;
        self.round = ack.round;
        self.update_bandwidth(ack);
        self.check_phase(ack);
        if new_round {
            self.check_full(ack);
        }
        self.check_drain(ack);
        if ack.delivered_bytes > 0 {
            self.update_rtt_min(ack);
        }
        self.set_pacing_rate(self.pacing_gain());
        if ack.delivered_bytes > 0 {
            self.set_window(ack, new_round);
        }
    }

    fn on_congestion(&mut self, event: &Congestion) {
        let resting = matches!(self.repair, Repair::None);
        match event.cause {
            Cause::Ecn if !resting => {}
            Cause::Ecn | Cause::Loss => {
                self.save_window();
                self.repair = Repair::Begun { mark: event.cause == Cause::Ecn };
            }
            Cause::Timeout => {
                self.save_window();
                self.window = self.mss;
                self.repair = Repair::TimedOut { left: event.flight_size };
                self.full_bandwidth = 0; // Linux: the search for a full pipe starts again.
            }
        }
    }

    fn on_send_opportunity(&mut self, now: Instant, in_flight: u64) {
        self.rtt_min_at.get_or_insert(now);
        // BBRHandleRestartFromIdle (4.3.4.4); nothing in flight means that the application had nothing.
        if in_flight == 0 {
            self.idle_restart = true;
            if matches!(self.mode, Mode::ProbeBw { .. }) {
                self.set_pacing_rate(UNIT);
            }
        }
    }

    fn on_recovery_exit(&mut self, _now: Instant) {
        if !matches!(self.repair, Repair::TimedOut { .. }) {
            self.repair = Repair::None;
            self.restore_window();
        }
    }

    /// Linux, `bbr_undo_cwnd`: the search for a full pipe starts again, and the window is what it was.
    fn on_spurious_congestion(&mut self, _now: Instant, window: u64, _ssthresh: u64) {
        (self.full_bandwidth, self.full_rounds) = (0, 0);
        Controller::set_window(self, window.max(self.window), None);
    }

    fn steers_recovery(&self) -> bool {
        true
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn set_window(&mut self, window: u64, _ssthresh: Option<u64>) {
        self.repair = Repair::None;
        self.window = window.max(self.mss).min(MAX_WINDOW);
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(Rate::from_bps(self.pacing_rate))
    }
}

/// `value` times a gain.
fn scaled(value: u64, gain: u64) -> u64 {
    u64::try_from(u128::from(value) * u128::from(gain) / u128::from(UNIT)).unwrap_or(u64::MAX)
}

const NANOS_PER_SEC: u128 = 1_000_000_000;
/// A gain of 1.
const UNIT: u64 = 256;
/// 2 / ln 2 (4.3.2.1): the least gain that doubles the rate each round.
const HIGH_GAIN: u64 = UNIT * 2885 / 1000 + 1;
/// Its inverse (4.3.3).
const DRAIN_GAIN: u64 = UNIT * 1000 / 2885;
/// 4.2.3.2: two, for delayed and stretched acknowledgements.
const CWND_GAIN: u64 = 2 * UNIT;
/// 4.3.4.3: probe, drain, and cruise for six round trips.
const CYCLE: [u64; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// The first phase of cruising.
const FIRST_PHASE: usize = 2;
/// 4.1.1.3: `BtlBwFilterLen`, in rounds.
const BANDWIDTH_ROUNDS: u64 = 10;
/// 4.1.2.3: `RTpropFilterLen`.
const RTT_MIN_WINDOW: Duration = Duration::from_secs(10);
/// 4.3.5: `ProbeRTTDuration`.
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
/// 4.2.3.3: `BBRMinPipeCwnd`, segments.
const MIN_SEGMENTS: u64 = 4;
/// 4.3.2.2: growth below 25 % ...
const FULL_GROWTH: u64 = UNIT * 5 / 4;
/// ... for three rounds is a full pipe.
const FULL_ROUNDS: u32 = 3;

#[cfg(test)]
mod tests;
