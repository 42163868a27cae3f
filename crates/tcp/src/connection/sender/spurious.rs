//! What to do about a time-out or a fast recovery that was not needed: a conservative halving, the Eifel response (RFC 4015),
//! what Linux 2.4 did (Sarolahti and Kuznetsov, "Congestion Control in Linux TCP", 2002), or what Linux does.
//!
//! Deviations:
//! - the Eifel response's `G` is a millisecond, the timestamps' clock;
//! - RFC 4015 is for time-outs; after a fast recovery the same window and threshold are set, and the timer is left alone;
//! - Linux 2.4 gets back twice the halved window, a segment less where it was odd; here it is the window as it was.

use base::wire::tcp::Flags;
use base::{Duration, Instant};

use super::{Negotiated, Sender};
use crate::config::{ForwardRto, SpuriousResponse};
use crate::recovery::spurious::Methods;
use crate::recovery::{Evidence, Phase};

/// What a time-out or a fast recovery changed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prior {
    /// It was a time-out.
    timeout: bool,
    /// Bytes that were outstanding, whatever the controller takes its share of: `FlightSize` of RFC 4015 (3.1, step 0).
    flight_size: u64,
    /// Congestion window in bytes.
    cwnd: u64,
    /// Slow start threshold in bytes; zero for controllers without one.
    ssthresh: u64,
    srtt: Duration,
    rttvar: Duration,
    /// SND.NXT then. The response waits for a round trip of what is sent from here on (RFC 4015, 3.1, step 11).
    nxt: u64,
    /// The time-out was spurious; what is left to do is to adapt the timer.
    spurious: bool,
}

impl Sender {
    /// How this connection finds out about a time-out that happens now.
    pub(super) fn detection(&self) -> Methods {
        let doubtful = self.recovery.phase() == Phase::Open;
        let forward = match self.config.recovery.f_rto {
            ForwardRto::Off => None,
            ForwardRto::Basic => Some(false),
            ForwardRto::Sack => Some(self.negotiated.sack),
        };
        Methods {
            forward: forward.filter(|_| doubtful),
            eifel: self.config.recovery.eifel_detection && self.negotiated.timestamps && doubtful,
            reports: self.config.recovery.undo && self.negotiated.sack && doubtful,
        }
    }

    /// Fast recovery begins with so many bytes outstanding, and the controller is about to respond: whether that was needed
    /// is to be found out.
    pub(super) fn doubt_recovery(&mut self, flight_size: u64) {
        if self.config.recovery.undo && !self.ignores_losses() {
            self.remember_prior(flight_size, false);
            let Negotiated { timestamps, sack: reports, .. } = self.negotiated;
            self.recovery.doubt(Evidence { timestamps, reports });
        }
    }

    /// Keeps what a time-out or a fast recovery is about to change.
    pub(super) fn remember_prior(&mut self, flight_size: u64, timeout: bool) {
        self.prior = Some(Box::new(Prior {
            timeout,
            flight_size,
            cwnd: self.controller.window(),
            ssthresh: self.controller.ssthresh().unwrap_or(0),
            srtt: self.rtt.srtt().unwrap_or_default() + CLOCK_GRANULARITY * 2,
            rttvar: self.rtt.rttvar(),
            nxt: self.nxt,
            spurious: false,
        }));
    }

    /// The last time-out or fast recovery was found to be spurious in `phase`, by an acknowledgement of `acked` bytes.
    pub(super) fn on_spurious(&mut self, now: Instant, phase: Phase, acked: u64, flags: Flags) {
        let prior = self.prior.take();
        let timeout = prior.as_ref().is_none_or(|prior| prior.timeout);
        if timeout {
            self.statistics.spurious_timeouts = self.statistics.spurious_timeouts.saturating_add(1);
            (self.timers.backoff, self.timeout_at) = (0, 0);
            self.unsuspect_black_hole();
        } else {
            self.statistics.spurious_recoveries = self.statistics.spurious_recoveries.saturating_add(1);
        }
        let Some(mut prior) = prior else { return };
        self.reduction = None;
        if phase == Phase::FastRecovery {
            self.controller.on_recovery_exit(now);
        }
        // RFC 4015 (3.1, step 9): a mark is congestion all the same.
        if !timeout && self.marking.sends() && flags.has(Flags::ECE) {
            return;
        }
        let mss = u64::from(self.mss);
        let ssthresh = prior.ssthresh.max(prior.cwnd / 4 * 3); // `tcp_current_ssthresh`
        let (window, ssthresh) = match self.config.recovery.spurious_response {
            SpuriousResponse::Halve if timeout => {
                let half = (prior.flight_size / 2).max(2 * mss);
                (half, half)
            }
            // Fast recovery has halved already.
            SpuriousResponse::None | SpuriousResponse::Halve => return,
            SpuriousResponse::Eifel => {
                // Steps 0 and 9: `pipe_prev`, and a window that lets out no burst.
                let initial_window = self.config.window.initial.bytes(mss);
                let window = self.nxt - self.una + acked.min(initial_window);
                (window, prior.flight_size.max(prior.ssthresh))
            }
            // `tcp_moderate_cwnd` avoids a burst.
            SpuriousResponse::Undo => (prior.cwnd.min(self.board.pipe() + LINUX_MAX_BURST * mss), ssthresh),
            SpuriousResponse::Restore => (prior.cwnd, ssthresh),
        };
        // A window that has grown beyond meanwhile stays (RFC 9438, 4.9.2; `tcp_undo_cwnd_reduction`).
        let least = if timeout { 0 } else { self.controller.window() };
        self.controller.on_spurious_congestion(now, window.max(least), ssthresh);
        if timeout && self.config.recovery.spurious_response == SpuriousResponse::Eifel {
            // Step 11 is left.
            prior.spurious = true;
            self.prior = Some(prior);
        }
    }

    /// Whether the acknowledgement that meant this has set the window already (RFC 4015, 3.1, step 9; `tcp_undo_cwr`).
    pub(super) fn restores_window(&self) -> bool {
        !matches!(self.config.recovery.spurious_response, SpuriousResponse::None | SpuriousResponse::Halve)
    }

    /// Takes a round-trip sample; after a spurious time-out, the first of new data sets the estimate (RFC 4015, 3.1,
    /// step 11).
    pub(super) fn take_rtt_sample(&mut self, sample: Duration, samples_log2: u32) {
        if let Some(prior) = &self.prior
            && self.una > prior.nxt
        {
            if prior.spurious {
                let (srtt, rttvar) = (prior.srtt.max(sample), prior.rttvar.max(sample / 2));
                self.rtt.adapt(sample, srtt, rttvar);
                self.prior = None;
                return;
            }
            if !self.recovery.is_doubted() {
                self.prior = None;
            }
        }
        self.rtt.on_sample(sample, samples_log2, (self.una, self.nxt));
    }
}

/// G of RFC 4015: our timestamps' tick.
const CLOCK_GRANULARITY: Duration = Duration::from_millis(1);
/// Segments that may go out at once after a window was restored: `tcp_max_burst` of Linux 2.4.
const LINUX_MAX_BURST: u64 = 3;
