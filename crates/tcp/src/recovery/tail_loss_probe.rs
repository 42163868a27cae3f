//! The tail loss probe of RFC 8985, section 7: where nothing later can tell of the last segments' loss, new data or
//! the last segment again asks for an acknowledgement before the retransmission timer expires.
//!
//! Deviations:
//! - `FlightSize` of the response to a loss that a probe repaired is what was outstanding when the probe left: when
//!   its acknowledgement comes, nothing may be.
//! - Where a probe has to be skipped the retransmission timer is not armed anew (7.3), or new data would put it off for ever.

use base::{Duration, Instant};

use super::{Arrival, Lost};

/// The probe of a connection; at most one is under way.
#[derive(Debug, Default)]
pub(crate) struct TailLossProbe {
    pending: Option<Box<Pending>>,
    /// The timer expired and it is to be sent.
    due: bool,
    /// No round-trip time was measured since the last one left.
    unmeasured: bool,
}

/// A probe that is under way.
#[derive(Debug)]
struct Pending {
    /// `TLP.end_seq`.
    end: u64,
    /// Bytes that were outstanding when it left.
    flight_size: u64,
    /// When the segment that it repeats had been sent before; none for new data, where `TLP.is_retrans` is false.
    again: Option<Instant>,
}

/// What an acknowledgement said of the probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Nothing that the controller should know.
    Nothing,
    /// It repaired a loss.
    Repaired { flight_size: u64, lost: Lost },
}

impl TailLossProbe {
    /// `TLP_calc_PTO` (7.2), without its bound by the retransmission timer.
    pub(super) fn timeout(srtt: Option<Duration>, segments: usize) -> Duration {
        match srtt {
            None => PTO_WITHOUT_SAMPLE,
            Some(srtt) if segments == 1 => srtt.saturating_mul(2) + MAX_ACK_DELAY,
            Some(srtt) => srtt.saturating_mul(2),
        }
    }

    /// Whether a probe is under way.
    pub(super) const fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    pub(super) const fn is_due(&self) -> bool {
        self.due
    }

    /// The timer expired. A probe needs a measurement of the round-trip time since the last one, or since the start,
    /// `measured`: probes shall not keep the sender from noticing that the path has become longer (7.3).
    pub(super) const fn expire(&mut self, measured: bool) {
        self.due = measured && !self.unmeasured;
    }

    /// The round-trip time was measured.
    pub(super) const fn on_rtt_sample(&mut self) {
        self.unmeasured = false;
    }

    /// It is sent (7.3); `again` is when the segment that it repeats had been sent, none for new data.
    pub(super) fn on_sent(&mut self, nxt: u64, flight_size: u64, again: Option<Instant>) {
        let pending = Some(Box::new(Pending { end: nxt, flight_size, again }));
        *self = Self { pending, due: false, unmeasured: true };
    }

    pub(super) fn cancel(&mut self) {
        (self.pending, self.due) = (None, false);
    }

    /// `TLP_process_ack` (7.4.2).
    pub(super) fn on_ack(&mut self, arrival: &Arrival<'_>) -> Outcome {
        if arrival.news.acked > 0 {
            self.due = false;
        }
        let Some(pending) = self.pending.as_ref().filter(|pending| arrival.una >= pending.end) else {
            return Outcome::Nothing;
        };
        let outcome = match pending.again {
            None => Outcome::Nothing,
            Some(_) if arrival.news.dsack == Some(pending.end) => Outcome::Nothing, // Case 1.
            Some(sent_at) if arrival.una > pending.end => {
                let lost = Lost { sent_at: Some(sent_at), resent: true };
                Outcome::Repaired { flight_size: pending.flight_size, lost }
            }
            Some(_) if arrival.news.bare => Outcome::Nothing, // Case 2.
            Some(_) => return Outcome::Nothing,
        };
        self.pending = None;
        outcome
    }
}

/// RFC 8985 (7.2).
const PTO_WITHOUT_SAMPLE: Duration = Duration::from_secs(1);
/// `TLP.max_ack_delay`: RFC 8985 (7.2) and Linux.
const MAX_ACK_DELAY: Duration = Duration::from_millis(200);
