use std::any::Any;
use std::sync::Arc;

use super::scope::Spare;

/// The handle `spare` by its type, if it is one to what `known` is a handle to.
///
/// A downcast would do, too. It compares two numbers of 128 bits that were just put together from
/// halves, which keeps a processor waiting: twice in a step, that was an eighth of its time.
#[inline]
#[allow(unsafe_code, reason = "a downcast takes an eighth of the time of a step")]
pub(crate) fn same<T: Any + Send + Sync>(spare: Spare, known: &Arc<T>) -> Option<Arc<T>> {
    if !std::ptr::addr_eq(Arc::as_ptr(&spare), Arc::as_ptr(known)) {
        return None;
    }
    // SAFETY: both handles are alive and point to the same place, so they are handles to one
    // allocation: each allocation of an `Arc` holds counts before its value, so that no value of
    // another one, even of size zero, lies where this one does. What the allocation holds is a `T`,
    // as the type of `known` says. The pointer comes from `Arc::into_raw`, is given back to
    // `Arc::from_raw` once, and only forgets the table that made it a `dyn Any`.
    Some(unsafe { Arc::from_raw(Arc::into_raw(spare).cast::<T>()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_handle_to_the_same_value_is_taken() {
        let known = Arc::new(7_u32);
        let taken = same(Arc::clone(&known) as Spare, &known);
        assert!(taken.is_some_and(|taken| Arc::ptr_eq(&taken, &known)));
        assert!(same(Arc::new(7_u32), &known).is_none());
        assert!(same(Arc::new("seven"), &known).is_none());
        assert_eq!(Arc::strong_count(&known), 1);
    }

    #[test]
    fn values_of_size_zero_are_told_apart() {
        let (one, other) = (Arc::new(()), Arc::new(()));
        assert!(same(Arc::clone(&one) as Spare, &other).is_none());
        assert!(same(Arc::clone(&one) as Spare, &one).is_some());
    }
}
