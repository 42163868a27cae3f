//! STCP: one congestion window and one threshold for all connections to a destination. Peng, Andreadis, Bélisle and
//! Barbeau, "Improving TCP Performance over Long Delay Satellite Links", 2001, section 3.
//!
//! The arithmetic is the ECB's (`ecb`, which lists the deviations). Here it meets the connections: each member's
//! controller asks the ECB for its share whenever it updates the aggregate or needs to send, as section 3.3 says. What a
//! recovery scheme adds to a window during fast recovery stays with its connection.

mod ecb;

use core::net::IpAddr;
use std::sync::{Arc, Mutex};

use base::Instant;

use super::{Closing, Opening, Policy, Shared, Ticket, lock};
use crate::congestion::{AckSample, Cause, Congestion, Controller};
use crate::rtt::RttEstimator;
use ecb::Ecb;
pub use ecb::{EcbState, EcbStatistics};

/// The policy for one destination.
#[derive(Debug)]
pub(super) struct Stcp(Arc<Mutex<Ecb>>);

impl Stcp {
    pub(super) fn new(network: IpAddr, opening: &Opening<'_>) -> Self {
        let rtt = RttEstimator::new(opening.config);
        Self(Arc::new(Mutex::new(Ecb::new(network, opening.config.sharing, rtt, &opening.start))))
    }
}

impl Policy for Stcp {
    fn join(&self, opening: &Opening<'_>) -> Ticket {
        lock(&self.0).join(opening.now, &opening.start, opening.called)
    }

    fn establish(&self, ticket: Ticket, opening: &Opening<'_>) -> Box<dyn Controller> {
        let start = opening.start;
        lock(&self.0).establish(ticket, &start, opening.syn_lost);
        Box::new(Member {
            ecb: Arc::clone(&self.0),
            ticket,
            mss: start.mss,
            limit: start.mss.saturating_mul(start.byte_counting_limit),
            restart_window: start.initial_window,
        })
    }

    fn leave(&self, ticket: Ticket, closing: &Closing) {
        lock(&self.0).leave(closing.now, ticket);
    }

    fn members(&self) -> u32 {
        lock(&self.0).num_connections()
    }

    fn shared(&self) -> Shared {
        Shared::Stcp(lock(&self.0).state())
    }
}

/// The controller of one member.
#[derive(Debug)]
struct Member {
    ecb: Arc<Mutex<Ecb>>,
    ticket: Ticket,
    mss: u64,
    /// Bytes that one acknowledgement can open the aggregate by in slow start (RFC 3465).
    limit: u64,
    /// The initial window: RW of RFC 5681 (4.1) is no larger.
    restart_window: u64,
}

impl Controller for Member {
    fn on_ack(&mut self, ack: &AckSample) {
        lock(&self.ecb).on_ack(self.ticket, ack, self.limit);
    }

    fn on_congestion(&mut self, event: &Congestion) {
        let mut ecb = lock(&self.ecb);
        match event.cause {
            Cause::Loss | Cause::Ecn => ecb.on_loss(event, self.ticket),
            Cause::Timeout => ecb.on_timeout(event, self.ticket),
        }
    }

    fn on_send_opportunity(&mut self, now: Instant, in_flight: u64) {
        lock(&self.ecb).on_send_opportunity(now, self.ticket, in_flight);
    }

    fn on_restart(&mut self, now: Instant) {
        lock(&self.ecb).on_restart(now, self.ticket, self.restart_window);
    }

    fn window(&self) -> u64 {
        lock(&self.ecb).cwnd(self.ticket, self.mss)
    }

    fn set_window(&mut self, window: u64, ssthresh: Option<u64>) {
        let mut ecb = lock(&self.ecb);
        match ssthresh {
            None => ecb.set_window(self.ticket, window),
            Some(ssthresh) => ecb.restore(self.ticket, window, ssthresh),
        }
    }

    fn ssthresh(&self) -> Option<u64> {
        Some(lock(&self.ecb).n_ssthresh())
    }
}
