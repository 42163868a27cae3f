//! The shape that every link-layer protocol has.
//!
//! An endpoint is built for one line ([`LineLimits`]). Drain order, for its owner: hand in packets with
//! [`Endpoint::offer`] while [`Endpoint::has_room`]; whenever the line is free and [`Endpoint::demand`] is not
//! [`Demand::Nothing`], take a frame with [`Endpoint::poll_frame`], and when its last
//! [`FrameInfo::late_len`] bytes are about to leave, complete it with [`Endpoint::seal_frame`]. After
//! [`Endpoint::handle_frame`] or [`Endpoint::handle_timeout`], take packets with [`Endpoint::poll_packet`]
//! until there are none, and read [`Endpoint::poll_timeout`] again. An observer takes events with
//! [`Endpoint::poll_event`] after each of these calls.

use core::fmt::Debug;

use base::{Duration, Instant, Packet};

use crate::arq::{LineId, LineTerms};
use crate::capabilities::Capabilities;
use crate::event::Event;
use crate::line::LineLimits;
use crate::marks::Marks;
use crate::treatment::Treatment;

/// The endpoint has no room: the packet is handed back.
#[derive(Debug)]
pub struct Full(pub Packet);

/// Why an arriving frame was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Discard {
    /// Too short for the protocol's own fields.
    #[error("truncated frame of {0} bytes")]
    Truncated(usize),
    /// Field values that the protocol does not allow.
    #[error("malformed frame")]
    Malformed,
    /// A frame that had arrived before.
    #[error("duplicate of frame {0}")]
    Duplicate(u64),
    /// A frame that the line's order says is too late to be used.
    #[error("late frame {0}")]
    Late(u64),
    /// A frame outside what the sender may send.
    #[error("frame {0} outside the window")]
    OutsideWindow(u64),
}

/// What a frame carries, for whoever accounts for the line's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// Data that is sent for the first time.
    New,
    /// Data known to be lost, sent again.
    Retransmission,
    /// Data sent again because the line would otherwise idle.
    Filler,
    /// Redundancy computed from data.
    Repair,
    /// The protocol's own messages, bare acknowledgements among them.
    Control,
}

/// A frame that was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameInfo {
    /// What it carries.
    pub kind: FrameKind,
    /// Bytes at its end that [`Endpoint::seal_frame`] is still to fill; zero if the frame is complete.
    pub late_len: usize,
    /// What the header around it should say to routers: the marks of the packets that it carries a part of, the same each
    /// time that it is sent.
    pub marks: Marks,
}

/// What an endpoint would do with a free line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Demand {
    /// Leave it idle.
    Nothing,
    /// Say something again: only an otherwise wasted line should carry it.
    Filler,
    /// Say something new: data, a known loss, or acknowledgements that have changed.
    Fresh,
}

/// Why a packet that an endpoint has taken does not leave, although the line is free for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// What was lost is sent again first.
    Repair,
    /// As much is unacknowledged as may be. If that lasts, the link is blocked; where a window is too small for its link, something is
    /// acknowledged in each round trip.
    Window,
}

/// An endpoint whose frames go over several lines, each of which loses, delays and orders what goes over it by itself. What a line carries is as
/// over the only one; besides, each frame says what was heard over the others.
pub trait Lines {
    /// What a line carries, how long it takes and what it may be used for: what arrives earliest over it goes there. Where that is not told of a line,
    /// it takes whatever there is, and frames that were cut before it was used may come out longer than they should be.
    fn set_line_over(&mut self, line: LineId, terms: LineTerms);

    /// As [`Endpoint::handle_frame`], for a frame that came over this line.
    ///
    /// # Errors
    /// As [`Endpoint::handle_frame`].
    fn handle_frame_over(&mut self, now: Instant, line: LineId, frame: &[u8]) -> Result<(), Discard>;

    /// As [`Endpoint::poll_frame`], for a frame that leaves over this line.
    fn poll_frame_over(&mut self, now: Instant, line: LineId, out: &mut Vec<u8>) -> Option<FrameInfo>;

    /// A line is known to be dark, whatever reports say: what is out on it goes over others, and nothing new goes there before it is heard of.
    fn suspect(&mut self, line: LineId);
}

/// One end of a link-layer protocol.
pub trait Endpoint: Debug + Send {
    /// What the protocol does and needs.
    fn capabilities(&self) -> Capabilities;

    /// Takes a packet to carry. Protocols with windows of `arq` but for `harq` give one up whose time is up ([`Packet::expires`]).
    ///
    /// # Errors
    /// [`Full`] hands the packet back if there is no room.
    fn offer(&mut self, now: Instant, packet: Packet, treatment: Treatment) -> Result<(), Full>;

    /// Whether [`Endpoint::offer`] would take a packet with this treatment now.
    fn has_room(&self, treatment: Treatment) -> bool;

    /// So many bytes of packets with this treatment wait outside for room: a protocol may do more for what few wait for. Its owner says so
    /// before it asks what the endpoint would do.
    fn set_backlog(&mut self, _treatment: Treatment, _bytes: u64) {}

    /// A datagram that has come waits no longer than this for an earlier packet of its flow; `None` where it waits until that has come or is
    /// given up. A protocol that does not override this goes on as it did.
    fn set_hold(&mut self, _most: Option<Duration>) {}

    /// Whether a packet of the same flow as this one, that was offered as one to be sent until it has come, may not have arrived. A protocol that
    /// does not override this carries all packets in one order.
    fn carries_flow_of(&self, _packet: &[u8]) -> bool {
        false
    }

    /// What keeps packets that are sent until they have come from leaving, if something does besides their turn.
    fn obstacle(&self) -> Option<Obstacle> {
        None
    }

    /// Takes a frame that arrived intact.
    ///
    /// # Errors
    /// [`Discard`] says why the frame was of no use; the endpoint's state is then as if it had never come,
    /// except for its acknowledgement fields where these were still news.
    fn handle_frame(&mut self, now: Instant, frame: &[u8]) -> Result<(), Discard>;

    /// Frames of its own that its peer has acknowledged so far: while there are more and more, the line carries something both ways. A protocol
    /// that does not override this does not tell.
    fn acknowledged(&self) -> u64 {
        0
    }

    /// Bytes of memory that it holds, as allocated: packets that are under way and what is noted about them, what the peer has sent and cannot go
    /// up yet, copies and sums. Tables that are as long whatever is sent do not count. A protocol that does not override this holds a frame or two.
    fn memory(&self) -> usize {
        0
    }

    /// It may take so many bytes for what is under way from now on, and as many for what comes; more than its protocol's own limits it never
    /// does. Copies it drops; else it keeps what it has. Frames that there is no room for count as lost, and there is no room for a packet while more is
    /// under way. One packet at a time may always be.
    fn limit_memory(&mut self, _bytes: usize) {}

    /// Lets time-outs due by `now` happen.
    fn handle_timeout(&mut self, now: Instant);

    /// Starts a frame, appended to `out`; `None` leaves the line idle.
    fn poll_frame(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<FrameInfo>;

    /// Fills the last [`FrameInfo::late_len`] bytes of a started frame with the state as of `now`.
    fn seal_frame(&mut self, _now: Instant, _frame: &mut [u8]) {}

    /// Of the frames handed over and not told about, the first left at this time, which may be shortly ahead. On a line
    /// [behind a buffer](LineLimits::is_buffered) alone; other frames leave when they are handed over.
    fn handle_departure(&mut self, _at: Instant) {}

    /// A packet that is ready to go up.
    fn poll_packet(&mut self) -> Option<Packet>;

    /// When [`Endpoint::handle_timeout`] wants to be called.
    fn poll_timeout(&self) -> Option<Instant>;

    /// What [`Endpoint::poll_frame`] would do at `now`. Unless something is called meanwhile, it changes only
    /// when [`Endpoint::poll_timeout`] says so.
    fn demand(&self, now: Instant) -> Demand;

    /// As [`Endpoint::demand`], for one of several lines ([`Endpoint::lines`]).
    fn demand_over(&self, now: Instant, _line: LineId) -> Demand {
        self.demand(now)
    }

    /// Whether all frames from now on would be the same, neither data nor message, until a packet or a frame comes. That cannot be where
    /// fillers are data, or nothing is sent without need.
    fn is_at_rest(&self, _now: Instant) -> bool {
        false
    }

    /// The protocol over several lines; `None` if it has but one.
    fn lines(&mut self) -> Option<&mut dyn Lines> {
        None
    }

    /// From now on there are events to poll, if the protocol has any.
    fn observe(&mut self) {}

    /// The next event, once somebody [observes](Endpoint::observe).
    fn poll_event(&mut self) -> Option<Event> {
        None
    }

    /// The line has other properties from now on. Frames that were cut before may still come out longer than it says:
    /// whoever owns it must get those across otherwise. A protocol that does not override this goes on as it did.
    fn set_line(&mut self, _line: &LineLimits) {}

    /// Forgets everything that was said: the peer has started afresh. Packets not yet sent stay.
    fn reset(&mut self);

    /// What the endpoint counted, by name, for reports and metrics.
    fn counters(&self) -> Vec<(&'static str, u64)>;
}
