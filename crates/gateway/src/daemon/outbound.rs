//! From the TUN device to the carrier.

use std::io;

use base::{Duration, Instant, Packet};
use link::queue::Refusal;
use link::{Demand, Full, Marks, Treatment};
use pep::Side;

use super::{Gateway, TURN, pairing};
use crate::carrier::{Path, Sent};
use crate::session::{DATA_HEADER_LEN, OVERHEAD};

/// Frames sent before arrivals have their turn: two batches.
const FRAMES: usize = 128;
/// Before a device whose queue was full is tried again: what a gigabit takes for a few dozen packets.
const BUSY_PAUSE: Duration = Duration::from_millis(1);

/// What becomes of a packet that a queue drops: the queue has counted it.
pub(super) fn counted(_: Packet, _: Refusal) {}

impl Gateway {
    /// Whether packets are to be read from the TUN: always on a link with a rate, whose queue drops what is
    /// too much; else only while there is room, so that the kernel's queue holds the rest.
    pub(super) fn wants_packets(&self) -> bool {
        self.pacer.is_limited() || (self.entry.is_empty() && !self.blocked)
    }

    /// Moves packets from the TUN to the queues, a few at most, and on to the endpoint as it has room. Without a rate each is
    /// cut up and sealed at once, while it is in the cache.
    pub(super) fn read_tun(&mut self, now: Instant) -> io::Result<()> {
        for turn in 0..TURN {
            // The first time the device may have an error to tell, which shows whatever is wanted.
            if turn > 0 && !self.wants_packets() {
                break;
            }
            let Some(mut packet) = self.tun.read()? else { break };
            self.traffic.tun_packets_read.increment();
            if !self.splitting.as_mut().is_some_and(|it| it.takes(now, Side::Lan, &mut packet)) {
                self.entry.push(now, packet, &*self.endpoint, &mut counted);
            }
            if self.pacer.is_limited() {
                self.fill_endpoint(now);
            } else {
                self.append_frames(now);
            }
        }
        if let Some(splitting) = &mut self.splitting {
            splitting.flush(now, &mut self.tun, &mut self.traffic);
        }
        Ok(())
    }

    fn next_packet(&mut self, now: Instant) -> Option<(Packet, Treatment)> {
        match &mut self.splitting {
            Some(splitting) => splitting.next(now, &mut self.entry, &*self.endpoint),
            None => self.entry.pop_for(now, &*self.endpoint, &mut counted),
        }
    }

    fn fill_endpoint(&mut self, now: Instant) {
        while let Some((packet, treatment)) = self.next_packet(now) {
            if let Err(Full(_)) = self.endpoint.offer(now, packet, treatment) {
                unreachable!("the endpoint said that it has room");
            }
        }
        let splitting = self.splitting.as_ref().map_or(0, |splitting| splitting.waiting());
        for treatment in Treatment::ALL {
            let split = if treatment == Treatment::Reliable { splitting } else { 0 };
            self.endpoint.set_backlog(treatment, self.entry.bytes_for(treatment) + split);
        }
    }

    /// Sends what may leave now.
    pub(super) fn transmit(&mut self, now: Instant) {
        if self.session.is_heard(now) {
            while let Some((kind, body)) = self.survey.poll_control(now) {
                self.session.send_control(now, kind, &body);
            }
            if let Some(body) = self.splitting.as_mut().and_then(|it| it.poll_pairing(now)) {
                self.session.send_control(now, pairing::KIND, &body);
            }
        }
        self.transmit_controls(now);
        self.begin_train();
        self.append_frames(now);
        if let Some(to) = self.session.path()
            && self.session.is_heard(now)
            && !self.blocked
        {
            self.flush(now, to);
        }
        self.end_train();
        // What has left has made room, of which senders on the LAN are to hear.
        if let Some(splitting) = &mut self.splitting {
            splitting.flush(now, &mut self.tun, &mut self.traffic);
        }
    }

    fn transmit_controls(&mut self, now: Instant) {
        while let Some((to, datagram)) = self.session.poll_transmit() {
            self.count_sent(1, datagram.len());
            self.pacer.on_sent(now, self.on_line(datagram.len()));
            match self.carrier.send(to, Marks::default(), &datagram, datagram.len()) {
                Sent::Refused => self.traffic.datagrams_refused.increment(),
                Sent::TooLong => self.on_too_long(now, datagram.len()),
                // What the session and the path say is said again in time.
                Sent::Yes | Sent::Full | Sent::Busy => {}
            }
        }
    }

    /// Begins a train if one is due: whole, if it is of padding; else its mark, and frames follow in a burst. When it begins and ends is
    /// measured, so the time is what it is, not when this turn of the loop began.
    fn begin_train(&mut self) {
        let now = self.clock.now();
        if self.blocked || !self.batch.is_empty() || self.train.is_some() || !self.session.is_heard(now) {
            return;
        }
        let waiting = self.entry.bytes() + self.splitting.as_ref().map_or(0, |splitting| splitting.waiting());
        let len = self.frame_limit + OVERHEAD + self.header_len;
        let Some((train, (kind, mark))) = self.survey.poll_train(now, len, waiting) else { return };
        self.session.send_control(now, kind, &mark);
        if !train.padded {
            self.train = Some(train.datagrams);
            return self.transmit_controls(now);
        }
        // Nothing is known of the channel yet: its marks go twice.
        self.session.send_control(now, kind, &mark);
        self.transmit_controls(now);
        let (kind, padding) = self.survey.padding();
        for _ in 0..train.datagrams {
            self.session.send_control(now, kind, &padding);
            self.transmit_controls(now);
        }
        self.train = Some(0);
    }

    /// Ends the train that has left.
    fn end_train(&mut self) {
        if self.train.is_none() || self.blocked || !self.batch.is_empty() {
            return;
        }
        self.train = None;
        let now = self.clock.now();
        let (kind, mark) = self.survey.end_train(now);
        self.session.send_control(now, kind, &mark);
        self.transmit_controls(now);
    }

    /// Fills the batch with what may leave now, and sends it whenever it is full.
    fn append_frames(&mut self, now: Instant) {
        let is_heard = self.session.is_heard(now);
        self.entry.set_silent(now, !is_heard);
        let Some(to) = self.session.path() else { return };
        // A peer that has not been heard for long gets keep-alives only; the link's state stays.
        if !is_heard {
            return;
        }
        if self.blocked && !self.flush(now, to) {
            return;
        }
        for _ in 0..FRAMES {
            self.fill_endpoint(now);
            let Some(demand) = self.due(now) else { break };
            if !self.make_room(now, to) || !self.append_frame(now) {
                break;
            }
            self.train = self.train.map(|left| left.saturating_sub(1));
            if demand == Demand::Filler {
                self.pacer.on_filler(now);
                self.traffic.fillers_sent.increment();
            }
        }
        // The last one may have made room, of which nobody else would tell.
        self.fill_endpoint(now);
    }

    /// What the endpoint may say now, if anything.
    fn due(&self, now: Instant) -> Option<Demand> {
        let demand = self.endpoint.demand(now);
        let allowed = match demand {
            Demand::Nothing => false,
            Demand::Filler => self.pacer.allows_filler(now),
            Demand::Fresh => true,
        };
        let bursts = self.train.is_some_and(|left| left > 0) && demand == Demand::Fresh;
        (allowed && (bursts || self.pacer.is_free(now))).then_some(demand)
    }

    /// Whether the batch takes another datagram, after it was sent if it was full.
    fn make_room(&mut self, now: Instant, to: Path) -> bool {
        while !self.batch.has_room(self.frame_limit + OVERHEAD, self.carrier.batch_limit()) {
            if !self.send_batch(now, to) {
                return false;
            }
        }
        true
    }

    /// Appends one frame, sealed, to the batch; false if there is none.
    fn append_frame(&mut self, now: Instant) -> bool {
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
        self.survey.reports.on_traffic();
        self.batch.finish_datagram(start, info.marks);
        true
    }

    /// Sends all that the batch holds; false if the socket is full and the rest must wait.
    fn flush(&mut self, now: Instant, to: Path) -> bool {
        while !self.batch.is_empty() {
            if !self.send_batch(now, to) {
                return false;
            }
        }
        true
    }

    /// Sends what goes in one call; false if the socket is full and it must wait.
    fn send_batch(&mut self, now: Instant, to: Path) -> bool {
        let (bytes, segment) = self.batch.contents();
        let (marks, count) = (self.batch.marks(), self.batch.len());
        // It was cut when the path carried more.
        let is_long = count == 1 && segment > self.frame_limit + OVERHEAD;
        let sent = if is_long {
            self.carrier.send_long(to, marks, bytes)
        } else {
            self.carrier.send(to, marks, bytes, segment)
        };
        self.after_send(now, sent, count, segment);
        if !self.blocked {
            self.traffic.datagrams_fragmented.add(is_long.into());
            self.batch.on_sent();
        }
        !self.blocked
    }

    fn after_send(&mut self, now: Instant, sent: Sent, datagrams: usize, len: usize) {
        self.blocked = matches!(sent, Sent::Full | Sent::Busy);
        self.retry_at = (sent == Sent::Busy).then(|| now + BUSY_PAUSE);
        match sent {
            Sent::Refused => self.traffic.datagrams_refused.add(datagrams as u64),
            Sent::TooLong => {
                self.traffic.datagrams_refused.add(datagrams as u64);
                self.on_too_long(now, len);
            }
            Sent::Yes | Sent::Full | Sent::Busy => {}
        }
    }

    /// The device does not take datagrams of `len` bytes: shorter ones may pass.
    fn on_too_long(&mut self, now: Instant, len: usize) {
        if let Some(mtu) = &mut self.survey.mtu {
            mtu.on_too_long(now, len + self.header_len);
        }
    }

    /// Bytes of the line that a datagram of `len` bytes occupies.
    fn on_line(&self, len: usize) -> usize {
        self.config.link.overhead.on_line(len + self.header_len)
    }

    fn count_sent(&mut self, datagrams: u64, len: usize) {
        self.survey.reports.on_sent(datagrams, len as u64);
        self.traffic.datagrams_sent.add(datagrams);
        self.traffic.bytes_sent.add((len + self.header_len) as u64);
    }
}
