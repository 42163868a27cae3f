//! From the TUN device to the carrier.

use std::io;

use base::Instant;
use link::{Demand, Full};

use super::{Gateway, TURN};
use crate::carrier::{Path, Sent};
use crate::session::{DATA_HEADER_LEN, OVERHEAD};

/// Frames sent before arrivals have their turn: two batches.
const FRAMES: usize = 128;

impl Gateway {
    /// Whether packets are to be read from the TUN: always on a link with a rate, whose queue drops what is
    /// too much; else only while there is room, so that the kernel's queue holds the rest.
    pub(super) fn wants_packets(&self) -> bool {
        self.pacer.is_limited() || (self.entry.is_empty() && !self.blocked)
    }

    /// Moves packets from the TUN to the queues, a few at most, and on to the endpoint as it has room.
    pub(super) fn read_tun(&mut self, now: Instant) -> io::Result<()> {
        for _ in 0..TURN {
            if !self.wants_packets() {
                break;
            }
            let Some(packet) = self.tun.read()? else { break };
            self.traffic.tun_packets_read.increment();
            // What does not fit is dropped, and counted by the queue.
            let _ = self.entry.push(now, packet);
            self.fill_endpoint(now);
        }
        Ok(())
    }

    fn fill_endpoint(&mut self, now: Instant) {
        while let Some((packet, treatment)) = self.entry.pop_for(now, &*self.endpoint) {
            if let Err(Full(_)) = self.endpoint.offer(now, packet, treatment) {
                unreachable!("the endpoint said that it has room");
            }
        }
    }

    /// Sends what may leave now.
    pub(super) fn transmit(&mut self, now: Instant) {
        while let Some((to, datagram)) = self.session.poll_transmit() {
            self.count_sent(1, datagram.len());
            self.pacer.on_sent(now, self.on_line(datagram.len()));
            if self.carrier.send(to, &datagram, datagram.len()) == Sent::Refused {
                self.traffic.datagrams_refused.increment();
            }
        }
        let Some(to) = self.session.path() else { return };
        // A peer that has not been heard for long gets keep-alives only; the link's state stays.
        if !self.session.is_heard(now) {
            return;
        }
        if !self.batch.is_empty() && !self.flush(to) {
            return;
        }
        for _ in 0..FRAMES {
            self.fill_endpoint(now);
            let Some(demand) = self.due(now) else { break };
            if !self.make_room(to) || !self.append_frame(now, to) {
                break;
            }
            if demand == Demand::Filler {
                self.pacer.on_filler(now);
                self.traffic.fillers_sent.increment();
            }
        }
        self.flush(to);
    }

    /// What the endpoint may say now, if anything.
    fn due(&self, now: Instant) -> Option<Demand> {
        let demand = self.endpoint.demand(now);
        let allowed = match demand {
            Demand::Nothing => false,
            Demand::Filler => self.pacer.allows_filler(now),
            Demand::Fresh => true,
        };
        (allowed && self.pacer.is_free(now)).then_some(demand)
    }

    /// Whether the batch takes another datagram, after it was sent if it was full.
    fn make_room(&mut self, to: Path) -> bool {
        self.batch.has_room(self.frame_limit + OVERHEAD, self.carrier.batch_limit()) || self.flush(to)
    }

    /// Appends one frame, sealed, to the batch; false if there is none or the socket is full.
    fn append_frame(&mut self, now: Instant, to: Path) -> bool {
        let buffer = self.batch.buffer();
        let start = buffer.len();
        buffer.extend_from_slice(&[0; DATA_HEADER_LEN]);
        let Some(info) = self.endpoint.poll_frame(now, buffer) else {
            buffer.truncate(start);
            return false;
        };
        if info.late_len > 0 {
            self.endpoint.seal_frame(now, &mut buffer[start + DATA_HEADER_LEN..]);
        }
        self.session.seal(now, buffer, start);
        let len = buffer.len() - start;
        self.pacer.on_sent(now, self.on_line(len));
        self.count_sent(1, len);
        if self.batch.finish_datagram(start) {
            return true;
        }
        // Longer than the batch's others: those leave first.
        let (bytes, segment) = self.batch.contents();
        let sent = self.carrier.send(to, &bytes[..start], segment);
        self.after_send(sent, start.div_ceil(segment));
        self.batch.keep_from(start);
        !self.blocked
    }

    /// Sends the batch; false if the socket is full and the batch must wait.
    fn flush(&mut self, to: Path) -> bool {
        if self.batch.is_empty() {
            return true;
        }
        let (bytes, segment) = self.batch.contents();
        let sent = self.carrier.send(to, bytes, segment);
        self.after_send(sent, self.batch.len());
        if !self.blocked {
            self.batch.clear();
        }
        !self.blocked
    }

    fn after_send(&mut self, sent: Sent, datagrams: usize) {
        self.blocked = sent == Sent::Full;
        if sent == Sent::Refused {
            self.traffic.datagrams_refused.add(datagrams as u64);
        }
    }

    /// Bytes of the line that a datagram of `len` bytes occupies.
    fn on_line(&self, len: usize) -> usize {
        self.config.link.overhead.on_line(len + self.header_len)
    }

    fn count_sent(&mut self, datagrams: u64, len: usize) {
        self.traffic.datagrams_sent.add(datagrams);
        self.traffic.bytes_sent.add((len + self.header_len) as u64);
    }
}
