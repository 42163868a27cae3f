//! Two ends of SLACP, and the line between them: frames of up to 100 bytes 1 ms each.

mod carrying;
mod repairing;

use std::collections::VecDeque;

use base::{Duration, Instant, Packet};

use super::*;
use crate::arq::Order;
use crate::arq::tests::pair::{LINE, MS, Pair, fated, flow_and_number, intact, packet};

fn pair(config: Config, delay: usize) -> Pair<Slacp> {
    Pair::new(|| Slacp::new(config, &LINE), delay)
}

fn config(text: &str) -> Config {
    base::config::parse("link.toml", text).unwrap()
}

/// Loses frames of the first end: of class 001 those whose number and whose count of transmissions, from 1, are in the list.
fn losing(transmissions: &[(u32, usize)]) -> impl FnMut(usize, &mut VecDeque<Option<Vec<u8>>>) {
    let mut sent = Vec::new();
    move |side, line| {
        if side == 0
            && let Some(latest) = line.back_mut()
            && let Some(bytes) = latest
            && let Ok(Frame { class: Class::Reliable, sequence, .. }) = Frame::parse(bytes)
        {
            sent.push(sequence);
            let count = sent.iter().filter(|other| **other == sequence).count();
            if transmissions.contains(&(sequence, count)) {
                *latest = None;
            }
        }
    }
}

/// The numbers of packets, in the order in which they arrived.
fn numbers(arrived: &[(Instant, Packet)]) -> Vec<u32> {
    arrived.iter().map(|(_, packet)| flow_and_number(packet).1).collect()
}
