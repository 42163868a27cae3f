//! Two ends of coded ARQ, and the line between them.

mod blocking;
mod carrying;
mod hostile;

use std::collections::VecDeque;

use base::{Instant, Packet};

use super::*;
use crate::arq::Order;
use crate::arq::pair::{LINE, MS, Pair, fated, flow_and_number, intact, packet};

fn pair(config: Config, delay: usize) -> Pair<Coded> {
    Pair::new(|| Coded::new(config, &LINE), delay)
}
