//! What happens to a frame between two link endpoints: air time, propagation, errors.
//!
//! An [`ErrorProcess`] owns its random streams, derived from the run's seed and a *name*: two lines that
//! share a name see the same blockages, and every scheme of a comparison sees the same channel.
//!
//! - [`ErrorModel`] is what a scenario says; it builds error processes and timelines.
//! - [`Timeline`] says when a channel is blocked, whatever is sent over it.
//! - [`Line`] is one direction: rate, propagation delay and errors. [`Channel`] is a pair of them.
//! - [`path`] is what else happens on the way: delays that change, jitter, packets that are too long, policing.
//! - [`dama`] is bandwidth on demand: a MAC buffer, requests, and slots that are granted; [`Encapsulation`] what fits into a slot.
//! - [`capacity`] is the physical bound that any scheme is compared with.

#![forbid(unsafe_code)]

pub mod capacity;
pub mod dama;
pub mod duplex;
pub mod encapsulation;
pub mod line;
pub mod model;
pub mod path;
pub mod process;
pub mod timeline;

pub use duplex::Channel;
pub use encapsulation::Encapsulation;
pub use line::{End, Line, RateChange, Transit};
pub use model::{ErrorModel, Streams};
pub use process::{ErrorProcess, Fate};
pub use timeline::Timeline;
