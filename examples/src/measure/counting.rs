use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

// By thread, so that counting costs no more than an addition.
thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

/// Bytes that are allocated and not freed, over all threads, while [`WATCHED`].
static LIVE: AtomicI64 = AtomicI64::new(0);
static WATCHED: AtomicBool = AtomicBool::new(false);

/// The system's allocator, counting this thread's calls and, if asked to, the live bytes.
#[derive(Debug)]
pub struct Counting;

/// This thread's allocations so far.
pub(crate) fn calls() -> u64 {
    CALLS.get()
}

/// Starts or stops counting live bytes; gives their count.
pub(crate) fn watch(on: bool) -> i64 {
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
