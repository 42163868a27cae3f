//! Observers of nodes: a capture for Wireshark, and the traces of segments and windows that plots are drawn from.

mod capture;
mod flow;
mod window;

pub use capture::Capture;
pub use flow::{Flow, FlowTrace, SegmentMark};
pub use window::{Aggregate, AggregateMark, WindowMark, WindowTrace, Windows};
