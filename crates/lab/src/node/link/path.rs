//! One of the ways from an end of a link to the other: a line, and what is on it.

use core::ops::Range;
use std::collections::VecDeque;

use base::{Instant, Packet};
use channel::{Fate, Line};
use link::FrameKind;

use crate::node::insert_by_arrival;
use crate::observe::events::TrailerMark;

/// A line, the frame that has it, and the frames on their way.
#[derive(Debug)]
pub(super) struct Path {
    /// What reports call it, where there are several.
    pub(super) name: String,
    pub(super) line: Line,
    pub(super) started: Option<Started>,
    /// Whether the endpoint had something to say when it was last asked.
    pub(super) wants_line: bool,
    /// When the line is to be asked next, if it was asked and not granted.
    pub(super) ask_at: Instant,
    /// Intact frames, or all there is of a stream, on their way to the other end, in the order of their arrival.
    pub(super) in_flight: VecDeque<InFlight>,
    /// How many of those say more than bare acknowledgements do.
    pub(super) news_in_flight: usize,
    /// Frames put on the line, and those of them that it lost or damaged.
    pub(super) frames: u64,
    pub(super) lost: u64,
    /// Bits put on it, framing included.
    pub(super) bits: u64,
}

/// A frame that has started and whose late bytes are still to be filled.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) seal_at: Instant,
    pub(super) on_air: Range<Instant>,
    /// None where the bits decide it when they are known.
    pub(super) fate: Option<Fate>,
    pub(super) bits: u32,
    pub(super) late_len: usize,
    /// What the frame says, if somebody observes and it is complete.
    pub(super) trailer: Option<TrailerMark>,
    pub(super) frame: InFlight,
}

#[derive(Debug)]
pub(super) struct InFlight {
    /// Among the frames of its direction, from 1; 0 for what fills a stream between them.
    pub(super) number: u64,
    pub(super) arrives_at: Instant,
    pub(super) kind: FrameKind,
    pub(super) bytes: Packet,
}

impl InFlight {
    pub(super) const fn is_news(&self) -> bool {
        !matches!(self.kind, FrameKind::Control)
    }
}

impl Path {
    /// A line on which nothing has been sent, and whether there is something to say.
    pub(super) fn new(line: Line, wants_line: bool) -> Self {
        Self {
            name: FIRST_PATH.to_owned(),
            line,
            started: None,
            wants_line,
            ask_at: Instant::ZERO,
            in_flight: VecDeque::new(),
            news_in_flight: 0,
            frames: 0,
            lost: 0,
            bits: 0,
        }
    }

    /// The next frame that has arrived at the others.
    pub(super) fn poll_arrival(&mut self, now: Instant) -> Option<InFlight> {
        let frame = self.in_flight.pop_front_if(|frame| frame.arrives_at <= now)?;
        self.news_in_flight -= usize::from(frame.is_news());
        Some(frame)
    }

    /// A frame, complete, is on its way; whether it is going to be intact, and whether anything arrives.
    pub(super) fn launch(&mut self, frame: InFlight, intact: bool, arrives: bool) {
        self.lost += u64::from(!intact);
        if arrives {
            self.news_in_flight += usize::from(frame.is_news());
            insert_by_arrival(&mut self.in_flight, frame, |frame| frame.arrives_at);
        }
    }

    /// When the next frame arrives.
    pub(super) fn next_arrival(&self) -> Option<Instant> {
        self.in_flight.front().map(|frame| frame.arrives_at)
    }

    /// When the frame that has the line is to be sealed, or the line to be asked for the next one.
    pub(super) fn next_frame(&self) -> Option<Instant> {
        match &self.started {
            Some(started) => Some(started.seal_at),
            None => Some(self.ask_at).filter(|at| self.wants_line && *at < Instant::MAX),
        }
    }
}

/// What the path is called that a link's own channel is.
pub const FIRST_PATH: &str = "channel";
