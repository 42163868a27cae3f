//! What goes out next: resets, SYNs, what the sender has, and acknowledgements (RFC 9293, 3.8).

use base::wire::ip::Ecn;
use base::wire::tcp::Flags;
use base::{Instant, Packet};

use super::sender::transmit::{Segment, Transmission};
use super::{Connection, Events, State};

impl Connection {
    /// Writes the next packet to `out`; false if there is none.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Packet) -> bool {
        self.poll_transmit_train(now, out, 0) > 0
    }

    /// Writes the next packet to `out`, in which full segments of new data in a row may come together, for whoever
    /// has it cut up by a device. Returns the number of segments in it, 0 if there is none. A packet of several has
    /// up to `most` bytes of data, and its TCP checksum covers the pseudo-header alone.
    pub fn poll_transmit_train(&mut self, now: Instant, out: &mut Packet, most: u32) -> u32 {
        if let Some(reset) = self.reset_due.take() {
            self.emit_reset(now, out, reset);
            return 1;
        }
        match self.state {
            State::Closed => return 0,
            State::SynSent | State::SynReceived => return self.poll_handshake(now, out).into(),
            _ if self.syn_due => return self.poll_handshake(now, out).into(),
            _ if self.is_silent() => return 0,
            _ => {}
        }
        // The peer counts duplicates, and one that carries data is none.
        if self.receiver.duplicates_due == 0 && self.sender.has_work() {
            let sent = self.poll_data(now, out, most);
            if sent > 0 {
                return sent;
            }
        }
        if self.receiver.ack_due() {
            let keep_alive = core::mem::take(&mut self.timers.keep_alive_due);
            let start = self.sender.nxt - u64::from(keep_alive);
            let bare = Segment { start, flags: Flags(0), len: 0, ecn: Ecn::NotEct, segments: 1, place: None };
            self.emit(now, out, bare);
            return 1;
        }
        0
    }

    /// Whether [`Connection::poll_transmit`] may have something; cheap.
    pub(crate) fn wants_transmit(&self) -> bool {
        self.receiver.ack_due() || self.sender.has_work() || self.syn_due || self.reset_due.is_some()
    }

    /// Writes what the sender has, if anything, to `out`; segments written.
    fn poll_data(&mut self, now: Instant, out: &mut Packet, most: u32) -> u32 {
        let before = self.sender.nxt;
        match self.sender.poll(now, most) {
            None => 0,
            Some(Transmission::Repair(symbol, reason)) => {
                self.emit_repair(now, out, &symbol, reason);
                1
            }
            Some(Transmission::Segment(segment)) => {
                self.emit(now, out, segment);
                if segment.flags.has(Flags::FIN) {
                    self.on_fin_sent();
                }
                if self.sender.nxt > before && self.sender.unblocks() {
                    self.events.raise(Events::WRITABLE);
                }
                segment.segments
            }
        }
    }
}
