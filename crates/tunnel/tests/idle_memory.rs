//! What a tunnel that carries nothing costs in memory, as it is allocated.

#[allow(dead_code, reason = "the star has more to it than this test asks for")]
mod star;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};

use base::Duration;
use star::Star;

/// Counts what is allocated and not yet given back.
struct Counting;

static ALLOCATED: AtomicIsize = AtomicIsize::new(0);

// SAFETY: all work is the system's; a counter is kept beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller keeps to the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller keeps to the contract.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Ten thousand of them are to fit in a small machine: the session, timers, queues and windows of a peer that is connected.
#[test]
fn an_idle_peer_takes_little() {
    const PEERS: usize = 100;
    const MOST: isize = 32_000;
    let mut star = Star::new(PEERS, "rate = \"max\"", None);
    star.pass(Duration::from_secs(40));
    assert!((1..=PEERS).all(|end| star.is_connected(end)));
    let empty = Star::new(0, "rate = \"max\"", None);
    let mut before = ALLOCATED.load(Ordering::Relaxed);
    drop(empty);
    let shared = before - ALLOCATED.load(Ordering::Relaxed);
    let hub = star.take_hub();
    before = ALLOCATED.load(Ordering::Relaxed);
    drop(hub);
    let each = (before - ALLOCATED.load(Ordering::Relaxed) - shared) / PEERS as isize;
    assert!((5_000..MOST).contains(&each), "{each} bytes");
}
