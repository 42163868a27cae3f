//! Two ends of coded ARQ, and the line between them.

mod blocking;
mod carrying;
mod classes;
mod hostile;

use std::collections::VecDeque;

use base::{Instant, Packet};

use super::*;
use crate::arq::Order;
use crate::arq::tests::pair::{LINE, MS, Pair, fated, flow_and_number, intact, packet};

/// One class alone: that of packets which are sent until they have come.
fn class(config: Config) -> Class {
    Class::new(config, KINDS[place(Treatment::Reliable, false)], &LINE)
}

fn pair(config: Config, delay: usize) -> Pair<Class> {
    Pair::new(|| class(config), delay)
}
