//! An allocator that counts the bytes that each thread holds, so that tests do not count for each other.

#![allow(unsafe_code)] // An allocator cannot be had without.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Where the count begins: a thread may give back what another one asked for, and it must not fall below zero.
const START: usize = 1 << 40;

thread_local! {
    static LIVE: Cell<usize> = const { Cell::new(START) };
    static PEAK: Cell<usize> = const { Cell::new(START) };
}

/// Bytes that this thread holds now, as they were asked for.
pub(crate) fn live() -> usize {
    LIVE.get()
}

/// The most that this thread held at once since the last call of this function.
#[allow(dead_code, reason = "each test uses a part")]
pub(crate) fn take_peak() -> usize {
    PEAK.replace(live())
}

fn grow(bytes: usize) {
    // Err only while the thread ends.
    let _ = LIVE.try_with(|live| {
        live.set(live.get().wrapping_add(bytes));
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(live.get())));
    });
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let _ = LIVE.try_with(|live| live.set(live.get().wrapping_sub(layout.size())));
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}
