//! Runs parts of a scan on other threads.

use std::panic::resume_unwind;
use std::thread::{Builder, Scope, scope};

/// The stack of the second thread in bytes, as large as that of a main thread. The system commits
/// only what is used.
const STACK: usize = 8 << 20;

/// The stack for trees and values that may be deep, in bytes. The system commits only what is used.
const ROOM: usize = 512 << 20;

/// Runs work that needs a large stack. `None` if it cannot run.
pub(crate) fn roomy<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    scope(|scope| {
        let builder = Builder::new().name("scan".to_owned()).stack_size(ROOM);
        builder.spawn_scoped(scope, work).ok()?.join().ok()
    })
}

/// Starts work on another thread. The returned function waits for the result, and panics if the
/// work did. If no thread is available, the work runs then.
pub(super) fn beside<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: &'scope (impl Fn() -> T + Sync),
) -> impl FnOnce() -> T {
    with_stack(STACK, scope, work)
}

fn with_stack<'scope, T: Send + 'scope>(
    stack: usize,
    scope: &'scope Scope<'scope, '_>,
    work: &'scope (impl Fn() -> T + Sync),
) -> impl FnOnce() -> T {
    let builder = Builder::new().name("scan".to_owned()).stack_size(stack);
    let thread = builder.spawn_scoped(scope, work);
    move || match thread {
        Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
        Err(_) => work(),
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;
    use std::sync::Barrier;
    use std::thread::{current, scope};

    use super::{beside, with_stack};

    #[test]
    fn work_is_done_at_the_same_time() {
        let met = Barrier::new(2);
        let work = || (met.wait().is_leader(), current().id());
        let (here, there) = scope(|scope| {
            let there = beside(scope, &work);
            (work(), there())
        });
        assert!(here.0 != there.0 && here.1 != there.1);
    }

    #[test]
    fn work_runs_without_a_thread_if_none_is_available() {
        let work = || current().id();
        let there = scope(|scope| with_stack(usize::MAX >> 2, scope, &work)());
        assert_eq!(there, current().id());
    }

    #[test]
    fn a_panic_propagates() {
        let work = || panic!("beside");
        let caught = catch_unwind(|| scope(|scope| beside(scope, &work)()));
        assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"beside"));
    }
}
