//! Opening: the far connection, and what the caller is told and when.
//!
//! A SYN is answered when the far end has answered, so that a caller hears a refusal as it would without the proxy, and hears
//! nothing where there would be nothing. That costs no more than it does without the proxy. A caller from the LAN whose
//! server is known is answered at once, and its first words go out with the SYN: that saves a round trip.

use core::net::SocketAddr;

use base::{Duration, Instant};
use tcp::{ConnectError, Connection, ConnectionId, Failure, Offer, State};

use super::{Half, Proxy, Side};
use crate::config::Answer;

/// How long the SYN to the link waits for the first words of a caller that has been answered. Ours: round trips of a LAN, and
/// little beside that of a satellite, in case that it is for the server to begin. As often a caller's ports are tried again that a former
/// connection still has.
const FIRST_WORDS: Duration = Duration::from_millis(20);

impl Proxy {
    /// Somebody calls: half of a pair begins. It is answered early if it may be; else its twin is opened first.
    pub(super) fn on_asked(&mut self, now: Instant, side: Side, id: ConnectionId) {
        let Some((called, _)) = self.ends(side, id) else { return };
        let dscp = self.calling_dscp;
        self.add(side, Half { id, twin: None, is_open: true, dscp, ends_in_reset: false });
        let _ = self.hosts[side as usize].steer(id, |near| near.set_dscp(dscp));
        self.counters.split += 1;
        let early = side == Side::Lan
            && !self.is_end_to_end()
            && match self.config.answer {
                Answer::Never => false,
                Answer::Known => self.known.holds(now, called),
                Answer::Always => true,
            };
        if !early {
            return self.open(now, side, id);
        }
        self.counters.answered_early += 1;
        let _ = self.hosts[side as usize].steer(id, |near| near.admit(None));
        self.waiting.push_back((now.saturating_add(FIRST_WORDS), side, id));
    }

    /// The address that a connection stands in for, and its peer's.
    fn ends(&self, side: Side, id: ConnectionId) -> Option<(SocketAddr, SocketAddr)> {
        let connection = self.hosts[side as usize].connection(id)?;
        Some((connection.local(), connection.remote()))
    }

    /// Opens the twin of the connection `id`.
    fn open(&mut self, now: Instant, side: Side, id: ConnectionId) {
        let Some((called, caller)) = self.ends(side, id) else { return };
        let far = side.other();
        let (offer, end_to_end) = (self.offer(side, id), self.is_end_to_end());
        let host = &mut self.hosts[far as usize];
        match host.connect_from(now, caller, called, &self.tcp[far as usize], offer.as_ref()) {
            Ok(twin) => {
                if end_to_end {
                    let _ = host.steer(twin, Connection::relay_acknowledgements);
                }
                let dscp = self.half(side, id).map_or(0, |half| {
                    half.twin = Some(twin);
                    half.dscp
                });
                let _ = self.hosts[far as usize].steer(twin, |far| far.set_dscp(dscp));
                self.add(far, Half { id: twin, twin: Some(id), is_open: false, dscp, ends_in_reset: false });
                self.relay(now, side, id);
            }
            // Who calls knows that the former connection is over; what is left of it here may still wait for the link.
            Err(ConnectError::Taken(_)) => {
                self.waiting.push_back((now.saturating_add(FIRST_WORDS), side, id));
            }
            // A caller that was not answered will ask again; one that was has to be told.
            Err(_) if self.waits_for_answer(side, id) => self.hosts[side as usize].forget(id),
            Err(_) => {
                // Err is a connection that has gone.
                let _ = self.hosts[side as usize].abort(now, id);
            }
        }
    }

    /// What the far end is to be told of the near one, if the two are to be able to go on without the proxy.
    fn offer(&self, side: Side, id: ConnectionId) -> Option<Offer> {
        if !self.is_end_to_end() {
            return None;
        }
        self.hosts[side as usize].connection(id)?.offer()
    }

    /// Opens the twin of a caller that was answered early and has said something, if it is not open yet.
    pub(super) fn open_with_first_words(&mut self, now: Instant, id: ConnectionId) {
        if let Some(at) = self.waiting.iter().position(|&(_, side, it)| (side, it) == (Side::Lan, id)) {
            self.waiting.remove(at);
            self.open(now, Side::Lan, id);
        }
    }

    /// Opens the twins of callers that have waited for long enough.
    pub(super) fn open_waiting(&mut self, now: Instant) {
        while let Some((_, side, id)) = self.waiting.pop_front_if(|(at, ..)| *at <= now) {
            if self.hosts[side as usize].connection(id).is_some_and(|it| it.state() != State::Closed) {
                self.open(now, side, id);
            }
        }
    }

    /// The far end has answered.
    pub(super) fn on_connected(&mut self, now: Instant, side: Side, id: ConnectionId) {
        let Some(&mut Half { twin: Some(twin), ref mut is_open, .. }) = self.half(side, id) else { return };
        *is_open = true;
        if let Some((_, called)) = self.ends(side, id)
            && side == Side::Link
        {
            self.known.note(now, called);
        }
        let offer = self.offer(side, id);
        let end_to_end = self.is_end_to_end();
        let _ = self.hosts[side.other() as usize].steer(twin, |near| {
            near.admit(offer.as_ref());
            if end_to_end {
                near.relay_acknowledgements();
                near.acknowledge_only(0);
            }
        });
        if end_to_end {
            let _ = self.hosts[side as usize].steer(id, |far| far.acknowledge_only(0));
        }
        self.relay(now, side, id);
        self.refill(now, side, id);
    }

    /// The caller has acknowledged the answer.
    pub(super) fn on_accepted(&mut self, now: Instant, side: Side, id: ConnectionId) {
        if let Some(twin) = self.twin(side, id) {
            let _ = self.hosts[side.other() as usize].steer(twin, Connection::break_silence);
        }
        self.relay(now, side, id);
    }

    /// The far end has not taken the call: the near end learns of it in the same way.
    pub(super) fn on_not_connected(&mut self, now: Instant, far: Side, near: ConnectionId, failure: Failure) {
        let side = far.other();
        if let Some((called, _)) = self.ends(side, near) {
            self.known.forget(called);
        }
        let waits = self.waits_for_answer(side, near);
        let host = &mut self.hosts[side as usize];
        if failure == Failure::TimedOut {
            self.counters.unanswered += 1;
        } else {
            self.counters.refused += 1;
        }
        if waits && failure == Failure::TimedOut {
            host.forget(near);
        } else {
            // Err is a connection that has gone.
            let _ = host.abort(now, near);
        }
    }

    /// Whether a caller has not been answered yet.
    pub(super) fn waits_for_answer(&self, side: Side, near: ConnectionId) -> bool {
        self.hosts[side as usize].connection(near).is_some_and(Connection::is_held)
    }
}
