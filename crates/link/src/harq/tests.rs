//! Two ends of hybrid FEC/ARQ, and the line between them: frames of up to 100 bytes 1 ms each.

mod carrying;
mod hostile;
mod repeating;
mod residual;

use std::collections::VecDeque;

use base::{Duration, Instant, Packet, Rng};

use super::*;
use crate::arq::tests::pair::{LINE, MS, Pair, fated, flow_and_number, intact, packet};

fn pair(config: Config, delay: usize) -> Pair<Harq> {
    Pair::new(|| Harq::new(config, &LINE), delay)
}

fn config(text: &str) -> Config {
    base::config::parse("link.toml", text).unwrap()
}

/// The numbers of packets, in the order in which they arrived.
fn numbers(arrived: &[(Instant, Packet)]) -> Vec<u32> {
    arrived.iter().map(|(_, packet)| flow_and_number(packet).1).collect()
}

fn lose(line: &mut VecDeque<Option<Vec<u8>>>) {
    line.pop_back();
    line.push_back(None);
}

/// The latest frame on a line, if it is a fragment.
fn latest(line: &VecDeque<Option<Vec<u8>>>) -> Option<Header> {
    match Piece::parse(line.back()?.as_ref()?) {
        Ok(Piece::Fragment(header, _)) => Some(header),
        _ => None,
    }
}

/// Loses all fragments of these transmissions from the first end: a block's number and which of its transmissions, from 1.
fn losing(lost: &[(u32, usize)]) -> impl FnMut(usize, &mut VecDeque<Option<Vec<u8>>>) {
    let mut sent: Vec<(u32, u32)> = Vec::new();
    move |side, line| {
        if side == 0
            && let Some(Header { number, transmission: Some(Transmission { serial, .. }), .. }) = latest(line)
        {
            if !sent.contains(&(number, serial)) {
                sent.push((number, serial));
            }
            let serials = sent.iter().filter(|(block, _)| *block == number);
            let count = serials.take_while(|(_, other)| *other != serial).count() + 1;
            if lost.contains(&(number, count)) {
                lose(line);
            }
        }
    }
}
