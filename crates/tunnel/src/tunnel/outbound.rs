//! From the LAN to the carrier: what leaves next.

use base::{Duration, Instant};
use link::{Demand, Endpoint, FrameInfo, LineId, Marks};

use super::Tunnel;
use crate::batch::Rooms;
use crate::control::Kind;
use crate::path::{CarrierId, Carriers, Path};
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

/// What was chosen to leave next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chosen {
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
    /// the next call. A batch is made in one of the `rooms`, unless it has begun before. Nothing leaves over carriers that are `full`.
    pub(crate) fn decide(
        &mut self,
        now: Instant,
        (limit, more): (usize, bool),
        full: Carriers,
        rooms: &mut Rooms,
    ) -> bool {
        if self.is_at_rest(now) {
            let control = self.control_line(now);
            let chosen = control.map(|line| (Chosen::Control, line));
            self.chosen = chosen.unwrap_or((Chosen::Nothing, LineId::FIRST));
            return control.is_some();
        }
        self.follow_path(now);
        self.chosen = (Chosen::Nothing, LineId::FIRST);
        for id in self.lines.ids() {
            let via = self.session.path_over(id).map(|path| path.via);
            // Others have filled it.
            self.lines[id].is_blocked |= via.is_some_and(|via| full.contains(via));
            if self.lines[id].is_blocked {
                continue;
            }
            self.lines[id].batch.borrow(rooms);
            self.chosen = self.choose(now, id, limit, more);
            self.lines[id].batch.give_back(rooms);
            if self.chosen.0 != Chosen::Nothing {
                return true;
            }
        }
        self.rest(now);
        false
    }

    /// The line of a datagram that is no frame, if one is to leave.
    fn control_line(&mut self, now: Instant) -> Option<LineId> {
        if self.control.is_none() {
            self.take_control(now);
        }
        self.control.as_ref().map(|((_, line), _)| *line)
    }

    /// Whether the session has something to say, which leaves at its next turn.
    pub(crate) fn has_control(&self) -> bool {
        self.session.has_datagrams()
    }

    /// What was decided to leave.
    pub(crate) fn chosen(&self) -> Option<Transmit<'_>> {
        let (chosen, line) = self.chosen;
        match chosen {
            Chosen::Nothing => None,
            Chosen::Control => self.control.as_ref().map(|((to, _), datagram)| Transmit {
                to: *to,
                marks: Marks::default(),
                bytes: datagram,
                segment: datagram.len(),
            }),
            Chosen::Batch => {
                let to = self.session.path_over(line)?;
                let batch = &self.lines[line].batch;
                let (bytes, segment) = batch.contents();
                Some(Transmit { to, marks: batch.marks(), bytes, segment })
            }
        }
    }

    /// What became of the datagrams that were chosen last. Their room is the next batch's.
    pub(crate) fn on_sent(&mut self, now: Instant, sent: Sent, rooms: &mut Rooms) {
        let chosen = core::mem::replace(&mut self.chosen.0, Chosen::Nothing);
        let line = &mut self.lines[self.chosen.1];
        let (count, len) = match chosen {
            Chosen::Nothing => return,
            // What session and survey say is said again in time.
            Chosen::Control => (1, self.control.take().map_or(0, |(_, datagram)| datagram.len())),
            Chosen::Batch => (line.batch.len() as u64, line.batch.contents().1),
        };
        match sent {
            Sent::Yes => {}
            Sent::Full | Sent::Busy => line.is_blocked |= chosen == Chosen::Batch,
            Sent::Refused => self.traffic.datagrams_refused.add(count),
            Sent::TooLong => {
                self.traffic.datagrams_refused.add(count);
                // Shorter ones may pass.
                let header_len = line.way.carrier.header_len;
                if let Some(mtu) = &mut line.survey.mtu {
                    mtu.on_too_long(now, len + header_len);
                }
            }
        }
        if chosen == Chosen::Batch && !line.is_blocked {
            line.batch.on_sent();
            line.batch.give_back(rooms);
        }
    }

    /// Whether a carrier's buffer was full.
    #[must_use]
    pub(crate) fn is_blocked(&self) -> bool {
        self.lines.all().any(|(_, line)| line.is_blocked)
    }

    /// The carrier whose buffer was full when datagrams were to leave last, if it was.
    pub(crate) fn blocked_by(&self) -> Option<CarrierId> {
        let line = self.chosen.1;
        let path = self.session.path_over(line).filter(|_| self.lines[line].is_blocked);
        path.map(|path| path.via)
    }

    /// Carriers take more again.
    pub(crate) fn on_writable(&mut self) {
        self.stir();
        self.lines.all_mut().for_each(|(_, line)| line.is_blocked = false);
    }

    fn choose(&mut self, now: Instant, id: LineId, limit: usize, more: bool) -> (Chosen, LineId) {
        loop {
            self.queue_controls(now, id);
            if let Some(line) = self.control_line(now) {
                return (Chosen::Control, line);
            }
            if !self.may_use(id) {
                return (Chosen::Nothing, id);
            }
            if self.begin_burst(now, id) || self.pad(now, id) {
                continue;
            }
            let is_full = self.append_frames(now, id, limit);
            if !self.lines[id].batch.is_empty() {
                let may_leave = self.session.is_heard(now) && (is_full || !more);
                return (if may_leave { Chosen::Batch } else { Chosen::Nothing }, id);
            }
            if !self.end_burst(now, id) {
                return (Chosen::Nothing, id);
            }
        }
    }

    /// Hands the session what survey and proxy have to say to the other end.
    fn queue_controls(&mut self, now: Instant, id: LineId) {
        if !self.session.is_heard(now) || !self.may_use(id) {
            return;
        }
        let line = &mut self.lines[id];
        while let Some((kind, body)) = line.survey.poll_control(now) {
            self.session.send_control(now, id, kind, &body);
        }
        if !self.lines.is_single()
            && let Some(body) = self.lines[id].line_use.poll(now)
        {
            self.session.send_control(now, id, Kind::Terms, &body);
        }
        let proxy = self.ingress.proxy.as_deref_mut();
        // Without a proxy there is nothing to announce.
        if let Some(proxy) = proxy
            && let Some(body) = self.proxy_side.poll_pairing(now, Some(proxy))
        {
            self.session.send_control(now, id, Kind::Pairing, &body);
        }
    }

    /// Takes the session's next datagram, if there is one.
    fn take_control(&mut self, now: Instant) {
        let Some(line) = self.session.transmits_over() else { return };
        self.control = self.session.poll_transmit().map(|(to, datagram)| ((to, line), datagram));
        let len = self.control.as_ref().map_or(0, |(_, datagram)| datagram.len());
        self.count_sent(now, line, len);
    }

    /// Begins a train if one is due: with its mark, behind which padding or frames follow in a burst.
    fn begin_burst(&mut self, now: Instant, id: LineId) -> bool {
        let line = &mut self.lines[id];
        if !line.batch.is_empty() || line.burst.is_some() || !self.session.is_heard(now) {
            return false;
        }
        // Trains that are lost again and again, on a line that is slower than was thought, would hold everything else up.
        if line.pacer.free_at() > now.saturating_add(MOST_AHEAD) {
            line.survey.postpone_train(line.pacer.free_at());
            return false;
        }
        let waiting = self.ingress.waiting();
        let len = line.datagram_limit() + line.way.carrier.header_len;
        let Some((train, (kind, mark))) = line.survey.poll_train(now, len, waiting) else { return false };
        self.session.send_control(now, id, kind, &mark);
        line.burst = Some(if train.padded {
            // Nothing is known of the channel yet: the mark goes twice.
            self.session.send_control(now, id, kind, &mark);
            Burst::Padding(train.datagrams)
        } else {
            Burst::Frames(train.datagrams)
        });
        true
    }

    /// The next datagram of a train of padding, or the mark behind it.
    fn pad(&mut self, now: Instant, id: LineId) -> bool {
        let line = &mut self.lines[id];
        let Some(Burst::Padding(left)) = line.burst else { return false };
        if left == 0 {
            return self.end_burst(now, id);
        }
        let (kind, padding) = line.survey.padding();
        self.session.send_control(now, id, kind, &padding);
        line.burst = Some(Burst::Padding(left - 1));
        true
    }

    /// The mark behind a train that has left.
    fn end_burst(&mut self, now: Instant, id: LineId) -> bool {
        let line = &mut self.lines[id];
        if line.burst.take().is_none() {
            return false;
        }
        let (kind, mark) = line.survey.end_train(now);
        self.session.send_control(now, id, kind, &mark)
    }

    /// Fills the batch with what may leave now; whether nothing more fits.
    fn append_frames(&mut self, now: Instant, id: LineId, limit: usize) -> bool {
        let is_heard = self.session.is_heard(now);
        self.ingress.queues.set_silent(now, !is_heard);
        // A peer that has not been heard for long gets keep-alives only; the link's state stays.
        if !is_heard || self.session.path_over(id).is_none() {
            return false;
        }
        loop {
            self.ingress.feed(now, &mut *self.endpoint, &mut ());
            let Some(demand) = self.due(now, id) else { return false };
            let line = &mut self.lines[id];
            if !line.batch.has_room(line.datagram_limit(), limit) {
                return true;
            }
            if !self.append_frame(now, id) {
                return false;
            }
            let line = &mut self.lines[id];
            if let Some(Burst::Frames(left)) = &mut line.burst {
                *left = left.saturating_sub(1);
            }
            if demand == Demand::Filler {
                line.pacer.on_filler(now);
                self.traffic.fillers_sent.increment();
            }
        }
    }

    /// What there is to send over a line: a frame of which parts have left is finished first.
    pub(super) fn demand(&self, now: Instant, id: LineId) -> Demand {
        match self.lines[id].parts.is_leaving() {
            true => Demand::Fresh,
            false if self.lines.is_single() => self.endpoint.demand(now),
            false => self.endpoint.demand_over(now, id),
        }
    }

    /// What the endpoint may say now over a line, if anything.
    fn due(&self, now: Instant, id: LineId) -> Option<Demand> {
        let (line, demand) = (&self.lines[id], self.demand(now, id));
        let allowed = match demand {
            Demand::Nothing => false,
            Demand::Filler => line.pacer.allows_filler(now),
            Demand::Fresh => true,
        };
        let bursts = matches!(line.burst, Some(Burst::Frames(1..))) && demand == Demand::Fresh;
        (allowed && (bursts || line.pacer.is_free(now))).then_some(demand)
    }

    /// Appends one frame, or a part of one that is longer than the path carries, to the batch, sealed; false if there is none.
    fn append_frame(&mut self, now: Instant, id: LineId) -> bool {
        let is_single = self.lines.is_single();
        let line = &mut self.lines[id];
        let (buffer, limit) = (line.batch.buffer(), line.frame_limit);
        let start = buffer.len();
        buffer.extend_from_slice(&[0; HEADER_LEN]);
        if let Some((body, marks)) = line.parts.pop() {
            buffer.extend_from_slice(&body);
            self.finish(now, id, if is_single { Kind::Part } else { Kind::PartOver }, start, marks);
            return true;
        }
        let info = match self.endpoint.lines().filter(|_| !is_single) {
            None => poll_frame(now, &mut *self.endpoint, buffer),
            Some(lines) => lines.poll_frame_over(now, id, buffer),
        };
        let Some(FrameInfo { marks, .. }) = info else {
            buffer.truncate(start);
            return false;
        };
        let frame = start + HEADER_LEN;
        if buffer.len() - frame > limit {
            line.parts.cut(&buffer[frame..], limit, marks);
            buffer.truncate(start);
            return self.append_frame(now, id);
        }
        self.finish(now, id, if is_single { Kind::Frame } else { Kind::FrameOver }, start, marks);
        true
    }

    /// Seals what was appended to the batch from `start` on.
    fn finish(&mut self, now: Instant, id: LineId, kind: Kind, start: usize, marks: Marks) {
        let line = &mut self.lines[id];
        let buffer = line.batch.buffer();
        self.session.seal(now, id, kind, buffer, start);
        let len = buffer.len() - start;
        line.batch.finish_datagram(start, marks);
        self.count_sent(now, id, len);
        self.lines[id].survey.reports.on_traffic(now);
    }

    /// A datagram is about to leave, which takes the line's time.
    fn count_sent(&mut self, now: Instant, id: LineId, len: usize) {
        let on_line = self.on_line(id, len);
        let line = &mut self.lines[id];
        let bytes = (len + line.way.carrier.header_len) as u64;
        line.pacer.on_sent(now, on_line);
        line.survey.reports.on_sent(1, len as u64);
        line.datagrams.increment();
        line.bytes.add(bytes);
        self.traffic.datagrams_sent.increment();
        self.traffic.bytes_sent.add(bytes);
    }
}

/// Starts a frame, and completes it.
fn poll_frame(now: Instant, endpoint: &mut dyn Endpoint, out: &mut Vec<u8>) -> Option<FrameInfo> {
    let start = out.len();
    let info = endpoint.poll_frame(now, out)?;
    if info.late_len > 0 {
        endpoint.seal_frame(now, &mut out[start..]);
    }
    Some(info)
}

/// Of the line's time, what trains have taken ahead when one more may leave, at most. Ours.
const MOST_AHEAD: Duration = Duration::from_secs(1);
