//! What the sandbox adds to the start of a process.
use std::process::{Command, Stdio};
use std::time::Instant;

use harness::esg::sandbox::{Launcher as _, Sandbox, Spec};

use super::python::{Result, or_failed};
use super::{Figure, rounds};

/// Milliseconds until a program that does nothing has ended, in the sandbox and without.
pub(super) fn sandboxes() -> Vec<Figure> {
    or_failed("esg-sandbox", figures())
}

fn figures() -> Result<Vec<Figure>> {
    let (program, sandbox) = ("/bin/true", Sandbox::find()?);
    let missing = sandbox.layers()?.missing();
    if let Some(status) = missing.first() {
        return Err(status.to_string().into());
    }
    let spec = Spec::new(program);
    let rounds = rounds(|| -> Result<(f64, f64)> {
        Ok((ended(sandbox.command(&spec)?)?, ended(Command::new(program))?))
    });
    let (mut ours, mut floor) = (f64::INFINITY, f64::INFINITY);
    for round in rounds {
        let round = round?;
        (ours, floor) = (ours.min(round.0), floor.min(round.1));
    }
    let case = "esg-sandbox".to_owned();
    Ok(vec![Figure { case, ours, floor, unit: "ms", ratio: ours / floor }])
}

fn ended(mut command: Command) -> Result<f64> {
    let begun = Instant::now();
    let status = command.env_clear().stdin(Stdio::null()).status()?;
    let took = begun.elapsed().as_secs_f64() * 1e3;
    status.success().then_some(took).ok_or_else(|| format!("the program {status}").into())
}
