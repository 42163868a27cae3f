//! Observers of nodes and links: captures for Wireshark, the traces of segments, windows and queues that plots are drawn from, and
//! the log of all events.

mod capture;
pub mod events;
mod flow;
mod queue;
pub mod series;
mod tunnel;
mod window;

pub use self::tunnel::{TunnelSample, TunnelTrace};
pub use capture::{Capture, Format, Sighting, Tap};
pub use events::EventLog;
pub use flow::{Flow, FlowTrace, SegmentMark};
pub use queue::{QueueMark, QueueTrace};
pub use window::{Aggregate, AggregateMark, WindowMark, WindowTrace, Windows};
