//! Handshakes of two sessions with an attacker between them, who does what the bytes say.

#![no_main]

// The name by which the tunnel crate's own tests call it.
extern crate tunnel as longhaul_tunnel;

#[path = "../../crates/tunnel/tests/attack/mod.rs"]
mod attack;

use attack::World;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((&first, rest)) = bytes.split_first() else { return };
    let mut world = World::new(first & 1 == 1);
    rest.as_chunks().0.iter().for_each(|step| world.step(*step));
    let mut luck = bytes.iter().cycle().zip(0_u16..);
    if first & 2 == 2 {
        world.recovers_under_fire(&mut || {
            let (byte, count) = luck.next().expect("it never ends");
            u16::from(*byte).wrapping_mul(257).wrapping_add(count.wrapping_mul(31))
        });
    }
    world.recovers();
});
