//! Two ends of wide COTMLL, and the line between them.

mod carrying;
mod copying;
mod hostile;
mod ordering;
mod reporting;

use std::collections::VecDeque;

use base::{Duration, Instant, Packet, Rate};

use super::*;
use crate::arq::frame::{Class, Frame, Part, Progress, push_varint};
use crate::arq::sequence::SPACE;
use crate::arq::tests::pair::{LINE, MS, Pair, fated, flow_and_number, intact, packet};
use crate::arq::{MAX_WINDOW, Order, Receiver, TRAILER_LEN};
use crate::ready::Ready;

fn pair(config: Config, delay: usize) -> Pair<Wide> {
    Pair::new(|| Wide::new(config, &LINE), delay)
}
