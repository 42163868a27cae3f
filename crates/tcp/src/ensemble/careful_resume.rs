//! Careful Resume: RFC 9959. A new connection jumps to half of the window that an earlier one had, once its initial
//! window came through and the path looks the same, and retreats below what the path proved to carry if that was wrong.
//!
//! Deviations and choices:
//! - the jump and what follows are kept apart from the controller that `congestion` names: a controller is handed the
//!   window when there is one to hand over; a search for the end of slow start ends with it;
//! - packets are told apart by bytes delivered, not by number: the first unvalidated byte is the one after all that was
//!   outstanding at the jump;
//! - `saved_cwnd` is the most that was in the network since the last congestion. It is saved once a round trip, while it
//!   is four initial windows or more; a smaller value replaces a larger one only if congestion came in between, for
//!   an application that sends little says nothing of the path;
//! - the saved parameters are lent to one connection at a time; others start as usual;
//! - after a retreat `ssthresh` is half of `PipeSize`, whatever factor the controller uses elsewhere.

use std::sync::{Arc, Mutex};

use base::{Duration, Instant, Rate};

use super::{Closing, Opening, Policy, Shared, SharingConfig, Ticket, lock};
use crate::congestion::{self, AckSample, Cause, Congestion, Controller};

/// Where a connection stands, in the terms of RFC 9959. Its Observing Phase goes on beside Normal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// The initial window is out; the path is compared with the one remembered.
    Reconnaissance,
    /// The window has jumped; nothing sent since has been acknowledged.
    Unvalidated,
    /// What was sent in the jump is being acknowledged.
    Validating,
    /// The jump met congestion: the window is half of what came through.
    SafeRetreat,
    /// The controller alone decides, and the window is observed for later connections.
    #[default]
    Normal,
}

/// What is saved of one destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SavedState {
    /// `saved_cwnd` in bytes and `saved_rtt`, if there are any.
    pub saved: Option<(u64, Duration)>,
    /// When they were saved.
    pub stored_at: Instant,
    /// The phase that the latest connection to change its phase is in.
    pub phase: Phase,
    /// Connections that take part now.
    pub members: u32,
    /// Jumps so far.
    pub jumps: u64,
    /// Those that ended in a retreat.
    pub retreats: u64,
    /// The member that may use the saved parameters now.
    borrower: Option<u64>,
    joined: u64,
}

/// The policy for one destination.
#[derive(Debug)]
pub(super) struct CarefulResume {
    lifetime: Duration,
    saved: Arc<Mutex<SavedState>>,
}

impl CarefulResume {
    pub(super) fn new(settings: &SharingConfig) -> Self {
        Self { lifetime: settings.lifetime, saved: Arc::default() }
    }
}

impl Policy for CarefulResume {
    fn join(&self, _opening: &Opening<'_>) -> Ticket {
        let mut saved = lock(&self.saved);
        saved.members += 1;
        saved.joined += 1;
        Ticket { slot: 0, number: saved.joined }
    }

    fn establish(&self, ticket: Ticket, opening: &Opening<'_>) -> Box<dyn Controller> {
        let mut saved = lock(&self.saved);
        if opening.now.saturating_since(saved.stored_at) > self.lifetime {
            saved.saved = None;
        }
        // A lost SYN is congestion before the first data: no jump.
        let usable = saved.saved.filter(|_| saved.borrower.is_none() && !opening.syn_lost);
        let jump = usable
            .map(|(cwnd, rtt)| (cwnd / 2, rtt))
            .filter(|&(jump, _)| jump > opening.start.initial_window);
        if jump.is_some() {
            (saved.borrower, saved.phase) = (Some(ticket.number), Phase::Reconnaissance);
        } else {
            saved.phase = Phase::Normal;
        }
        let (jump_cwnd, saved_rtt) = jump.unwrap_or_default();
        Box::new(Resuming {
            inner: congestion::build(opening.config, &opening.start),
            shared: Arc::clone(&self.saved),
            number: ticket.number,
            phase: if jump.is_some() { Phase::Reconnaissance } else { Phase::Normal },
            jump_cwnd,
            saved_rtt,
            rtt: Duration::MAX,
            mss: opening.start.mss,
            initial_window: opening.start.initial_window,
            jumped_at: Instant::ZERO,
            pipe_size: 0,
            delivered: 0,
            mark: 0,
            round: 0,
            peak: 0,
            congested: false,
        })
    }

    fn leave(&self, ticket: Ticket, _closing: &Closing) {
        let mut saved = lock(&self.saved);
        saved.members -= 1;
        if saved.borrower == Some(ticket.number) {
            saved.borrower = None;
        }
    }

    fn members(&self) -> u32 {
        lock(&self.saved).members
    }

    fn shared(&self) -> Shared {
        Shared::CarefulResume(*lock(&self.saved))
    }
}

/// A controller that resumes, around the one that the configuration names.
#[derive(Debug)]
struct Resuming {
    inner: Box<dyn Controller>,
    shared: Arc<Mutex<SavedState>>,
    number: u64,
    phase: Phase,
    /// Half of `saved_cwnd`.
    jump_cwnd: u64,
    saved_rtt: Duration,
    /// The least round-trip time of this connection: `current_rtt`.
    rtt: Duration,
    mss: u64,
    initial_window: u64,
    jumped_at: Instant,
    /// Bytes that the path has proved to carry: `PipeSize`.
    pipe_size: u64,
    /// Bytes delivered so far.
    delivered: u64,
    /// What `delivered` is when the last byte before the jump (Unvalidated), or of it (Validating and Safe Retreat), has
    /// arrived.
    mark: u64,
    round: u64,
    /// Most bytes in the network since the last congestion.
    peak: u64,
    /// There was congestion.
    congested: bool,
}

impl Resuming {
    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        let mut shared = lock(&self.shared);
        shared.phase = phase;
        match phase {
            Phase::Unvalidated => shared.jumps += 1,
            Phase::SafeRetreat => {
                // What misled one connection is to mislead no other.
                shared.retreats += 1;
                shared.saved = None;
            }
            Phase::Normal if shared.borrower == Some(self.number) => shared.borrower = None,
            Phase::Normal | Phase::Reconnaissance | Phase::Validating => {}
        }
    }

    /// Gives the controller this window; the threshold stays.
    fn hand_over(&mut self, window: u64) {
        let ssthresh = self.inner.ssthresh().unwrap_or(u64::MAX);
        self.inner.set_window(window, Some(ssthresh));
    }

    /// The end of Reconnaissance: the initial window has arrived and more waits than the window lets out.
    fn confirm_path(&mut self, now: Instant, in_flight: u64) {
        let low = Duration::from_nanos(self.saved_rtt.as_nanos() / 2);
        let confirmed = (low..=self.saved_rtt.saturating_mul(10)).contains(&self.rtt);
        if !confirmed || self.inner.window() >= self.jump_cwnd {
            return self.enter(Phase::Normal);
        }
        self.enter(Phase::Unvalidated);
        self.jumped_at = now;
        self.pipe_size = in_flight;
        self.mark = self.delivered + in_flight;
    }

    /// The end of Unvalidated: the window falls to what is in the network.
    fn begin_validation(&mut self, in_flight: u64) {
        if in_flight <= self.pipe_size {
            self.hand_over(self.pipe_size);
            return self.enter(Phase::Normal);
        }
        self.mark = self.delivered + in_flight;
        self.hand_over(in_flight);
        self.enter(Phase::Validating);
    }

    /// Congestion in the jump: half of what came through, and no slow start beyond.
    fn retreat(&mut self, event: &Congestion) {
        if self.phase == Phase::Unvalidated {
            self.mark = self.delivered + event.flight_size;
        }
        let half = (self.pipe_size / 2).max(self.mss);
        let window = match event.cause {
            Cause::Timeout => self.inner.window(),
            Cause::Loss | Cause::Ecn => half,
        };
        self.inner.set_window(window, Some(half.max(2 * self.mss)));
        self.enter(Phase::SafeRetreat);
    }

    /// Counts what arrived, and leaves the phases that end by it.
    fn note_delivery(&mut self, ack: &AckSample) {
        self.delivered += ack.delivered_bytes;
        self.rtt = self.rtt.min(ack.rtt_min);
        match self.phase {
            Phase::Unvalidated => {
                self.pipe_size += ack.delivered_bytes;
                let late = ack.now.saturating_since(self.jumped_at) > self.rtt;
                if self.delivered > self.mark || late {
                    self.begin_validation(ack.in_flight);
                }
            }
            Phase::Validating => {
                self.pipe_size += ack.delivered_bytes;
                if self.delivered >= self.mark {
                    self.enter(Phase::Normal);
                }
            }
            Phase::SafeRetreat => {
                self.pipe_size += ack.delivered_bytes;
                if self.delivered >= self.mark {
                    let ssthresh = (self.pipe_size / 2).max(2 * self.mss);
                    let window = self.inner.window();
                    self.inner.set_window(window, Some(ssthresh));
                    self.enter(Phase::Normal);
                }
            }
            Phase::Reconnaissance | Phase::Normal => {}
        }
    }

    /// The Observing Phase: once a round trip, what the path carries.
    fn observe(&mut self, ack: &AckSample) {
        self.peak = self.peak.max(ack.prior_in_flight);
        if ack.round == self.round || ack.recovering {
            return;
        }
        self.round = ack.round;
        if self.peak < MIN_SAVED * self.initial_window || self.rtt == Duration::MAX {
            return;
        }
        let mut shared = lock(&self.shared);
        let larger = shared.saved.is_none_or(|(saved, _)| self.peak >= saved);
        if larger || self.congested {
            shared.saved = Some((self.peak, self.rtt));
            shared.stored_at = ack.now;
        }
    }
}

/// RFC 9959, Observing Phase: less than four initial windows is not worth saving.
const MIN_SAVED: u64 = 4;

impl Controller for Resuming {
    fn on_ack(&mut self, ack: &AckSample) {
        let jumping = self.phase == Phase::Unvalidated;
        self.note_delivery(ack);
        // The acknowledgements of the reconnaissance do not open the window that has jumped.
        if !jumping {
            self.inner.on_ack(ack);
        }
        if self.phase == Phase::Normal {
            self.observe(ack);
        }
    }

    fn on_congestion(&mut self, event: &Congestion) {
        (self.peak, self.congested) = (0, true);
        self.inner.on_congestion(event);
        match self.phase {
            Phase::Reconnaissance => self.enter(Phase::Normal),
            Phase::Unvalidated | Phase::Validating => self.retreat(event),
            Phase::SafeRetreat | Phase::Normal => {}
        }
    }

    fn on_send_opportunity(&mut self, now: Instant, in_flight: u64) {
        self.inner.on_send_opportunity(now, in_flight);
        let full = |window: u64| in_flight + self.mss > window;
        match self.phase {
            Phase::Reconnaissance if self.delivered >= self.initial_window && full(self.inner.window()) => {
                self.confirm_path(now, in_flight);
            }
            Phase::Unvalidated if full(self.jump_cwnd) || now.saturating_since(self.jumped_at) > self.rtt => {
                self.begin_validation(in_flight);
            }
            _ => {}
        }
    }

    fn on_recovery_exit(&mut self, now: Instant) {
        self.inner.on_recovery_exit(now);
    }

    fn steers_recovery(&self) -> bool {
        self.inner.steers_recovery()
    }

    fn on_spurious_congestion(&mut self, now: Instant, window: u64, ssthresh: u64) {
        if self.phase != Phase::SafeRetreat {
            self.inner.on_spurious_congestion(now, window, ssthresh);
        }
    }

    fn on_restart(&mut self, now: Instant) {
        if matches!(self.phase, Phase::Unvalidated | Phase::Validating | Phase::SafeRetreat) {
            self.enter(Phase::Normal);
        }
        self.inner.on_restart(now);
    }

    fn window(&self) -> u64 {
        if self.phase == Phase::Unvalidated { self.jump_cwnd } else { self.inner.window() }
    }

    fn set_window(&mut self, window: u64, ssthresh: Option<u64>) {
        self.inner.set_window(window, ssthresh);
    }

    fn ssthresh(&self) -> Option<u64> {
        self.inner.ssthresh()
    }

    fn pacing_rate(&self) -> Option<Rate> {
        if self.phase != Phase::Unvalidated {
            return self.inner.pacing_rate();
        }
        // Unvalidated Phase: the jump spreads over a round trip.
        let bits = u128::from(self.jump_cwnd) * 8 * 1_000_000_000;
        let bps = bits / u128::from(self.rtt.as_nanos().max(1));
        Some(Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests;
