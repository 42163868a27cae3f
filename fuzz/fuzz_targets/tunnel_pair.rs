//! Two whole tunnels, over lines of which the input decides what they lose, repeat, delay, damage and shorten.
//!
//! The rules are those of the tunnel crate's test: nothing panics, deadlines pass, queues are bounded, packets arrive whole, and once the lines
//! are clear the ends find each other.

#![no_main]

// The name by which the tunnel crate's own tests call it.
extern crate tunnel as longhaul_tunnel;

#[allow(dead_code)]
#[path = "../../crates/tunnel/tests/between/mod.rs"]
mod between;

use base::Duration;
use between::{Pair, SETUPS};
use libfuzzer_sys::fuzz_target;

/// Steps of a run, so that an input takes but a fraction of a second.
const LONGEST: usize = 200;

fuzz_target!(|bytes: &[u8]| {
    let Some((&first, rest)) = bytes.split_first() else { return };
    let mut pair = Pair::new(SETUPS[usize::from(first) % SETUPS.len()]);
    rest.as_chunks().0.iter().take(LONGEST).for_each(|step| pair.step(*step));
    pair.recovers(Duration::from_secs(60));
});
