//! What a tunnel that carries nothing costs in memory, as it is allocated.

extern crate longhaul_tunnel as tunnel;

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

#[test]
fn an_idle_peer_takes_little() {
    let config = {
        let star = Star::new(0, "rate = \"max\"", None);
        star.member(star::key(1).public(), star::network(1), 1, None).config
    };
    let count = |what: &str, make: &mut dyn FnMut() -> Box<dyn core::any::Any>| {
        let before = ALLOCATED.load(Ordering::Relaxed);
        let made = make();
        println!("{what}: {} bytes", ALLOCATED.load(Ordering::Relaxed) - before);
        drop(made);
    };
    count("endpoint", &mut || Box::new(config.link.protocol.build(&config.first_line())));
    count("survey", &mut || Box::new(tunnel::survey::Survey::of(&config)));
    println!("size of a tunnel {}", size_of::<tunnel::Tunnel>());
    println!(
        "session {} survey {}",
        size_of::<tunnel::session::Session>(),
        size_of::<tunnel::survey::Survey>()
    );
    let mut star = Star::new(100, "rate = \"max\"", None);
    let before = ALLOCATED.load(Ordering::Relaxed);
    let hub = star.ends.remove(0);
    drop(hub);
    println!("new: {}", (before - ALLOCATED.load(Ordering::Relaxed)) / 100);
    let mut star = Star::new(100, "rate = \"max\"", None);
    star.pass(Duration::from_secs(40));
    let before = ALLOCATED.load(Ordering::Relaxed);
    let hub = star.ends.remove(0);
    drop(hub);
    println!("connected: {}", (before - ALLOCATED.load(Ordering::Relaxed)) / 100);
}
