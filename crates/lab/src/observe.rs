//! Observers of a node's packets: a capture for Wireshark, and the traces that plots are drawn from.

mod capture;
mod flow;

pub use capture::Capture;
pub use flow::{Flow, FlowTrace, SegmentMark};
