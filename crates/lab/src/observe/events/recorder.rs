//! What nodes report to while a run goes on.

use core::cell::RefCell;
use core::fmt;
use std::io::{self, Write};
use std::rc::Rc;

use base::{Instant, Packet};
use channel::Timeline;
use serde::Serialize;

use super::event::{Event, PacketMark, PacketStep, Place, What};
use super::log::EventLog;
use super::stream::Streams;
use crate::engine::{Direction, Observer};

/// Events that a log in memory keeps at most; those after them are counted.
pub const KEPT: usize = 2_000_000;

/// Takes the events of one run, in the order in which they happen.
pub struct Recorder {
    log: EventLog,
    keeps: bool,
    out: Option<Box<dyn Write>>,
    failed: Option<io::Error>,
    streams: Streams,
    blockages: Vec<Blockages>,
    /// When the first of those changes next.
    next_change: Instant,
}

/// The changes of one direction's state that are still to come.
#[derive(Debug)]
struct Blockages {
    place: Place,
    timeline: Timeline,
    /// The next change, and whether the line is blocked from then on.
    next: Option<(Instant, bool)>,
    /// When the blockage that comes or goes on ends.
    ends_at: Instant,
}

/// A node's way to the recorder.
#[derive(Clone, Debug)]
pub struct Probe {
    recorder: Rc<RefCell<Recorder>>,
    place: Place,
}

impl Recorder {
    /// A recorder that keeps events in memory if it `keeps`, and writes them to `out` if that is given.
    #[must_use]
    pub fn new(keeps: bool, out: Option<Box<dyn Write>>) -> Self {
        Self {
            log: EventLog::default(),
            keeps,
            out,
            failed: None,
            streams: Streams::default(),
            blockages: Vec::new(),
            next_change: Instant::MAX,
        }
    }

    /// The probe of another place.
    pub fn probe(this: &Rc<RefCell<Self>>, name: &str) -> Probe {
        let place = this.borrow_mut().log.add_place(name);
        Probe { recorder: Rc::clone(this), place }
    }

    /// Ends the log at the run's end and hands over what it kept.
    ///
    /// # Errors
    /// The first error that writing met.
    pub fn finish(&mut self, end: Instant) -> io::Result<EventLog> {
        self.catch_up(end);
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if let Some(out) = &mut self.out {
            out.flush()?;
        }
        self.log.ended_at = end;
        Ok(core::mem::take(&mut self.log))
    }

    fn record(&mut self, at: Instant, place: Place, what: What) {
        if self.next_change <= at {
            self.catch_up(at);
        }
        self.put(at, place, what);
    }

    /// Notes the blockages that came and went until now.
    fn catch_up(&mut self, now: Instant) {
        loop {
            let first = self.blockages.iter_mut().filter(|b| b.next.is_some()).min_by_key(|b| b.next);
            let Some((blockages, (at, blocked))) = first.and_then(|b| b.next.map(|next| (b, next))) else {
                self.next_change = Instant::MAX;
                return;
            };
            if at > now {
                self.next_change = at;
                return;
            }
            let place = blockages.place;
            blockages.advance();
            self.put(at, place, What::Blockage { blocked });
        }
    }

    fn put(&mut self, at: Instant, place: Place, what: What) {
        if let Some(out) = &mut self.out
            && self.failed.is_none()
        {
            let line = Line { at: at.as_nanos(), place: self.log.place_name(place), what: &what };
            self.failed = line.write(out).err();
        }
        if self.keeps {
            self.log.push(Event { at, place, what });
        }
    }
}

impl Blockages {
    fn advance(&mut self) {
        self.next = match self.next {
            Some((_, true)) => Some((self.ends_at, false)),
            _ => self.timeline.next().map(|blocked| {
                self.ends_at = blocked.end;
                (blocked.start, true)
            }),
        };
    }
}

impl Probe {
    /// Something happened at the probe's place.
    pub fn note(&self, now: Instant, what: What) {
        self.recorder.borrow_mut().record(now, self.place, what);
    }

    /// A packet came a step further.
    pub fn packet(&self, now: Instant, step: PacketStep, packet: &[u8]) {
        let mark = self.mark(step, packet);
        self.note(now, What::Packet(mark));
    }

    /// What is to be told of a packet that is about to be given away.
    #[must_use]
    pub fn mark(&self, step: PacketStep, packet: &[u8]) -> PacketMark {
        self.recorder.borrow().streams.packet(packet, step)
    }

    /// Logs from now on when `timeline`, as it was at the start of the run, is blocked.
    pub fn watch_blockages(&self, timeline: Timeline) {
        let mut recorder = self.recorder.borrow_mut();
        let mut blockages = Blockages { place: self.place, timeline, next: None, ends_at: Instant::MAX };
        blockages.advance();
        if let Some((at, _)) = blockages.next {
            recorder.next_change = recorder.next_change.min(at);
            recorder.blockages.push(blockages);
        }
    }
}

impl Observer for Probe {
    fn on_packet(&mut self, now: Instant, direction: Direction, packet: &Packet) {
        let segment = self.recorder.borrow_mut().streams.segment(packet, direction == Direction::Sent);
        if let Some(segment) = segment {
            self.note(now, What::Segment(segment));
        }
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recorder({} kept, failed: {:?})", self.log.events().len(), self.failed)
    }
}

/// An event as it is written.
#[derive(Serialize)]
struct Line<'a> {
    at: u64,
    place: &'a str,
    #[serde(flatten)]
    what: &'a What,
}

impl Line<'_> {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        out.write_all(b"\n")
    }
}
