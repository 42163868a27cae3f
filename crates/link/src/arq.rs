//! Selective repeat over a large window: what protocols with frames of any length and exact reports have in common.
//!
//! Ours; the rules of what goes next are after Faulkner 2004, 2.3. Each end has a `Core`, and what its protocol does in its own way is a
//! `Policy`: wide COTMLL ([`cotmll`](crate::cotmll)) repeats a frame until it has arrived, SLACP ([`slacp`](crate::slacp))
//! gives it up after an attempt or few, and coded ARQ ([`coded`](crate::coded)) keeps account of what is missing. To [`harq`](crate::harq) a
//! frame of this window is a block of several, which it codes itself. Those that repeat until a frame has arrived wait with a `Detection`.

mod completion;
mod copies;
mod departures;
mod detection;
pub(crate) mod end;
pub(crate) mod frame;
mod gaps;
mod length;
mod lines;
mod order;
pub(crate) mod policy;
mod receiver;
mod reordering;
pub(crate) mod sender;
pub(crate) mod sequence;
mod size;
mod spans;
mod suspicion;
#[cfg(test)]
pub(crate) mod tests;
mod timer;

pub use frame::TRAILER_LEN;
pub use lines::{LineId, LineTerms, MAX_LINES, Treatments, When};
pub use order::Order;
pub use sequence::MAX_WINDOW;
pub use size::{FramePayload, Window};

pub(crate) use copies::Copies;
pub(crate) use departures::Departures;
pub(crate) use detection::Detection;
pub(crate) use end::Core;
pub(crate) use lines::{Over, PerLine, Transmission};
pub(crate) use receiver::Receiver;
use reordering::Reordering;
pub(crate) use sender::{NOTE, NOTES, Next, Sender};
pub(crate) use size::{frame_payload, window};
pub(crate) use suspicion::Suspicion;
pub(crate) use timer::{Timer, earliest};
