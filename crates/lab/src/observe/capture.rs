//! A capture in the pcapng format: the packets of a node, or the frames of a link in both directions, with what became of each.
//!
//! A node's file has one interface, a link's one for each direction, `link/down` and `link/up`. On a link with a protocol its link type is
//! [`LINKTYPE_USER0`], and a pseudo-header in front of each frame says what the bytes alone do not: the dissectors in
//! `wireshark/` read it. Packets, of a node or a wire, are raw IP. `docs/captures.md` describes both.
//!
//! A frame has the time at which its last bit arrives, or would have. It is known when the frame leaves, so frames wait
//! here until time has come to it, and the file is in the order of time.

mod pcapng;
mod pseudo_header;

use core::cell::RefCell;
use core::cmp::Reverse;
use core::fmt;
use core::ops::Range;
use std::collections::BinaryHeap;
use std::io::{self, Write};
use std::rc::Rc;

use base::{Instant, Packet};
use channel::Fate;
use link::FrameKind;

use super::events::LinkDirection;
use crate::engine::{Direction, Observer};
pub use pseudo_header::Format;

/// Writes everything that passes a node or a link to its file.
pub struct Capture {
    out: Box<dyn Write>,
    failed: Option<io::Error>,
    /// What a pseudo-header says of all frames; `None` for packets without one.
    format: Option<Format>,
    /// Blocks whose time is still to come, the earliest first; in the order of their making where times are the same.
    waiting: BinaryHeap<Reverse<(Instant, u64, Vec<u8>)>>,
    made: u64,
}

/// One end's way to the capture.
#[derive(Clone, Debug)]
pub struct Tap {
    capture: Rc<RefCell<Capture>>,
    direction: LinkDirection,
}

/// A frame that is leaving, complete.
#[derive(Clone, Debug)]
pub struct Sighting<'a> {
    /// Its number among those of its direction, from 1.
    pub number: u64,
    /// What it carries.
    pub kind: FrameKind,
    /// Bits on the line, framing included.
    pub bits: u32,
    /// From its first bit to its last.
    pub on_air: Range<Instant>,
    /// When the last bit arrives.
    pub arrives_at: Instant,
    /// What becomes of it.
    pub fate: Fate,
    /// As it arrives if its framing is real, otherwise as it is sent.
    pub bytes: &'a [u8],
    /// Whether a preamble of the framing comes first.
    pub has_preamble: bool,
}

impl Capture {
    /// Starts the capture of the node `name`, which it [observes](crate::engine::Engine::observe).
    ///
    /// # Errors
    /// What `out` says.
    pub fn of_node(out: Box<dyn Write>, name: &str) -> io::Result<Self> {
        Self::new(out, &[name], None)
    }

    /// Starts the capture of the link `name`: of frames in this format, or without one of packets.
    ///
    /// # Errors
    /// What `out` says.
    pub fn of_link(out: Box<dyn Write>, name: &str, format: Option<Format>) -> io::Result<Self> {
        let [down, up] = [LinkDirection::Down, LinkDirection::Up].map(|direction| direction.of(name));
        Self::new(out, &[&down, &up], format)
    }

    fn new(mut out: Box<dyn Write>, interfaces: &[&str], format: Option<Format>) -> io::Result<Self> {
        let link_type = if format.is_some() { LINKTYPE_USER0 } else { LINKTYPE_RAW };
        out.write_all(&pcapng::section())?;
        for name in interfaces {
            out.write_all(&pcapng::interface(link_type, name))?;
        }
        Ok(Self { out, failed: None, format, waiting: BinaryHeap::new(), made: 0 })
    }

    /// The tap for one direction.
    #[must_use]
    pub fn tap(this: &Rc<RefCell<Self>>, direction: LinkDirection) -> Tap {
        Tap { capture: Rc::clone(this), direction }
    }

    /// Writes what still waits: frames that were on their way when the run ended too.
    ///
    /// # Errors
    /// The first error that writing met.
    pub fn finish(&mut self) -> io::Result<()> {
        self.write_until(Instant::MAX);
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }

    /// Adds a packet or frame that belongs into the file at `at`, which is not before `now`.
    fn add(&mut self, now: Instant, at: Instant, packet: &pcapng::Packet<'_>) {
        // On a line of rate zero nothing ever arrives.
        let at = if at == Instant::MAX { now } else { at };
        self.write_until(now);
        self.made += 1;
        self.waiting.push(Reverse((at, self.made, packet.block(at))));
    }

    fn write_until(&mut self, now: Instant) {
        while let Some(Reverse((at, _, _))) = self.waiting.peek()
            && *at <= now
            && let Some(Reverse((_, _, block))) = self.waiting.pop()
        {
            if self.failed.is_none() {
                self.failed = self.out.write_all(&block).err();
            }
        }
    }
}

impl Tap {
    /// A frame is leaving.
    pub fn on_frame(&self, now: Instant, sighting: &Sighting<'_>) {
        let mut capture = self.capture.borrow_mut();
        let header = capture.format.map(|format| format.header(self.direction, sighting));
        let header = header.as_ref().map_or(&[][..], |header| header);
        let packet = self.packet(header, sighting.bytes, sighting.fate);
        capture.add(now, sighting.arrives_at, &packet);
    }

    /// A packet is leaving on a wire.
    pub fn on_packet(&self, now: Instant, arrives_at: Instant, fate: Fate, packet: &[u8]) {
        self.capture.borrow_mut().add(now, arrives_at, &self.packet(&[], packet, fate));
    }

    const fn packet<'a>(&self, header: &'a [u8], bytes: &'a [u8], fate: Fate) -> pcapng::Packet<'a> {
        let is_up = matches!(self.direction, LinkDirection::Up);
        pcapng::Packet { interface: is_up as u32, is_inbound: is_up, fate, header, bytes }
    }
}

impl Observer for Capture {
    fn on_packet(&mut self, now: Instant, direction: Direction, packet: &Packet) {
        let is_inbound = direction == Direction::Received;
        let packet =
            pcapng::Packet { interface: 0, is_inbound, fate: Fate::Intact, header: &[], bytes: packet };
        self.add(now, now, &packet);
    }
}

impl fmt::Debug for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Capture({} waiting, failed: {:?})", self.waiting.len(), self.failed)
    }
}

/// For private use (registry of tcpdump.org): frames behind a pseudo-header of ours.
const LINKTYPE_USER0: u16 = 147;
/// Packets begin with their IP header (the same registry).
const LINKTYPE_RAW: u16 = 101;

#[cfg(test)]
mod tests;
