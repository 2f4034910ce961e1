//! An allocator that counts: this thread's allocations, and the live bytes of all threads.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use super::Figure;

// Per thread, so that counting costs one addition.
thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

/// Bytes that are allocated and not freed, over all threads, while [`WATCHED`].
static LIVE: AtomicI64 = AtomicI64::new(0);
static WATCHED: AtomicBool = AtomicBool::new(false);

/// The system's allocator, with counters.
#[derive(Debug)]
pub(super) struct Counting;

/// This thread's allocations so far.
fn calls() -> u64 {
    CALLS.get()
}

/// Allocations of one step: what a run of 20,000 steps makes beyond a run of 10,000.
pub(super) fn compare(case: &str, ours: impl Fn(u64), floor: impl Fn(u64)) -> Figure {
    let (ours, floor) = (per_step(ours), per_step(floor));
    let case = case.to_owned();
    Figure { case, ours, floor, unit: "allocations/step", ratio: ours / floor }
}

fn per_step(run: impl Fn(u64)) -> f64 {
    let calls = |steps| {
        let before = calls();
        run(steps);
        calls() - before
    };
    calls(20_000);
    (calls(20_000) as f64 - calls(10_000) as f64) / 10_000.0
}

/// Starts or stops counting live bytes; returns their count.
pub(super) fn watch(on: bool) -> i64 {
    WATCHED.store(on, Ordering::SeqCst);
    LIVE.load(Ordering::SeqCst)
}

fn count(bytes: i64) {
    CALLS.set(CALLS.get() + u64::from(bytes > 0));
    if WATCHED.load(Ordering::Relaxed) {
        LIVE.fetch_add(bytes, Ordering::Relaxed);
    }
}

// SAFETY: an allocator cannot be counted without implementing this unsafe trait. Every method
// hands its arguments unchanged to the system's allocator, whose contract is the caller's.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as i64 - layout.size() as i64);
        unsafe { System.realloc(memory, layout, size) }
    }
}
