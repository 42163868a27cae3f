//! Our TCP on a TUN device against the kernel's TCP: both roles, both directions, a bad path between them, and ends
//! that close in order or abruptly.
//!
//! These tests need root, network namespaces, TUN and `ip`. Where something is missing they say so and pass, unless
//! `LONGHAUL_REQUIRE_ROOT=1`, as in CI: then they fail. Every case follows from `LONGHAUL_SEED` (1 unless told) and its
//! number; a failing case prints the command that runs it alone.

mod kernel {
    pub(crate) mod case;
    pub(crate) mod ours;
    pub(crate) mod peer;
    pub(crate) mod place;
}
mod requirements;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use kernel::case::{Case, Cut};
use kernel::{ours, place};
use requirements::skipped;

/// How many transfers there are.
const CASES: u32 = 100;
/// How many run at once: they mostly wait.
const AT_ONCE: usize = 25;

/// What one side saw of a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) received: Vec<u8>,
    pub(crate) end: Ended,
}

/// How a connection ended for one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Both sides finished.
    InOrder,
    /// This side cut it off.
    Aborted,
    /// The peer cut it off.
    Reset,
    /// Something else.
    Otherwise(String),
}

#[test]
fn a_hundred_transfers_with_the_kernel_arrive_intact() {
    let name = "a_hundred_transfers_with_the_kernel_arrive_intact";
    if skipped(name, place::missing()) {
        return;
    }
    let seed = number("LONGHAUL_SEED").unwrap_or(1);
    let only = number("LONGHAUL_CASE");
    println!("seed {seed}");
    let (first, end) = only.map_or((0, CASES), |case| (case as u32, case as u32 + 1));
    let next = AtomicU32::new(first);
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min((end - first) as usize) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= end {
                        return;
                    }
                    let case = Case::draw(seed, number);
                    if let Err(complaint) = check(&case) {
                        failures.lock().unwrap().push(format!(
                            "case {number}: {complaint}\n  {case:?}\n  \
                             LONGHAUL_SEED={seed} LONGHAUL_CASE={number} cargo test -p longhaul --test kernel {name}"
                        ));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} of {} failed\n{}", failures.len(), end - first, failures.join("\n"));
}

fn number(variable: &str) -> Option<u64> {
    let value = std::env::var(variable).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{variable}={value} is no number")))
}

/// Runs the case and compares what both sides saw with what must be.
fn check(case: &Case) -> Result<(), String> {
    let [ours, kernels] = ours::run(case)?;
    let expected = match case.cut {
        None => [Ended::InOrder, Ended::InOrder],
        Some(Cut::ByUs(_)) => [Ended::Aborted, Ended::Reset],
        Some(Cut::ByKernel(_)) => [Ended::Reset, Ended::Aborted],
    };
    for (who, seen, sent, end) in
        [("we", ours, &case.from_kernel, &expected[0]), ("the kernel", kernels, &case.from_us, &expected[1])]
    {
        if seen.end != *end {
            return Err(format!("{who} ended {:?} instead of {end:?}", seen.end));
        }
        if !sent.starts_with(&seen.received) {
            let at = seen.received.iter().zip(sent.iter()).take_while(|(a, b)| a == b).count();
            return Err(format!("{who} received wrong bytes from {at} of {}", seen.received.len()));
        }
        if case.cut.is_none() && seen.received.len() != sent.len() {
            return Err(format!("{who} received {} of {} bytes", seen.received.len(), sent.len()));
        }
    }
    Ok(())
}
