//! From the LAN to the carrier: what leaves next.

use base::{Duration, Instant};
use link::{Demand, Marks};

use super::Tunnel;
use crate::batch::Rooms;
use crate::control::Kind;
use crate::path::Path;
use crate::session::HEADER_LEN;

/// Datagrams that leave now, in one call if the carrier can.
#[derive(Clone, Copy, Debug)]
pub struct Transmit<'a> {
    /// Where they go.
    pub to: Path,
    /// What their headers say to routers.
    pub marks: Marks,
    /// The datagrams, back to back.
    pub bytes: &'a [u8],
    /// Bytes of each but the last, which may be shorter.
    pub segment: usize,
}

impl Transmit<'_> {
    /// How many they are.
    #[must_use]
    pub const fn datagrams(&self) -> usize {
        self.bytes.len().div_ceil(self.segment)
    }
}

/// What happened to datagrams that were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// They are on their way.
    Yes,
    /// The carrier's buffer is full; [`Hub::on_writable`](crate::Hub::on_writable) says when it has room.
    Full,
    /// The device's queue is full, of which the kernel does not say when it has room.
    Busy,
    /// Longer than the device carries.
    TooLong,
    /// Refused: no route, nobody there.
    Refused,
}

/// What the caller holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offered {
    Nothing,
    Control,
    Batch,
}

/// Datagrams that leave faster than the pacer would have it: a train between two marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Burst {
    /// Datagrams of padding that are still to leave.
    Padding(u64),
    /// Frames that are.
    Frames(u64),
}

impl Tunnel {
    /// Decides what is to leave now: a datagram, or a batch of up to `limit` of equal marks for one place; whether there is anything. While
    /// `more` packets are about to come, a batch that is not full may wait for them. Say with [`Tunnel::on_sent`] what became of it before
    /// the next call. A batch is made in one of the `rooms`, unless it has begun before.
    pub(crate) fn offer(&mut self, now: Instant, limit: usize, more: bool, rooms: &mut Rooms) -> bool {
        if self.is_at_rest(now) {
            let has_control = self.control.is_some() || self.take_control(now);
            self.offered = if has_control { Offered::Control } else { Offered::Nothing };
            return has_control;
        }
        self.follow_path(now);
        self.batch.borrow(rooms);
        self.offered = if self.is_blocked { Offered::Nothing } else { self.choose(now, limit, more) };
        if self.offered == Offered::Nothing {
            self.rest(now);
        }
        self.batch.give_back(rooms);
        self.offered != Offered::Nothing
    }

    /// Whether the session has something to say, which leaves at its next turn.
    pub(crate) fn has_control(&self) -> bool {
        self.session.has_datagrams()
    }

    /// What was decided to leave.
    pub(crate) fn offered(&self) -> Option<Transmit<'_>> {
        match self.offered {
            Offered::Nothing => None,
            Offered::Control => self.control.as_ref().map(|(to, datagram)| Transmit {
                to: *to,
                marks: Marks::default(),
                bytes: datagram,
                segment: datagram.len(),
            }),
            Offered::Batch => {
                let to = self.session.path()?;
                let (bytes, segment) = self.batch.contents();
                Some(Transmit { to, marks: self.batch.marks(), bytes, segment })
            }
        }
    }

    /// What became of the datagrams that were offered last. Their room is the next batch's.
    pub(crate) fn on_sent(&mut self, now: Instant, sent: Sent, rooms: &mut Rooms) {
        let offered = core::mem::replace(&mut self.offered, Offered::Nothing);
        let (count, len) = match offered {
            Offered::Nothing => return,
            // What session and survey say is said again in time.
            Offered::Control => (1, self.control.take().map_or(0, |(_, datagram)| datagram.len())),
            Offered::Batch => (self.batch.len() as u64, self.batch.contents().1),
        };
        match sent {
            Sent::Yes => {}
            Sent::Full | Sent::Busy => self.is_blocked = offered == Offered::Batch,
            Sent::Refused => self.traffic.datagrams_refused.add(count),
            Sent::TooLong => {
                self.traffic.datagrams_refused.add(count);
                // Shorter ones may pass.
                if let Some(mtu) = &mut self.survey.mtu {
                    mtu.on_too_long(now, len + self.config.carrier.header_len);
                }
            }
        }
        if offered == Offered::Batch && !self.is_blocked {
            self.batch.on_sent();
            self.batch.give_back(rooms);
        }
    }

    /// Whether the carrier's buffer was full.
    #[must_use]
    pub(crate) const fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    /// The carrier takes more again.
    pub(crate) const fn on_writable(&mut self) {
        self.stir();
        self.is_blocked = false;
    }

    fn choose(&mut self, now: Instant, limit: usize, more: bool) -> Offered {
        loop {
            self.queue_controls(now);
            if self.control.is_some() || self.take_control(now) {
                return Offered::Control;
            }
            if self.begin_burst(now) || self.pad(now) {
                continue;
            }
            let is_full = self.append_frames(now, limit);
            if !self.batch.is_empty() {
                let may_leave = self.session.is_heard(now) && (is_full || !more);
                return if may_leave { Offered::Batch } else { Offered::Nothing };
            }
            if !self.end_burst(now) {
                return Offered::Nothing;
            }
        }
    }

    /// Hands the session what survey and proxy have to say to the other end.
    fn queue_controls(&mut self, now: Instant) {
        if !self.session.is_heard(now) {
            return;
        }
        while let Some((kind, body)) = self.survey.poll_control(now) {
            self.session.send_control(now, kind, &body);
        }
        let proxy = self.ingress.proxy.as_deref_mut();
        // Without a proxy there is nothing to announce.
        if let Some(proxy) = proxy
            && let Some(body) = self.proxy_side.poll_pairing(now, Some(proxy))
        {
            self.session.send_control(now, Kind::Pairing, &body);
        }
    }

    /// Takes the session's next datagram, if there is one.
    fn take_control(&mut self, now: Instant) -> bool {
        self.control = self.session.poll_transmit();
        let Some(len) = self.control.as_ref().map(|(_, datagram)| datagram.len()) else { return false };
        self.count_sent(len);
        self.pacer.on_sent(now, self.on_line(len));
        true
    }

    /// Begins a train if one is due: with its mark, behind which padding or frames follow in a burst.
    fn begin_burst(&mut self, now: Instant) -> bool {
        if !self.batch.is_empty() || self.burst.is_some() || !self.session.is_heard(now) {
            return false;
        }
        // Trains that are lost again and again, on a line that is slower than was thought, would hold everything else up.
        if self.pacer.free_at() > now.saturating_add(MOST_AHEAD) {
            self.survey.postpone_train(self.pacer.free_at());
            return false;
        }
        let waiting = self.ingress.waiting();
        let len = self.datagram_limit() + self.config.carrier.header_len;
        let Some((train, (kind, mark))) = self.survey.poll_train(now, len, waiting) else { return false };
        self.session.send_control(now, kind, &mark);
        self.burst = Some(if train.padded {
            // Nothing is known of the channel yet: the mark goes twice.
            self.session.send_control(now, kind, &mark);
            Burst::Padding(train.datagrams)
        } else {
            Burst::Frames(train.datagrams)
        });
        true
    }

    /// The next datagram of a train of padding, or the mark behind it.
    fn pad(&mut self, now: Instant) -> bool {
        let Some(Burst::Padding(left)) = self.burst else { return false };
        if left == 0 {
            return self.end_burst(now);
        }
        let (kind, padding) = self.survey.padding();
        self.session.send_control(now, kind, &padding);
        self.burst = Some(Burst::Padding(left - 1));
        true
    }

    /// The mark behind a train that has left.
    fn end_burst(&mut self, now: Instant) -> bool {
        if self.burst.take().is_none() {
            return false;
        }
        let (kind, mark) = self.survey.end_train(now);
        self.session.send_control(now, kind, &mark)
    }

    /// Fills the batch with what may leave now; whether nothing more fits.
    fn append_frames(&mut self, now: Instant, limit: usize) -> bool {
        let is_heard = self.session.is_heard(now);
        self.ingress.queues.set_silent(now, !is_heard);
        // A peer that has not been heard for long gets keep-alives only; the link's state stays.
        if !is_heard || self.session.path().is_none() {
            return false;
        }
        loop {
            self.ingress.feed(now, &mut *self.endpoint, &mut ());
            let Some(demand) = self.due(now) else { return false };
            if !self.batch.has_room(self.datagram_limit(), limit) {
                return true;
            }
            if !self.append_frame(now) {
                return false;
            }
            if let Some(Burst::Frames(left)) = &mut self.burst {
                *left = left.saturating_sub(1);
            }
            if demand == Demand::Filler {
                self.pacer.on_filler(now);
                self.traffic.fillers_sent.increment();
            }
        }
    }

    /// What there is to send: a frame of which parts have left is finished first.
    pub(super) fn demand(&self, now: Instant) -> Demand {
        if self.parts.is_leaving() { Demand::Fresh } else { self.endpoint.demand(now) }
    }

    /// What the endpoint may say now, if anything.
    fn due(&self, now: Instant) -> Option<Demand> {
        let demand = self.demand(now);
        let allowed = match demand {
            Demand::Nothing => false,
            Demand::Filler => self.pacer.allows_filler(now),
            Demand::Fresh => true,
        };
        let bursts = matches!(self.burst, Some(Burst::Frames(1..))) && demand == Demand::Fresh;
        (allowed && (bursts || self.pacer.is_free(now))).then_some(demand)
    }

    /// Appends one frame, or a part of one that is longer than the path carries, to the batch, sealed; false if there is none.
    fn append_frame(&mut self, now: Instant) -> bool {
        if let Some((body, marks)) = self.parts.pop() {
            let start = self.batch.buffer().len();
            self.batch.buffer().extend_from_slice(&[0; HEADER_LEN]);
            self.batch.buffer().extend_from_slice(&body);
            self.finish(now, Kind::Part, start, marks);
            return true;
        }
        let buffer = self.batch.buffer();
        let start = buffer.len();
        buffer.extend_from_slice(&[0; HEADER_LEN]);
        let Some(info) = self.endpoint.poll_frame(now, buffer) else {
            buffer.truncate(start);
            return false;
        };
        if info.late_len > 0 {
            self.endpoint.seal_frame(now, &mut buffer[start + HEADER_LEN..]);
        }
        let frame = start + HEADER_LEN;
        if buffer.len() - frame > self.frame_limit {
            self.parts.cut(&buffer[frame..], self.frame_limit, info.marks);
            buffer.truncate(start);
            return self.append_frame(now);
        }
        self.finish(now, Kind::Frame, start, info.marks);
        true
    }

    /// Seals what was appended to the batch from `start` on.
    fn finish(&mut self, now: Instant, kind: Kind, start: usize, marks: Marks) {
        let buffer = self.batch.buffer();
        self.session.seal(now, kind, buffer, start);
        let len = buffer.len() - start;
        self.batch.finish_datagram(start, marks);
        self.pacer.on_sent(now, self.on_line(len));
        self.count_sent(len);
        self.survey.reports.on_traffic(now);
    }

    fn count_sent(&mut self, len: usize) {
        self.survey.reports.on_sent(1, len as u64);
        self.traffic.datagrams_sent.increment();
        self.traffic.bytes_sent.add((len + self.config.carrier.header_len) as u64);
    }
}

/// Of the line's time, what trains have taken ahead when one more may leave, at most. Ours.
const MOST_AHEAD: Duration = Duration::from_secs(1);
