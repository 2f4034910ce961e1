//! What the setters of an update take.

/// A value for a field of type `Option<T>`: `Some(value)`, `None`, or the value itself. A text is
/// taken as `&str` too.
#[diagnostic::on_unimplemented(
    message = "a field of type `Option<{T}>` does not take `{Self}`",
    label = "expected `{T}`, `Some(..)` or `None`",
    note = "convert it to `{T}` first"
)]
pub trait IntoOption<T> {
    #[doc(hidden)]
    fn into_option(self) -> Option<T>;
}

impl<T> IntoOption<T> for T {
    fn into_option(self) -> Option<T> {
        Some(self)
    }
}

impl<T> IntoOption<T> for Option<T> {
    fn into_option(self) -> Option<T> {
        self
    }
}

#[diagnostic::do_not_recommend]
impl IntoOption<String> for &str {
    fn into_option(self) -> Option<String> {
        Some(self.to_owned())
    }
}

/// Several items of type `T`: an array, a `Vec`, an iterator.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not give items of type `{T}`",
    label = "expected several `{T}`, for example `[item]`",
    note = "write one item as `[item]`, and convert items of another type to `{T}`"
)]
pub trait Items<T> {
    #[doc(hidden)]
    fn into_items(self) -> impl Iterator<Item = T>;
}

#[diagnostic::do_not_recommend]
impl<T, I: IntoIterator<Item = T>> Items<T> for I {
    fn into_items(self) -> impl Iterator<Item = T> {
        self.into_iter()
    }
}
