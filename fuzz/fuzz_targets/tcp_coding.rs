//! Two hosts with Loss-Tolerant TCP's code and somebody between who changes, strips and forges what segments say of blocks: the
//! streams come whole, in bounded memory.

#![no_main]

extern crate tcp as longhaul_tcp;

#[path = "../../crates/tcp/tests/coded/hostile.rs"]
mod hostile;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| hostile::run(bytes));
