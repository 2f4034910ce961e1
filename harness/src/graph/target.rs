use std::panic::Location;

/// Where a signal leads. Created by [`to`], [`end`] and [`end_with`]. `E` is what the loop ends with:
/// nothing, or a signal if the loop is nested and `#[step(ends = ..)]` says so.
#[derive(Clone, Debug)]
#[must_use = "a target has no effect until a route returns it"]
pub struct Target<St, E = ()> {
    pub(crate) to: To<St, E>,
    pub(crate) at: &'static Location<'static>,
}

#[derive(Clone, Debug)]
pub(crate) enum To<St, E> {
    Step(St),
    End(E),
}

impl<St, E> Target<St, E> {
    pub(crate) fn map<T, F>(
        self,
        step: impl FnOnce(St) -> T,
        end: impl FnOnce(E) -> F,
    ) -> Target<T, F> {
        let to = match self.to {
            To::Step(to) => To::Step(step(to)),
            To::End(with) => To::End(end(with)),
        };
        Target { to, at: self.at }
    }
}

/// Leads to `step`.
#[track_caller]
pub fn to<St, E>(step: St) -> Target<St, E> {
    Target { to: To::Step(step), at: Location::caller() }
}

/// Ends the turn, or the loop if that is nested.
#[track_caller]
pub fn end<St>() -> Target<St> {
    Target { to: To::End(()), at: Location::caller() }
}

/// Ends a nested loop with a signal, by which the loop around it continues: see
/// [`Define::nest`](crate::Define::nest).
#[track_caller]
pub fn end_with<St, E>(signal: E) -> Target<St, E> {
    Target { to: To::End(signal), at: Location::caller() }
}
