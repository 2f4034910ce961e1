//! Which clauses of a contract are kept, and which not.

use std::fmt;

/// What became of each clause.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "an unread report finds nothing (call `assert`)"]
pub struct Report {
    /// The clauses, in the order in which they were checked.
    pub checked: Vec<Checked>,
}

/// A clause that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Its name.
    pub clause: String,
    /// What was found.
    pub verdict: Verdict,
}

/// What was found about a clause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is kept.
    Kept,
    /// It is broken: what was expected and what was found.
    Broken(String),
    /// It was left out, for this reason.
    Skipped(String),
}

impl Report {
    /// The names of the clauses that are broken.
    pub fn broken(&self) -> impl Iterator<Item = &str> {
        self.checked
            .iter()
            .filter(|checked| matches!(checked.verdict, Verdict::Broken(_)))
            .map(|checked| checked.clause.as_str())
    }

    /// Makes sure that no clause is broken.
    ///
    /// # Panics
    /// If one is, with the list of those that are.
    pub fn assert(&self) {
        assert!(self.broken().next().is_none(), "{self}");
    }
}

/// The clauses that are broken or were left out, and how many are kept.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut kept = 0;
        for Checked { clause, verdict } in &self.checked {
            match verdict {
                Verdict::Kept => kept += 1,
                Verdict::Broken(why) => writeln!(f, "broken  {clause}: {why}")?,
                Verdict::Skipped(why) => writeln!(f, "skipped {clause}: {why}")?,
            }
        }
        write!(f, "{kept} of {} clauses are kept", self.checked.len())
    }
}
