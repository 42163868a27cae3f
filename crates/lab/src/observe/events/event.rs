//! What can happen, as plain integers. `docs/events.md` describes the same fields as they are written to a file.

use base::{Duration, Instant};
use link::FrameKind;
use link::cotmll::{Ack, SubProtocol, Trailer};
use serde::{Serialize, Serializer};

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// When.
    pub at: Instant,
    /// Where.
    pub place: Place,
    /// What.
    pub what: What,
}

/// A host or one direction of a link, by its number in the log: [`super::EventLog::place_name`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(pub u16);

/// The kinds of events.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum What {
    /// A TCP segment left a host or reached it.
    Segment(Segment),
    /// A TCP sender's state after it changed.
    Sender(SenderState),
    /// A packet came a step further on its way over a link.
    Packet(PacketMark),
    /// The line took a frame.
    FrameStarted(FrameStarted),
    /// The MAC buffer had no room for a frame, which is gone.
    FrameDropped {
        /// Bits that it would have taken on the line.
        bits: u32,
    },
    /// A frame's last bytes were filled; from then on its fate is known.
    FrameSealed(FrameSealed),
    /// A frame reached the other end intact.
    FrameArrived(FrameArrived),
    /// An acknowledgement made a sender take frames for lost.
    FramesFlagged(FramesFlagged),
    /// A link that had slept caught up with its line.
    Slept {
        /// Bare acknowledgements that were put on the line meanwhile and are not logged.
        frames: u64,
        /// Of those, lost ones.
        lost: u64,
    },
    /// The line became blocked, or open again, at the end where its errors happen.
    Blockage {
        /// Whether it is blocked from now on.
        blocked: bool,
    },
}

impl What {
    /// What the kinds are called in tables and files.
    pub const KINDS: [&str; 10] = [
        "segment",
        "sender",
        "packet",
        "frame-started",
        "frame-dropped",
        "frame-sealed",
        "frame-arrived",
        "frames-flagged",
        "slept",
        "blockage",
    ];
}

/// A TCP segment at a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Segment {
    /// Whether the host sent it; it received it otherwise.
    pub sent: bool,
    /// Source port.
    pub from: u16,
    /// Destination port.
    pub to: u16,
    /// Offset of its first byte in the stream: 0 is the first byte of data.
    pub seq: u64,
    /// Bytes of data.
    pub len: u32,
    /// Control bits, as in the header: [`base::wire::tcp::Flags`].
    pub flags: u8,
    /// Offset of the byte that it expects next of the other direction's stream, if it acknowledges.
    pub ack: Option<u64>,
    /// The window field, unscaled.
    pub window: u16,
    /// Its SACK blocks as offsets of first bytes and of those after the last.
    pub sack: Box<[(u64, u64)]>,
    /// Sent: some of its data had been sent before. Received: all of its data had been received before.
    pub again: bool,
}

/// What a TCP sender goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SenderState {
    /// Local port.
    pub from: u16,
    /// Remote port.
    pub to: u16,
    /// Congestion window in bytes, without a recovery scheme's inflation.
    pub cwnd: u64,
    /// Slow start threshold in bytes, if there is one.
    pub ssthresh: Option<u64>,
    /// Bytes sent and not cumulatively acknowledged. A change of this alone is no event.
    pub flight_size: u64,
    /// Smoothed round-trip time, once there is a sample.
    #[serde(serialize_with = "optional_span")]
    pub srtt: Option<Duration>,
    /// Round-trip time variation.
    #[serde(serialize_with = "span")]
    pub rttvar: Duration,
    /// Retransmission time-out, back-off included.
    #[serde(serialize_with = "span")]
    pub rto: Duration,
    /// Doublings of the time-out.
    pub backoff: u32,
    /// Expirations of the retransmission timer so far.
    pub timeouts: u32,
    /// Fast recoveries so far, this one included.
    pub recoveries: u32,
    /// Whether fast recovery is in progress.
    pub recovering: bool,
}

/// A packet at one direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PacketMark {
    /// What became of it.
    pub step: PacketStep,
    /// Source port; 0 for what is neither TCP nor UDP, as with the port below.
    pub from: u16,
    /// Destination port.
    pub to: u16,
    /// Offset of its first byte in the TCP stream; 0 for other packets.
    pub seq: u64,
    /// Bytes of data above TCP or UDP.
    pub len: u32,
    /// Bytes of the IP packet.
    pub bytes: u32,
}

/// A packet's steps over a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PacketStep {
    /// It entered the queue.
    Queued,
    /// The queue dropped it.
    Dropped,
    /// It left the queue for the link's endpoint, or for the line where there is none.
    Taken,
    /// The line lost it; of links with an endpoint, which lose frames: the sending endpoint has given it up.
    Lost,
    /// It came out at the other end.
    Delivered,
}

/// A frame as it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FrameStarted {
    /// Its number among the frames of this direction, from 1. Those that a sleeping link skips count.
    pub number: u64,
    /// What it carries.
    #[serde(serialize_with = "kind")]
    pub kind: FrameKind,
    /// Bits on the line, framing included.
    pub bits: u32,
    /// Bits of it that are filled only when it is sealed; if there are none, it is complete now.
    pub late_bits: u32,
    /// When its first bit leaves.
    #[serde(serialize_with = "time")]
    pub from: Instant,
    /// When its last bit has left.
    #[serde(serialize_with = "time")]
    pub to: Instant,
    /// When its last bit arrives.
    #[serde(serialize_with = "time")]
    pub arrives_at: Instant,
}

/// A frame when its late bytes are filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FrameSealed {
    /// Its number.
    pub number: u64,
    /// Whether it is going to arrive as it was sent.
    pub intact: bool,
    /// What its trailer says, with the acknowledgement as of now; of COTMLL alone.
    pub trailer: Option<TrailerMark>,
}

/// An intact frame where it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FrameArrived {
    /// Its number; `None` on a line where frames are found in a stream of bits.
    pub number: Option<u64>,
    /// Why the endpoint had no use for it, if it had none.
    #[serde(serialize_with = "discard")]
    pub discarded: Option<link::Discard>,
    /// What its trailer says; of COTMLL alone.
    pub trailer: Option<TrailerMark>,
}

/// Frames that a sender takes for lost from now on, until it sends them again or they are acknowledged after all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FramesFlagged {
    /// Their sequence numbers modulo 1024, in the order of the window.
    pub frames: Box<[u16]>,
    /// The trailer whose acknowledgement made it so; it came the other way. `None` if no frame did, but a timer.
    pub trailer: Option<TrailerMark>,
}

/// A COTMLL trailer (Faulkner 2004, 2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TrailerMark {
    /// What the payload is.
    #[serde(serialize_with = "class")]
    pub class: SubProtocol,
    /// Sequence number modulo 1024; 0 in control frames.
    pub tx: u16,
    /// Whether the payload starts a packet.
    pub first: bool,
    /// Whether the payload ends a packet.
    pub last: bool,
    /// The acknowledgement's number: where `ack_count` is zero the first frame that has not been received, otherwise
    /// the first of a block beyond the gap, which one as the link's `block` says.
    pub ack: u16,
    /// Frames in that block; zero for a cumulative acknowledgement.
    pub ack_count: u8,
}

impl From<Trailer> for TrailerMark {
    fn from(trailer: Trailer) -> Self {
        let Trailer { protocol, first, last, tx, ack } = trailer;
        let (ack, ack_count) = match ack {
            Ack::Cumulative(next) => (next, 0),
            Ack::Block { start, count } => (start, count),
        };
        Self { class: protocol, tx, first, last, ack, ack_count }
    }
}

// Serde hands over references.
#[expect(clippy::trivially_copy_pass_by_ref)]
fn time<S: Serializer>(time: &Instant, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(time.as_nanos())
}

#[expect(clippy::trivially_copy_pass_by_ref)]
fn span<S: Serializer>(span: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(span.as_nanos())
}

fn optional_span<S: Serializer>(span: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    span.map(Duration::as_nanos).serialize(serializer)
}

#[expect(clippy::trivially_copy_pass_by_ref)]
fn kind<S: Serializer>(kind: &FrameKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match kind {
        FrameKind::New => "new",
        FrameKind::Retransmission => "retransmission",
        FrameKind::Filler => "filler",
        FrameKind::Repair => "repair",
        FrameKind::Control => "control",
    })
}

#[expect(clippy::trivially_copy_pass_by_ref)]
fn class<S: Serializer>(class: &SubProtocol, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match class {
        SubProtocol::Control => "control",
        SubProtocol::Reliable => "reliable",
        SubProtocol::Unreliable => "unreliable",
    })
}

fn discard<S: Serializer>(discard: &Option<link::Discard>, serializer: S) -> Result<S::Ok, S::Error> {
    discard.map(|discard| discard.to_string()).serialize(serializer)
}

// A long run keeps millions of them.
const _: () = assert!(size_of::<Event>() <= 112);
