//! What to do about a time-out that was not needed: a conservative halving, the Eifel response (RFC 4015), or what Linux 2.4
//! did (Sarolahti and Kuznetsov, "Congestion Control in Linux TCP", 2002).
//!
//! Deviations:
//! - the Eifel response's `G` is a millisecond, the timestamps' clock;
//! - Linux 2.4 gets back twice the halved window, a segment less where it was odd; here it is the window as it was.

use base::{Duration, Instant};

use super::Connection;
use crate::config::{ForwardRto, SpuriousResponse};
use crate::recovery::spurious::Methods;
use crate::recovery::{Change, Phase};

/// What a time-out changed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prior {
    /// Bytes that were outstanding, whatever the controller takes its share of: `FlightSize` of RFC 4015 (3.2, step 0).
    flight_size: u64,
    /// Congestion window in bytes.
    cwnd: u64,
    /// Slow start threshold in bytes; zero for controllers without one.
    ssthresh: u64,
    srtt: Duration,
    rttvar: Duration,
    /// SND.NXT then. The response waits for a round trip of what is sent from here on (RFC 4015, 3.2, step 8).
    nxt: u64,
    /// The time-out was spurious; what is left to do is to adapt the timer.
    spurious: bool,
}

impl Connection {
    /// How this connection finds out about a time-out that happens now.
    pub(super) fn detection(&self) -> Methods {
        let sender = &self.sender;
        let doubtful = sender.recovery.phase() == Phase::Open;
        let forward = match self.config.recovery.f_rto {
            ForwardRto::Off => None,
            ForwardRto::Basic => Some(false),
            ForwardRto::Sack => Some(self.negotiated.sack),
        };
        Methods {
            forward: forward.filter(|_| doubtful),
            eifel: self.config.recovery.eifel_detection && self.negotiated.timestamps && doubtful,
        }
    }

    /// Keeps what a time-out is about to change.
    pub(super) fn remember_prior(&mut self, flight_size: u64) {
        let sender = &mut self.sender;
        sender.prior = Some(Box::new(Prior {
            flight_size,
            cwnd: sender.controller.window(),
            ssthresh: sender.controller.ssthresh().unwrap_or(0),
            srtt: sender.rtt.srtt().unwrap_or_default() + CLOCK_GRANULARITY * 2,
            rttvar: sender.rtt.rttvar(),
            nxt: sender.nxt,
            spurious: false,
        }));
    }

    /// The time-out was found to be spurious by an acknowledgement of `acked` bytes.
    pub(super) fn on_spurious_timeout(&mut self, now: Instant, acked: u64) {
        self.statistics.spurious_timeouts += 1;
        let sender = &mut self.sender;
        (sender.backoff, sender.timeout_at) = (0, 0);
        let Some(prior) = &mut sender.prior else { return };
        let mss = u64::from(sender.mss);
        match self.config.recovery.spurious_response {
            SpuriousResponse::None => sender.prior = None,
            SpuriousResponse::Halve => {
                let half = (prior.flight_size / 2).max(2 * mss);
                sender.controller.on_spurious_timeout(now, half, half);
                sender.prior = None;
            }
            SpuriousResponse::Eifel => {
                // Steps 0, 5 and 6: `pipe_prev`, and a window that lets out no burst.
                prior.spurious = true;
                let initial_window = self.config.window.initial.bytes(mss);
                let window = sender.nxt - sender.una + acked.min(initial_window);
                let pipe_prev = prior.flight_size.max(prior.ssthresh);
                sender.controller.on_spurious_timeout(now, window, pipe_prev);
            }
            SpuriousResponse::Undo => {
                // `tcp_current_ssthresh` was kept, and `tcp_moderate_cwnd` avoids a burst.
                let ssthresh = prior.ssthresh.max(prior.cwnd / 4 * 3);
                let window = prior.cwnd.min(sender.board.pipe() + LINUX_MAX_BURST * mss);
                sender.controller.on_spurious_timeout(now, window, ssthresh);
                sender.prior = None;
            }
        }
    }

    /// Whether the acknowledgement that meant this has set the window already (RFC 4015, 3.2, step 6;
    /// `tcp_undo_cwr`).
    pub(super) fn restores_window(&self, change: Change) -> bool {
        let response = self.config.recovery.spurious_response;
        change == Change::Spurious && matches!(response, SpuriousResponse::Eifel | SpuriousResponse::Undo)
    }

    /// Takes a round-trip sample; after a spurious time-out, the first of new data sets the estimate (RFC 4015, 3.2,
    /// step 8).
    pub(super) fn take_rtt_sample(&mut self, sample: Duration, samples_log2: u32) {
        let sender = &mut self.sender;
        if let Some(prior) = &sender.prior
            && sender.una > prior.nxt
        {
            if prior.spurious {
                let (srtt, rttvar) = (prior.srtt.max(sample), prior.rttvar.max(sample / 2));
                sender.rtt.adapt(sample, srtt, rttvar);
                sender.prior = None;
                return;
            }
            sender.prior = None;
        }
        sender.rtt.on_sample(sample, samples_log2, (sender.una, sender.nxt));
    }
}

/// G of RFC 4015: our timestamps' tick.
const CLOCK_GRANULARITY: Duration = Duration::from_millis(1);
/// Segments that may go out at once after a window was restored: `tcp_max_burst` of Linux 2.4.
const LINUX_MAX_BURST: u64 = 3;
