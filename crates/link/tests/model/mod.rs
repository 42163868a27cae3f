//! COTMLL as plainly as it can be written: every frame ever sent in a list, every rule a search through it.
//!
//! Written from the thesis (Faulkner 2004, 2.3) and the decisions listed in `link::cotmll`, not from the code.

use std::collections::{BTreeMap, VecDeque};

use longhaul_link::FrameKind;
use longhaul_link::cotmll::{Ack, SubProtocol, Trailer};

/// A piece of a packet: first, last, bytes.
pub(crate) type Piece = (bool, bool, Vec<u8>);

struct Outgoing {
    piece: Piece,
    /// Number of its latest sending.
    stamp: u64,
    acknowledged: bool,
    flagged: bool,
}

struct Incoming {
    piece: Piece,
    delivered: bool,
}

/// One end of a link.
pub(crate) struct Model {
    window: usize,
    ordered: bool,
    payload: usize,
    sendings: u64,
    base: usize,
    sent: Vec<Outgoing>,
    pending: VecDeque<Piece>,
    pending_once: VecDeque<Piece>,
    once_sent: usize,
    once_run: usize,
    received: BTreeMap<usize, Incoming>,
    next: usize,
    block_was_last: bool,
    pub(crate) delivered: VecDeque<Vec<u8>>,
}

impl Model {
    pub(crate) fn new(window: usize, ordered: bool, payload: usize) -> Self {
        Self {
            window,
            ordered,
            payload,
            sendings: 0,
            base: 0,
            sent: Vec::new(),
            pending: VecDeque::new(),
            pending_once: VecDeque::new(),
            once_sent: 0,
            once_run: 0,
            received: BTreeMap::new(),
            next: 0,
            block_was_last: false,
            delivered: VecDeque::new(),
        }
    }

    pub(crate) fn offer(&mut self, packet: &[u8], once: bool) {
        let chunks: Vec<&[u8]> = packet.chunks(self.payload).collect();
        let pieces = chunks.iter().enumerate().map(|(n, c)| (n == 0, n + 1 == chunks.len(), c.to_vec()));
        if once { self.pending_once.extend(pieces) } else { self.pending.extend(pieces) }
    }

    /// What leaves next, complete.
    pub(crate) fn poll(&mut self) -> (FrameKind, Vec<u8>) {
        let (kind, protocol, tx, piece) = self.choose();
        let ack = self.ack();
        let (first, last, mut frame) = piece;
        frame.extend(Trailer { protocol, first, last, tx: (tx % 1024) as u16, ack }.emit());
        (kind, frame)
    }

    fn choose(&mut self) -> (FrameKind, SubProtocol, usize, Piece) {
        let window = || self.sent.iter().enumerate().skip(self.base);
        let flagged = window().find(|(_, frame)| frame.flagged).map(|(n, _)| n);
        let oldest = window().filter(|(_, frame)| !frame.acknowledged);
        let oldest = oldest.min_by_key(|(_, frame)| frame.stamp).map(|(n, _)| n);
        let may_send = !self.pending.is_empty() && self.sent.len() - self.base < self.window;
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
                let piece = self.pending.pop_front().unwrap();
                self.sent.push(Outgoing { piece, stamp: 0, acknowledged: false, flagged: false });
                (FrameKind::New, self.sent.len() - 1)
            }
            (None, false, Some(n)) => (FrameKind::Filler, n),
            (None, false, None) => {
                return (FrameKind::Control, SubProtocol::Control, 0, (false, false, Vec::new()));
            }
        };
        self.sendings += 1;
        self.sent[n].stamp = self.sendings;
        self.sent[n].flagged = false;
        (kind, SubProtocol::Reliable, n, self.sent[n].piece.clone())
    }

    fn ack(&mut self) -> Ack {
        let first = self.received.range(self.next..).next().map(|(&n, _)| n);
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
                self.accept(self.next + offset, (trailer.first, trailer.last, payload.to_vec()));
            }
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
        let news = self.sent[start..start + count].iter_mut().filter(|frame| !frame.acknowledged);
        let latest = news.map(|frame| {
            frame.acknowledged = true;
            frame.flagged = false;
            frame.stamp
        });
        if let Some(latest) = latest.max() {
            let before = self.sent[self.base..start].iter_mut();
            before.filter(|f| !f.acknowledged && f.stamp < latest).for_each(|f| f.flagged = true);
        }
    }

    fn accept(&mut self, n: usize, piece: Piece) {
        if self.received.contains_key(&n) {
            return;
        }
        self.received.insert(n, Incoming { piece, delivered: false });
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

    /// The first complete packet that was not delivered: below the gap if in order, else anywhere.
    fn deliverable(&mut self) -> Option<Vec<u8>> {
        let end = if self.ordered { self.next } else { usize::MAX };
        let starts = self.received.range(..end).filter(|(_, f)| f.piece.0 && !f.delivered);
        for start in starts.map(|(&n, _)| n).collect::<Vec<_>>() {
            let run: Vec<usize> = (start..end).take_while(|n| self.received.contains_key(n)).collect();
            let Some(len) = run.iter().position(|n| self.received[n].piece.1) else { continue };
            let mut packet = Vec::new();
            for n in &run[..=len] {
                let frame = self.received.get_mut(n).unwrap();
                frame.delivered = true;
                packet.extend(&frame.piece.2);
            }
            return Some(packet);
        }
        None
    }
}
