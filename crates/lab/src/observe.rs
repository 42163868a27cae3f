//! Observers of nodes: a capture for Wireshark, the traces of segments and windows that plots are drawn from, and the
//! log of all events.

mod capture;
pub mod events;
mod flow;
mod window;

pub use capture::Capture;
pub use events::EventLog;
pub use flow::{Flow, FlowTrace, SegmentMark};
pub use window::{Aggregate, AggregateMark, WindowMark, WindowTrace, Windows};
