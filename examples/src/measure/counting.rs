use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

// By thread, so that counting costs no more than an addition: the cases run on one thread.
thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, counting this thread's calls and bytes.
#[derive(Debug)]
pub struct Counting;

/// This thread's allocations and bytes so far.
pub(crate) fn counted() -> (u64, u64) {
    (CALLS.get(), BYTES.get())
}

fn count(size: usize) {
    CALLS.set(CALLS.get() + 1);
    BYTES.set(BYTES.get() + size as u64);
}

// SAFETY: an allocator cannot be counted without implementing this unsafe trait. Every method
// hands its arguments unchanged to the system's allocator, whose contract is the caller's.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size.saturating_sub(layout.size()));
        unsafe { System.realloc(memory, layout, size) }
    }
}
