//! The events of a run in memory, and what experiments ask of them.

use core::fmt;
use core::ops::Range;

use base::Instant;
use link::FrameKind;

use super::event::{Event, PacketMark, Place, Segment, SenderState, TrailerMark, What};
use super::recorder::KEPT;

/// The events of one run, in their order. Empty unless they were watched.
#[derive(Clone, Debug, Default)]
pub struct EventLog {
    places: Vec<String>,
    events: Vec<Event>,
    unkept: u64,
    /// When the run ended.
    pub(super) ended_at: Instant,
}

/// A direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkDirection {
    /// Towards its second end.
    Down,
    /// Towards its first end.
    Up,
}

/// All that the log holds of one frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// Its number among the frames of its direction, from 1.
    pub number: u64,
    /// What it carries.
    pub kind: FrameKind,
    /// Bits on the line, framing included.
    pub bits: u32,
    /// Bits of it that were filled only when it was sealed.
    pub late_bits: u32,
    /// From when its first bit leaves to when the last has left.
    pub on_air: Range<Instant>,
    /// When its last bit arrives.
    pub arrives_at: Instant,
    /// When its late bytes were filled; `None` if the run ended first.
    pub sealed_at: Option<Instant>,
    /// Its trailer as it left; of COTMLL alone.
    pub trailer: Option<TrailerMark>,
    /// Whether the channel leaves it as it was sent; `None` if the run ended before that was decided.
    pub intact: Option<bool>,
    /// When the other end took it; `None` if it never did, or where frames are found in a stream of bits.
    pub arrived_at: Option<Instant>,
    /// Why the other end had no use for it, if it had none.
    pub discarded: Option<link::Discard>,
}

impl EventLog {
    /// All events.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Events after the first [`KEPT`], which were counted and not kept.
    #[must_use]
    pub const fn unkept(&self) -> u64 {
        self.unkept
    }

    /// When the run ended.
    #[must_use]
    pub const fn ended_at(&self) -> Instant {
        self.ended_at
    }

    /// The name of a place: a host's, or `link/down` and `link/up`.
    #[must_use]
    pub fn place_name(&self, place: Place) -> &str {
        self.places.get(usize::from(place.0)).map_or("", String::as_str)
    }

    /// The segments that a host sent and received; none of a host that is not in the log.
    pub fn segments(&self, host: &str) -> impl Iterator<Item = (Instant, &Segment)> {
        self.at_place(host).filter_map(|event| match &event.what {
            What::Segment(segment) => Some((event.at, segment)),
            _ => None,
        })
    }

    /// The states of a host's TCP senders, at every change.
    pub fn sender_states(&self, host: &str) -> impl Iterator<Item = (Instant, SenderState)> {
        self.at_place(host).filter_map(|event| match event.what {
            What::Sender(state) => Some((event.at, state)),
            _ => None,
        })
    }

    /// The steps of packets over one direction of a link.
    pub fn packets(
        &self,
        link: &str,
        direction: LinkDirection,
    ) -> impl Iterator<Item = (Instant, PacketMark)> {
        self.at_place(&direction.of(link)).filter_map(|event| match event.what {
            What::Packet(mark) => Some((event.at, mark)),
            _ => None,
        })
    }

    /// The frames of one direction of a link, in their order.
    #[must_use]
    pub fn frames(&self, link: &str, direction: LinkDirection) -> Vec<Frame> {
        let mut frames: Vec<Frame> = Vec::new();
        for event in self.at_place(&direction.of(link)) {
            match &event.what {
                What::FrameStarted(started) => frames.push(Frame {
                    number: started.number,
                    kind: started.kind,
                    bits: started.bits,
                    late_bits: started.late_bits,
                    on_air: started.from..started.to,
                    arrives_at: started.arrives_at,
                    sealed_at: None,
                    trailer: None,
                    intact: None,
                    arrived_at: None,
                    discarded: None,
                }),
                What::FrameSealed(sealed) => {
                    if let Some(frame) = find(&mut frames, sealed.number) {
                        frame.sealed_at = Some(event.at);
                        (frame.trailer, frame.intact) = (sealed.trailer, Some(sealed.intact));
                    }
                }
                What::FrameArrived(arrived) => {
                    if let Some(frame) = arrived.number.and_then(|number| find(&mut frames, number)) {
                        (frame.arrived_at, frame.discarded) = (Some(event.at), arrived.discarded);
                    }
                }
                _ => {}
            }
        }
        frames
    }

    /// When one direction of a link was blocked; the last interval ends with the run.
    #[must_use]
    pub fn blockages(&self, link: &str, direction: LinkDirection) -> Vec<Range<Instant>> {
        let mut blockages: Vec<Range<Instant>> = Vec::new();
        for event in self.at_place(&direction.of(link)) {
            match (&event.what, blockages.last_mut()) {
                (What::Blockage { blocked: true }, _) => blockages.push(event.at..self.ended_at),
                (What::Blockage { blocked: false }, Some(last)) => last.end = event.at,
                _ => {}
            }
        }
        blockages
    }

    /// All events of one direction of a link, in their order.
    pub fn link_events(&self, link: &str, direction: LinkDirection) -> impl Iterator<Item = &Event> {
        self.at_place(&direction.of(link))
    }

    fn at_place<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a Event> + use<'a> {
        let place = self.places.iter().position(|known| known == name);
        self.events.iter().filter(move |event| Some(usize::from(event.place.0)) == place)
    }

    pub(super) fn add_place(&mut self, name: &str) -> Place {
        self.places.push(name.to_owned());
        Place((self.places.len() - 1) as u16)
    }

    pub(super) fn push(&mut self, event: Event) {
        if self.events.len() < KEPT {
            self.events.push(event);
        } else {
            self.unkept += 1;
        }
    }
}

impl Frame {
    /// The moment whose state its acknowledgement reports: when it was sealed, or started if it was complete then; `None` if
    /// the run ended first.
    #[must_use]
    pub fn filled_at(&self) -> Option<Instant> {
        if self.late_bits == 0 { Some(self.on_air.start) } else { self.sealed_at }
    }
}

impl LinkDirection {
    /// The name of a link's direction, as in a run's counters.
    #[must_use]
    pub fn of(self, link: &str) -> String {
        format!("{link}/{self}")
    }
}

impl fmt::Display for LinkDirection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Down => "down",
            Self::Up => "up",
        })
    }
}

/// The frame with a number; frames come in the order of theirs.
fn find(frames: &mut [Frame], number: u64) -> Option<&mut Frame> {
    let place = frames.binary_search_by_key(&number, |frame| frame.number).ok()?;
    frames.get_mut(place)
}
