//! The rooms of batches on their way into the store.

use std::cell::Cell;

use super::pending::Pending;

thread_local! {
    static LAST: Cell<Option<Box<Pending>>> = const { Cell::new(None) };
}

/// An empty room. A thread passes its last one on from session to session: of a thousand sessions with
/// a room each, none would find its own in the processor's cache.
pub(super) fn take() -> Box<Pending> {
    // A thread that ends has none any more.
    let last = LAST.try_with(Cell::take).ok().flatten();
    last.unwrap_or_else(|| Box::new(Pending::with_room()))
}

/// Takes a room back.
pub(super) fn give(mut room: Box<Pending>) {
    if room.is_small() {
        room.clear();
        let _ = LAST.try_with(|last| last.set(Some(room)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_is_passed_on_empty_unless_it_is_large() {
        let mut room = take();
        room.notices.push((1, Box::new(drop)));
        let at = &raw const *room;
        give(room);
        let mut room = take();
        assert!(std::ptr::eq(at, &raw const *room) && room.notices.is_empty());
        room.open.reserve(10_000);
        give(room);
        assert!(take().is_small());
    }
}
