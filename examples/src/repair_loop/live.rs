//! What is seen while a repair works.

use std::io::{IsTerminal, Write, stderr};

use harness::observe::{EventKind, Observer, from_fn};

use crate::repair::shown;

/// An observer that tells on standard error what a repair is at; silent where
/// that is no terminal.
pub(super) fn live(file: &str) -> impl Observer + use<> {
    let file = shown(file);
    let watched = stderr().is_terminal();
    from_fn(move |event| {
        if watched
            && let (EventKind::StepStarted, Some(step)) = (&event.kind, &event.step)
            && let Some(words) = words(step)
        {
            // Nothing is lost with a line nobody can see.
            let _ = writeln!(stderr(), "{file}: {words}");
        }
    })
}

fn words(step: &str) -> Option<&'static str> {
    match step {
        "Run" => Some("running it"),
        "Propose" => Some("looking for a repair"),
        "Apply" => Some("applying the repair to the copy"),
        "TakeBack" => Some("taking the repair back"),
        _ => None,
    }
}
