//! The report of one file, as text and as JSON.

use std::fmt::{self, Write};

use examples::shown;
use serde::Serialize;
use serde_json::{Value, json};

use super::engine::{Paint, unified};
use super::state::{Repair, Tried};

/// The outcome for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Standing {
    /// It runs without a repair.
    Runs,
    /// It runs after a repair.
    Fixed,
    /// It could not be repaired.
    NotFixed,
    /// It is repaired, but was not written back.
    NotWritten,
    /// It was not reached.
    NotStarted,
    /// It cannot be read.
    Unreadable,
    /// It needs an approval, and there is no terminal to ask at.
    NotAsked,
    /// It was interrupted.
    Stopped,
}

impl Standing {
    /// The exit code of a program with this one file.
    pub(crate) fn code(self) -> u8 {
        match self {
            Standing::Runs | Standing::Fixed => 0,
            Standing::NotFixed | Standing::NotWritten | Standing::NotStarted => 1,
            Standing::Unreadable => 2,
            Standing::NotAsked => 3,
            Standing::Stopped => 130,
        }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Standing::Runs => "runs as it is",
            Standing::Fixed => "fixed",
            Standing::NotFixed => "not fixed",
            Standing::NotWritten => "fixed, but not written",
            Standing::NotStarted => "not started",
            Standing::Unreadable => "not read",
            Standing::NotAsked => "needs an approval",
            Standing::Stopped => "stopped",
        })
    }
}

/// The report of one file.
#[derive(Clone, Debug)]
pub(crate) struct FileReport {
    /// The file's name on the command line.
    pub(crate) name: String,
    /// The outcome.
    pub(crate) standing: Standing,
    /// The reason.
    pub(crate) why: Option<String>,
    /// The final state of the repair.
    pub(crate) repair: Repair,
    /// Whether the user's file was replaced.
    pub(crate) written: bool,
}

impl FileReport {
    /// A report of a repair.
    pub(crate) fn new(repair: Repair, standing: Standing, why: Option<String>) -> Self {
        let name = repair.name.clone();
        Self { name, standing, why, repair, written: false }
    }

    /// A report of a file that was not repaired at all.
    pub(crate) fn bare(name: impl Into<String>, standing: Standing, why: Option<String>) -> Self {
        Self::new(Repair { name: name.into(), ..Repair::default() }, standing, why)
    }

    /// How many repairs the copy has.
    pub(crate) fn applied(&self) -> usize {
        self.repair.tried.iter().filter(|tried| tried.fate.is_accepted()).count()
    }

    /// The report as one JSON object.
    pub(crate) fn to_json(&self) -> Value {
        let Repair { tried, rounds, ran, .. } = &self.repair;
        json!({
            "name": self.name,
            "outcome": self.standing,
            "why": self.why,
            "tried": tried.iter().map(tried_json).collect::<Vec<_>>(),
            "rounds": rounds,
            "diff": self.diff(Paint::Plain),
            "output": ran.as_ref().map(|ran| &ran.stdout),
            "written": self.written,
        })
    }

    /// The report as text: the outcome, the repairs that were tried, the diff.
    pub(crate) fn to_text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write_to(&mut text);
        text
    }

    fn write_to(&self, out: &mut String) -> fmt::Result {
        write!(out, "{}: {}", shown(&self.name), self.standing)?;
        if let Some(why) = &self.why {
            write!(out, ": {}", shown(why))?;
        }
        writeln!(out)?;
        for Tried { rule, line, explanation, fate, .. } in &self.repair.tried {
            let mark = if fate.is_accepted() { '+' } else { '-' };
            let (explanation, fate) = (shown(explanation), shown(&fate.to_string()));
            writeln!(out, "  {mark} line {line}, {rule}: {explanation} ({fate})")?;
        }
        out.push_str(&self.diff(Paint::Coloured));
        Ok(())
    }

    fn diff(&self, paint: Paint) -> String {
        unified(&self.name, &self.repair.original, &self.repair.copy, paint)
    }
}

fn tried_json(tried: &Tried) -> Value {
    json!({
        "rule": tried.rule,
        "line": tried.line,
        "explanation": tried.explanation,
        "accepted": tried.fate.is_accepted(),
        "fate": tried.fate,
        "note": tried.fate.to_string(),
    })
}
