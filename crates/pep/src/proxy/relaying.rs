//! Relaying: bytes, the end of a stream, acknowledgements and resets.
//!
//! What is read on one side is written on the other as far as it takes it; the rest stays where it is, so that the window of
//! who sends it closes. A stream that has ended is finished on the other side. A connection that breaks first gets what came
//! before across, then breaks the other, so that bytes delivered are a prefix of bytes sent.

use base::Instant;
use tcp::{Connection, ConnectionId, Failure};

use super::{Half, Proxy, Side};

impl Proxy {
    /// Moves what can be read of a connection to its twin, as far as that takes it.
    pub(super) fn relay(&mut self, now: Instant, side: Side, id: ConnectionId) {
        let Some(twin) = self.twin(side, id) else {
            let said = |it: &Connection| it.readable() > 0 || it.peer_finished();
            if side == Side::Lan && self.hosts[0].connection(id).is_some_and(said) {
                self.open_with_first_words(now, id);
            }
            return;
        };
        let [lan, link] = &mut self.hosts;
        let (from, to) = if side == Side::Lan { (lan, link) } else { (link, lan) };
        let (mut relayed, mut unwanted) = (0, 0);
        if let Ok((first, second)) = from.peek(id) {
            for part in [first, second] {
                match to.write(now, twin, part) {
                    Ok(taken) => relayed += taken,
                    // Nobody is there to take it any more.
                    Err(_) => unwanted += part.len(),
                }
                if relayed + unwanted < part.len() {
                    break;
                }
            }
        }
        if relayed + unwanted > 0 {
            // Err is a connection that has gone.
            let _ = from.consume(now, id, relayed + unwanted);
        }
        // One that has gone before it was finished has broken.
        let is_over = from.connection(id).is_some_and(|it| it.peer_finished() && it.readable() == 0);
        if is_over && to.connection(twin).is_some_and(|it| !it.has_finished()) {
            let _ = to.finish(now, twin);
        }
        match side {
            Side::Lan => self.counters.bytes_to_link += relayed as u64,
            Side::Link => self.counters.bytes_to_lan += relayed as u64,
        }
    }

    /// A connection takes more: what its twin has for it.
    pub(super) fn refill(&mut self, now: Instant, side: Side, id: ConnectionId) {
        if let Some(twin) = self.twin(side, id) {
            self.relay(now, side.other(), twin);
        }
    }

    /// The peer of a connection has acknowledged more.
    pub(super) fn on_acknowledged(&mut self, now: Instant, side: Side, id: ConnectionId) {
        let Some(twin) = self.twin(side, id) else { return };
        let Some(connection) = self.hosts[side as usize].connection(id) else { return };
        let count = connection.acknowledged();
        if self.is_end_to_end() {
            let _ = self.hosts[side.other() as usize].steer(twin, |it| it.acknowledge_only(count));
        }
        self.refill(now, side, id);
        self.reset_if_due(now, side, id);
    }

    /// A connection has broken: its twin does once it has delivered what came before.
    pub(super) fn on_failed(&mut self, now: Instant, side: Side, id: ConnectionId, failure: Failure) {
        let Some(&mut Half { twin: Some(twin), is_open, .. }) = self.half(side, id) else { return };
        let other = side.other();
        // Nobody takes what has come for it.
        self.relay(now, other, twin);
        if failure == Failure::Aborted {
            return;
        }
        if !is_open {
            return self.on_not_connected(now, side, twin, failure);
        }
        self.counters.broken += 1;
        if let Some(half) = self.half(other, twin) {
            half.ends_in_reset = true;
        }
        let _ = self.hosts[other as usize].steer(twin, Connection::relay_acknowledgements);
        self.relay(now, side, id);
        self.reset_if_due(now, other, twin);
    }

    /// Resets a connection whose twin has broken, once its peer has everything.
    fn reset_if_due(&mut self, now: Instant, side: Side, id: ConnectionId) {
        let Some(half) = self.half(side, id).filter(|half| half.ends_in_reset) else { return };
        let twin = half.twin;
        let host = &self.hosts[side as usize];
        let waits = host.connection(id).is_some_and(|it| it.unacknowledged() > 0);
        let twin = twin.and_then(|twin| self.hosts[side.other() as usize].connection(twin));
        if !waits && twin.is_none_or(|it| it.readable() == 0) {
            // Err is a connection that has gone.
            let _ = self.hosts[side as usize].abort(now, id);
        }
    }
}
