//! The event log: every TCP segment, packet, frame, acknowledgement and blockage of a run, and what TCP's senders make
//! of them.
//!
//! Source: Faulkner 2004, 3.4.1: the simulator's logs hold the sequence number of each TCP packet that passes the link,
//! of each link-layer frame, all link-layer acknowledgements, and what changes inside. Figures 4-3 and 4-5 to 4-7 are
//! drawn from such logs.
//!
//! A run keeps the first [`KEPT`] events in memory or writes all of them to a file as they happen, one JSON object a
//! line. The recorder takes no part: a run's trace hash is the same with and without it.

mod event;
mod log;
mod recorder;
mod sender;
mod stream;
mod table;

pub use event::{
    Event, FrameArrived, FrameSealed, FrameStarted, FramesFlagged, PacketMark, PacketStep, Place, Segment,
    SenderState, TrailerMark, What,
};
pub use log::{EventLog, Frame, LinkDirection};
pub use recorder::{KEPT, Probe, Recorder};
pub use sender::SenderWatch;
