//! Two parts of a scan at the same time.

use std::panic::resume_unwind;
use std::thread::{Builder, scope};

/// The stack of the thread beside, in bytes: as much as a program has where it starts. It is only
/// taken as far as it is used.
const STACK: usize = 8 << 20;

/// The stack for a tree that may be deep, in bytes. It too is only taken as far as it is used.
const ROOM: usize = 512 << 20;

/// Does what needs a large stack. None if it could not be done.
pub(super) fn roomy<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    scope(|scope| {
        let builder = Builder::new().name("scan".to_owned()).stack_size(ROOM);
        builder.spawn_scoped(scope, work).ok()?.join().ok()
    })
}

/// Runs both, `there` on a thread of its own. Where there is no thread to be had it runs after
/// `here`. A panic of either goes on to the caller.
pub(super) fn both<H, T: Send>(here: impl FnOnce() -> H, there: impl Fn() -> T + Sync) -> (H, T) {
    with_stack(STACK, here, there)
}

fn with_stack<H, T: Send>(
    stack: usize,
    here: impl FnOnce() -> H,
    there: impl Fn() -> T + Sync,
) -> (H, T) {
    scope(|scope| {
        let builder = Builder::new().name("scan".to_owned()).stack_size(stack);
        match builder.spawn_scoped(scope, &there) {
            Ok(thread) => {
                let here = here();
                (here, thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
            }
            Err(_) => (here(), there()),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread::current;

    use super::{both, with_stack};

    #[test]
    fn both_run_at_the_same_time() {
        let met = Barrier::new(2);
        let here = || (met.wait().is_leader(), current().id());
        let (here, there) = both(here, || (met.wait().is_leader(), current().id()));
        assert!(here.0 != there.0 && here.1 != there.1);
    }

    #[test]
    fn both_run_where_no_thread_is_to_be_had() {
        let here = current().id();
        assert_eq!(with_stack(usize::MAX >> 2, || current().id(), || current().id()), (here, here));
    }

    #[test]
    fn a_panic_goes_on() {
        let caught = std::panic::catch_unwind(|| both(|| 1, || panic!("beside")));
        assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"beside"));
        let caught = std::panic::catch_unwind(|| both(|| panic!("here"), || 1));
        assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"here"));
    }
}
