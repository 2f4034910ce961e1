use std::panic::Location;

/// Where a signal leads. Created by [`to`] and [`end`].
#[derive(Clone, Debug)]
#[must_use = "a target has no effect until a route returns it"]
pub struct Target<St> {
    pub(crate) step: Option<St>,
    pub(crate) at: &'static Location<'static>,
}

/// Leads to `step`.
#[track_caller]
pub fn to<St>(step: St) -> Target<St> {
    Target { step: Some(step), at: Location::caller() }
}

/// Ends the turn.
#[track_caller]
pub fn end<St>() -> Target<St> {
    Target { step: None, at: Location::caller() }
}
