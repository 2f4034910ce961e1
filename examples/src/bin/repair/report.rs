//! The report of one file, as text and as JSON.

use std::fmt::{self, Write};
use std::time::Duration;

use examples::shown;
use serde::Serialize;
use serde_json::{Value, json};

use super::diff::{Paint, unified};
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
        let Repair { tried, rounds, .. } = &self.repair;
        let runs = Runs::of(&self.repair);
        json!({
            "name": self.name,
            "outcome": self.standing,
            "why": self.why,
            "tried": tried.iter().map(tried_json).collect::<Vec<_>>(),
            "rounds": rounds,
            "diff": self.diff(Paint::Plain),
            "output": self.repair.output().0,
            "written": self.written,
            "runs": runs.count,
            "parts": runs.parts,
            "ran": runs.ran,
            "kept": runs.kept,
            "saved_ms": u64::try_from(runs.saved.as_millis()).unwrap_or(u64::MAX),
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
        for Tried { line, explanation, fate, .. } in &self.repair.tried {
            let mark = if fate.is_accepted() { '+' } else { '-' };
            let (explanation, fate) = (shown(explanation), shown(&fate.to_string()));
            writeln!(out, "  {mark} line {line}, {explanation} ({fate})")?;
        }
        let Runs { count, parts, ran, kept, saved } = Runs::of(&self.repair);
        if count > 1 {
            writeln!(
                out,
                "  {count} runs of {parts} parts: {ran} ran, {kept} kept ({saved:.1?} saved)"
            )?;
        }
        out.push_str(&self.diff(Paint::Coloured));
        Ok(())
    }

    fn diff(&self, paint: Paint) -> String {
        unified(&self.name, &self.repair.original, &self.repair.copy(), paint)
    }
}

/// What the runs of a program ran, and what they kept.
struct Runs {
    /// How many there were.
    count: usize,
    /// How many parts the program has, its tests among them.
    parts: usize,
    /// How many parts ran, in all runs.
    ran: usize,
    /// How many parts were kept, in all runs.
    kept: usize,
    /// How long those had taken.
    saved: Duration,
}

impl Runs {
    fn of(repair: &Repair) -> Self {
        let ledger = repair.code.ledger();
        let runs: Vec<_> = (1..).map_while(|run| Some((run, ledger.replayed(run)?))).collect();
        let kept = runs
            .iter()
            .flat_map(|(run, steps)| steps.iter().filter(move |execution| execution.run != *run));
        Self {
            count: runs.len(),
            parts: repair.code.program().len(),
            ran: ledger.executions().len(),
            kept: kept.clone().count(),
            saved: kept.map(|execution| execution.wall).sum(),
        }
    }
}

fn tried_json(tried: &Tried) -> Value {
    json!({
        "by": tried.by,
        "line": tried.line,
        "explanation": tried.explanation,
        "accepted": tried.fate.is_accepted(),
        "fate": tried.fate,
        "note": tried.fate.to_string(),
    })
}
