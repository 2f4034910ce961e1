//! A run as one future.
//!
//! Most of its life a run waits for a step, and that is what it keeps room for: the driver goes
//! from step to step in place. Whatever else there is to do is a future of its own, made when it is
//! due, which has the driver meanwhile.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll, ready};

use tracing::Span;

use crate::context::Context;
use crate::graph::Program;
use crate::state::State;
use crate::step::BoxFuture;

use super::RunError;
use super::advance::Pause;
use super::brakes::Brakes;
use super::driver::Driver;
use super::outcome::Outcome;
use super::settle::Settlement;

/// The driver, back from what it had to do, and how the run settled, if it did.
pub(super) type Back<C, S> = (Box<Driver<C, S>>, Option<Box<Settlement<S>>>);

/// A run at work, until it settles and is `told` as an outcome.
pub(crate) struct Running<C: Context, S: State, T> {
    /// None while something `aside` has it, and after the end.
    driver: Option<Box<Driver<C, S>>>,
    aside: Option<BoxFuture<Back<C, S>>>,
    program: Arc<Program<C, S>>,
    /// None where nobody traces.
    span: Option<Box<Span>>,
    told: Option<T>,
    begun: bool,
}

impl<C: Context, S: State, T> Running<C, S, T> {
    pub(crate) fn new(driver: Box<Driver<C, S>>, span: Span, told: T) -> Self {
        let program = Arc::clone(&driver.program);
        let span = (!span.is_disabled()).then(|| Box::new(span));
        Self { driver: Some(driver), aside: None, program, span, told: Some(told), begun: false }
    }

    /// Goes on until the run settles.
    fn advance(&mut self, task: &mut Task<'_>) -> Poll<Option<(Box<Settlement<S>>, Brakes)>> {
        let _span = self.span.as_ref().map(|span| span.enter());
        loop {
            if let Some(aside) = &mut self.aside {
                let (driver, settlement) = ready!(aside.as_mut().poll(task));
                self.aside = None;
                if let Some(settlement) = settlement {
                    // The driver is dropped before anyone hears of the outcome.
                    return Poll::Ready(Some((settlement, driver.core.brakes.clone())));
                }
                self.driver = Some(driver);
            }
            let Some(driver) = &mut self.driver else { return Poll::Ready(None) };
            if !self.begun {
                self.begun = true;
                driver.begin();
            }
            let pause = ready!(driver.go(&self.program, task));
            let Some(mut driver) = self.driver.take() else { return Poll::Ready(None) };
            if let Pause::Ended(branch) = pause {
                let settlement = driver.end_here(&self.program.graph.wiring, branch);
                return Poll::Ready(Some((settlement, driver.core.brakes.clone())));
            }
            self.aside = Some(driver.turn_aside(pause));
        }
    }
}

// Nothing in it is pinned in place: what has to be is in a box.
impl<C: Context, S: State, T> Unpin for Running<C, S, T> {}

impl<C, S, T> Future for Running<C, S, T>
where
    C: Context,
    S: State,
    T: FnOnce(Box<Settlement<S>>, &Brakes) -> Outcome<S>,
{
    type Output = Result<Outcome<S>, RunError>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<Self::Output> {
        let settled = ready!(self.advance(task));
        match settled.zip(self.told.take()) {
            Some(((settlement, brakes), told)) => Poll::Ready(Ok(told(settlement, &brakes))),
            // It has been told before.
            None => Poll::Pending,
        }
    }
}

impl<C: Context, S: State, T> Drop for Running<C, S, T> {
    fn drop(&mut self) {
        let _span = self.span.as_ref().map(|span| span.enter());
        drop(self.aside.take());
        drop(self.driver.take());
    }
}

#[cfg(test)]
mod tests {
    use std::mem::size_of;

    use crate::prelude::*;

    use super::*;
    use crate::run::RunCore;

    #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
    struct Nothing {}

    /// Ten thousand runs that wait are ten thousand times this.
    #[test]
    fn a_live_run_is_small() {
        let running = size_of::<Running<(), Nothing, usize>>();
        let (driver, core) = (size_of::<Driver<(), Nothing>>(), size_of::<RunCore>());
        assert!(running <= 64, "a run takes {running} bytes");
        assert!(driver <= 416, "its driver takes {driver} bytes");
        assert!(core <= 200, "what it shares with its steps takes {core} bytes");
    }
}
