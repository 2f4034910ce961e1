//! `esg plan`.
use std::path::Path;

use super::{Result, program};

pub(super) fn plan(file: &Path) -> Result<u8> {
    let program = program(file)?;
    for step in program.steps() {
        println!("{}", step.id);
    }
    Ok(0)
}
