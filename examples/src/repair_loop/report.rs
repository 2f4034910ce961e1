//! What came of a file, for people and for machines.

use std::fmt::{self, Write};

use serde::Serialize;
use serde_json::{Value, json};

use crate::repair::{Paint, shown, unified};

use super::state::{Repair, Tried};

/// How a file stands at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It ran from the start.
    Runs,
    /// It runs since it was repaired.
    Fixed,
    /// It could not be repaired.
    NotFixed,
    /// It is repaired, but could not be written back.
    NotWritten,
    /// It was not reached.
    NotStarted,
    /// It is no script that can be read.
    Unreadable,
    /// It needs an approval that nobody can give.
    NotAsked,
    /// It was interrupted.
    Stopped,
}

impl Standing {
    /// The exit code of a program with this one file.
    pub fn code(self) -> u8 {
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

/// What came of one file.
#[derive(Clone, Debug)]
pub struct FileReport {
    /// The file, as it was named.
    pub name: String,
    /// How it stands.
    pub standing: Standing,
    /// More about that.
    pub why: Option<String>,
    /// What the repair came to know.
    pub repair: Repair,
    /// Whether the user's file was replaced.
    pub written: bool,
}

impl FileReport {
    /// A report of a repair.
    pub fn new(repair: Repair, standing: Standing, why: Option<String>) -> Self {
        let name = repair.name.clone();
        Self { name, standing, why, repair, written: false }
    }

    /// A report of a file that no repair was begun for.
    pub fn bare(name: impl Into<String>, standing: Standing, why: Option<String>) -> Self {
        Self::new(Repair { name: name.into(), ..Repair::default() }, standing, why)
    }

    /// How many repairs the copy has.
    pub fn applied(&self) -> usize {
        self.repair.tried.iter().filter(|tried| tried.fate.is_accepted()).count()
    }

    /// The report as one JSON object.
    pub fn to_json(&self) -> Value {
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

    /// The report in words: what was tried, the outcome, the diff.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.tell(&mut text);
        text
    }

    fn tell(&self, out: &mut String) -> fmt::Result {
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
