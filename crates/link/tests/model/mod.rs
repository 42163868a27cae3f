//! COTMLL as plainly as it can be written: every frame ever sent in a list, every rule a search through it.
//!
//! Written from the thesis (Faulkner 2004, 2.3) and the decisions listed in `link::cotmll`, not from the code.

use std::collections::{BTreeMap, VecDeque};

use longhaul_link::FrameKind;
use longhaul_link::cotmll::{
    Ack, Acknowledge, Config, FlagAgainst, GapOpensWith, Skip, SubProtocol, TRAILER_LEN, ToldBlock, Trailer,
};

pub(crate) mod pair;

/// A piece of a packet: first, last, bytes.
pub(crate) type Piece = (bool, bool, Vec<u8>);

struct Outgoing {
    piece: Piece,
    packet: usize,
    /// Numbers of its first and its latest transmission, and how many there were.
    first_stamp: u64,
    stamp: u64,
    transmissions: u32,
    acknowledged: bool,
    flagged: bool,
    given_up: bool,
}

impl Outgoing {
    const fn is_outstanding(&self) -> bool {
        !self.acknowledged && !self.given_up
    }
}

struct Incoming {
    /// `None` if it was skipped.
    piece: Option<Piece>,
    delivered: bool,
}

/// One end of a link.
pub(crate) struct Model {
    config: Config,
    transmissions: u64,
    base: usize,
    sent: Vec<Outgoing>,
    packets: usize,
    /// When each packet that was begun was.
    begun: BTreeMap<usize, u64>,
    pending: VecDeque<(usize, Piece)>,
    pending_once: VecDeque<Piece>,
    once_sent: usize,
    once_run: usize,
    just_skipped: bool,
    skipped_to: usize,
    received: BTreeMap<usize, Incoming>,
    next: usize,
    /// What came last beyond a gap.
    latest: usize,
    block_was_last: bool,
    pub(crate) delivered: VecDeque<Vec<u8>>,
}

impl Model {
    pub(crate) fn new(config: Config) -> Self {
        Self {
            config,
            transmissions: 0,
            base: 0,
            sent: Vec::new(),
            packets: 0,
            begun: BTreeMap::new(),
            pending: VecDeque::new(),
            pending_once: VecDeque::new(),
            once_sent: 0,
            once_run: 0,
            just_skipped: false,
            skipped_to: 0,
            received: BTreeMap::new(),
            next: 0,
            latest: 0,
            block_was_last: false,
            delivered: VecDeque::new(),
        }
    }

    /// The first frame that is not acknowledged, and the first that was not received, counted from the start.
    pub(crate) const fn progress(&self) -> (usize, usize) {
        (self.base, self.next)
    }

    pub(crate) fn offer(&mut self, packet: &[u8], once: bool) {
        let chunks: Vec<&[u8]> = packet.chunks(self.config.frame_payload.get() as usize).collect();
        let pieces = chunks.iter().enumerate().map(|(n, c)| (n == 0, n + 1 == chunks.len(), c.to_vec()));
        if once {
            self.pending_once.extend(pieces);
        } else {
            self.pending.extend(pieces.map(|piece| (self.packets, piece)));
            self.packets += 1;
        }
    }

    /// Whether the peer is known to have, or to have skipped, all that was sent.
    pub(crate) fn is_settled(&self) -> bool {
        self.base == self.sent.len() && self.pending.is_empty()
    }

    /// Frames that wait to be sent for the first time.
    pub(crate) fn unsent(&self) -> usize {
        self.pending.len()
    }

    /// What leaves next, complete but for what [`Model::seal`] fills in.
    pub(crate) fn poll(&mut self, now: u64) -> (FrameKind, Vec<u8>) {
        self.give_up_overdue(now);
        let (kind, protocol, tx, piece) = match self.skip() {
            Some(skip) => (FrameKind::Control, SubProtocol::Control, 0, (false, false, skip.emit().to_vec())),
            None => self.choose(now),
        };
        (kind, self.frame(protocol, tx, piece))
    }

    fn frame(&mut self, protocol: SubProtocol, tx: usize, piece: Piece) -> Vec<u8> {
        let (first, last, mut frame) = piece;
        let ack = if self.config.acknowledge == Acknowledge::Start { self.ack() } else { Ack::Cumulative(0) };
        frame.extend(Trailer { protocol, first, last, tx: (tx % 1024) as u16, ack }.emit());
        frame
    }

    /// The acknowledgement, when the trailer of a frame leaves.
    pub(crate) fn seal(&mut self, frame: &mut [u8]) {
        if self.config.acknowledge == Acknowledge::Trailer {
            let (trailer, payload) = Trailer::parse(frame).unwrap();
            let start = payload.len();
            let trailer = Trailer { ack: self.ack(), ..trailer };
            frame[start..start + TRAILER_LEN].copy_from_slice(&trailer.emit());
        }
    }

    fn flagged(&self) -> Option<usize> {
        (self.base..self.sent.len()).find(|&n| self.sent[n].flagged)
    }

    fn oldest(&self) -> Option<usize> {
        let outstanding = (self.base..self.sent.len()).filter(|&n| self.sent[n].is_outstanding());
        outstanding.min_by_key(|&n| self.sent[n].stamp)
    }

    fn may_send(&self) -> bool {
        !self.pending.is_empty() && self.sent.len() - self.base < self.config.window.get() as usize
    }

    fn give_up_overdue(&mut self, now: u64) {
        if let Some(limit) = self.config.persistence {
            let limit = limit.get().as_nanos();
            let overdue = self.begun.iter().filter(|(_, begun)| *begun + limit <= now);
            for packet in overdue.map(|(packet, _)| *packet).collect::<Vec<_>>() {
                self.give_up(packet);
            }
        }
        let Some(limit) = self.config.attempts else { return };
        loop {
            let again = self.flagged().or_else(|| if self.may_send() { None } else { self.oldest() });
            match again {
                Some(n) if self.sent[n].transmissions >= limit.get() => self.give_up(self.sent[n].packet),
                _ => return,
            }
        }
    }

    fn give_up(&mut self, packet: usize) {
        self.begun.remove(&packet);
        for frame in self.sent.iter_mut().filter(|frame| frame.packet == packet && !frame.acknowledged) {
            frame.given_up = true;
            frame.flagged = false;
            self.skipped_to = self.base;
        }
        let before = self.pending.len();
        self.pending.retain(|(of, _)| *of != packet);
        if self.pending.len() < before {
            self.skipped_to = self.base;
        }
    }

    fn skip(&mut self) -> Option<Skip> {
        if core::mem::take(&mut self.just_skipped) {
            return None;
        }
        let to_tell = |n: &usize| self.sent[*n].given_up && !self.sent[*n].acknowledged;
        let all = self.sent.len();
        let next = (self.skipped_to.max(self.base)..all).find(to_tell);
        let start = next.or_else(|| (self.base..all).find(to_tell))?;
        let end = (start..all).find(|&n| self.sent[n].is_outstanding()).unwrap_or(all);
        self.skipped_to = end;
        self.just_skipped = true;
        Some(Skip { start: (start % 1024) as u16, count: (end - start) as u16 })
    }

    fn choose(&mut self, now: u64) -> (FrameKind, SubProtocol, usize, Piece) {
        let (flagged, may_send, oldest) = (self.flagged(), self.may_send(), self.oldest());
        let urgent = flagged.is_some() || may_send;
        let must_wait = (urgent && self.once_run >= 1) || (oldest.is_some() && self.once_run >= 8);
        if !self.pending_once.is_empty() && !must_wait {
            self.once_run += 1;
            self.once_sent += 1;
            let piece = self.pending_once.pop_front().unwrap();
            return (FrameKind::New, SubProtocol::Unreliable, self.once_sent - 1, piece);
        }
        self.once_run = 0;
        let (kind, n) = match (flagged, may_send, oldest) {
            (Some(n), ..) => (FrameKind::Retransmission, n),
            (None, true, _) => {
                let (packet, piece) = self.pending.pop_front().unwrap();
                self.begun.entry(packet).or_insert(now);
                let (acknowledged, flagged, given_up) = (false, false, false);
                self.sent.push(Outgoing {
                    piece,
                    packet,
                    first_stamp: self.transmissions + 1,
                    stamp: 0,
                    transmissions: 0,
                    acknowledged,
                    flagged,
                    given_up,
                });
                (FrameKind::New, self.sent.len() - 1)
            }
            (None, false, Some(n)) => (FrameKind::Filler, n),
            (None, false, None) => {
                return (FrameKind::Control, SubProtocol::Control, 0, (false, false, Vec::new()));
            }
        };
        self.transmissions += 1;
        self.sent[n].stamp = self.transmissions;
        self.sent[n].transmissions += 1;
        self.sent[n].flagged = false;
        (kind, SubProtocol::Reliable, n, self.sent[n].piece.clone())
    }

    fn ack(&mut self) -> Ack {
        let mut first = self.received.range(self.next..).next().map(|(&n, _)| n);
        if self.config.block == ToldBlock::Latest && first.is_some() && self.latest > self.next {
            let earliest = self.latest.saturating_sub(126).max(self.next);
            first = (earliest..=self.latest).rev().take_while(|n| self.received.contains_key(n)).last();
        }
        self.block_was_last = first.is_some() && !self.block_was_last;
        match first {
            Some(start) if self.block_was_last => {
                let count = (start..).take_while(|n| self.received.contains_key(n)).take(127).count();
                Ack::Block { start: (start % 1024) as u16, count: count as u8 }
            }
            _ => Ack::Cumulative((self.next % 1024) as u16),
        }
    }

    /// Only frames of class 001 and 000.
    pub(crate) fn handle(&mut self, frame: &[u8]) {
        let (trailer, payload) = Trailer::parse(frame).unwrap();
        self.handle_ack(trailer.ack);
        if trailer.protocol == SubProtocol::Reliable {
            let offset = (usize::from(trailer.tx) + 1024 - self.next % 1024) % 1024;
            if offset < 512 {
                let piece = (trailer.first, trailer.last, payload.to_vec());
                if offset > 0 && !self.received.contains_key(&(self.next + offset)) {
                    self.latest = self.next + offset;
                }
                self.accept(self.next + offset, Some(piece));
                self.deliver();
            }
        } else if let Ok(skip) = Skip::parse(payload) {
            let offset = (usize::from(skip.start) + 1024 - self.next % 1024) % 1024;
            let start =
                self.next as isize + if offset < 512 { offset as isize } else { offset as isize - 1024 };
            let end = start + isize::try_from(skip.count).unwrap();
            for n in (self.next as isize).max(start)..end {
                self.accept(n as usize, None);
            }
            self.deliver();
        }
    }

    fn handle_ack(&mut self, ack: Ack) {
        let (number, count) = match ack {
            Ack::Cumulative(number) => (number, 0),
            Ack::Block { start, count } => (start, usize::from(count)),
        };
        let offset = (usize::from(number) + 1024 - self.base % 1024) % 1024;
        if self.base + offset + count > self.sent.len() || (count > 0 && offset == 0) {
            return;
        }
        let start = self.base + offset;
        if count == 0 {
            self.sent[self.base..start].iter_mut().for_each(|frame| {
                frame.acknowledged = true;
                frame.flagged = false;
            });
            self.base = start;
            return;
        }
        let block = &mut self.sent[start..start + count];
        let stamp = |frame: &Outgoing| match self.config.flag_against {
            FlagAgainst::Latest => frame.stamp,
            FlagAgainst::First => frame.first_stamp,
        };
        let latest = block.iter().filter(|frame| frame.is_outstanding()).map(stamp).max();
        block.iter_mut().for_each(|frame| {
            frame.acknowledged = true;
            frame.flagged = false;
        });
        if let Some(latest) = latest {
            let before = self.sent[self.base..start].iter_mut();
            before.filter(|f| f.is_outstanding() && f.stamp < latest).for_each(|f| f.flagged = true);
        }
    }

    fn accept(&mut self, n: usize, piece: Option<Piece>) {
        let delivered = piece.is_none();
        let opens_gap = n > self.next && self.received.range(self.next..).next().is_none();
        if opens_gap && self.config.gap_opens_with == GapOpensWith::Cumulative {
            self.block_was_last = true;
        }
        self.received.entry(n).or_insert(Incoming { piece, delivered });
    }

    fn deliver(&mut self) {
        while self.received.contains_key(&self.next) {
            self.next += 1;
        }
        while let Some(packet) = self.deliverable() {
            self.delivered.push_back(packet);
        }
        // What is delivered and below the gap is never asked about again.
        let next = self.next;
        self.received.retain(|&n, frame| n >= next || !frame.delivered);
    }

    fn piece(&self, n: usize) -> Option<&Piece> {
        self.received.get(&n).and_then(|frame| frame.piece.as_ref())
    }

    /// The first complete packet that was not delivered: below the gap if in order, else anywhere.
    fn deliverable(&mut self) -> Option<Vec<u8>> {
        let end = if self.config.ordered { self.next } else { usize::MAX };
        let waiting = self.received.range(..end).filter(|(_, frame)| !frame.delivered);
        for start in waiting.map(|(&n, _)| n).collect::<Vec<_>>() {
            if !self.piece(start).is_some_and(|piece| piece.0) {
                continue;
            }
            // A packet that was given up while it was cut has no end: the next one begins.
            let belongs = |n: &usize| self.piece(*n).is_some_and(|piece| *n == start || !piece.0);
            let run: Vec<usize> = (start..end).take_while(belongs).collect();
            let Some(len) = run.iter().position(|n| self.piece(*n).unwrap().1) else { continue };
            let mut packet = Vec::new();
            for n in &run[..=len] {
                let frame = self.received.get_mut(n).unwrap();
                frame.delivered = true;
                packet.extend(&frame.piece.as_ref().unwrap().2);
            }
            return Some(packet);
        }
        None
    }
}
