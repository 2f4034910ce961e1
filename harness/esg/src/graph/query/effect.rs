//! The effects of a version of a step, or of a channel.
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::Subject;
use crate::exec::Ending;
use crate::graph::CodeGraph;
use crate::model::List;
use crate::model::{Entity, Fingerprint};
use crate::trace::Execution;

/// The downstream effects of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Effect {
    /// The subject of the question.
    pub subject: Subject,
    /// The affected steps, in program order.
    pub steps: Vec<Touched>,
}

/// One affected step.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Touched {
    /// The step.
    pub step: Arc<str>,
    /// What it read that had changed.
    pub reads: Vec<Entity>,
    /// What it wrote differently than before. Empty if its outputs were the same.
    pub changed: Vec<Entity>,
    /// How it ended before and after, if one of them failed.
    pub turned: Option<(String, String)>,
    /// Whether its output changed.
    pub printed: bool,
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.steps.is_empty() {
            return write!(f, "{} touched nothing", self.subject);
        }
        write!(f, "{} touched:", self.subject)?;
        for touched in &self.steps {
            write!(f, "\n  {touched}")?;
        }
        Ok(())
    }
}

impl Touched {
    /// Whether it succeeds now and failed before, or fails now and succeeded before. `None` if it ended
    /// as before.
    #[must_use]
    pub fn succeeds(&self) -> Option<bool> {
        self.turned.as_ref().map(|(_, after)| *after == Ending::Ok.to_string())
    }
}

impl fmt::Display for Touched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.step)?;
        if !self.reads.is_empty() {
            write!(f, ", which read {}", List(&self.reads))?;
        }
        if let Some((before, after)) = &self.turned {
            write!(f, ": before, {before}; now, {after}")?;
        } else if self.changed.is_empty() && !self.printed {
            f.write_str(": no change")?;
        } else if self.changed.is_empty() {
            f.write_str(": printed something else")?;
        }
        if !self.changed.is_empty() {
            write!(f, ": changed {}", List(&self.changed))?;
        }
        Ok(())
    }
}

impl CodeGraph {
    /// The effects of a version: what ran differently in the replay in which it first ran, compared
    /// with the replay before. For a channel: the steps that read it, the steps that read what
    /// those wrote, and so on, as of the last replay.
    #[must_use]
    pub fn effect_of(&self, subject: impl Into<Subject>) -> Effect {
        let subject = subject.into();
        let steps = match &subject {
            Subject::Version(version) => self.effect_of_version(*version),
            Subject::Entity(entity) => self.readers_of(entity),
        };
        Effect { subject, steps }
    }

    fn effect_of_version(&self, id: crate::program::VersionId) -> Vec<Touched> {
        let Ok(version) = self.program().version(id) else { return Vec::new() };
        let is_it = |execution: &&Arc<Execution>| {
            execution.syntax == version.syntax
                && execution.step.strip_prefix(crate::program::INPUT).unwrap_or(&execution.step)
                    == &*version.step
        };
        let Some(first) = self.executions().iter().find(is_it) else { return Vec::new() };
        let run = first.run;
        let before = |step: &str| {
            let mut earlier =
                self.executions().iter().rev().filter(|execution| execution.run < run);
            earlier.find(|execution| &*execution.step == step)
        };
        let mut changed: BTreeSet<Entity> = BTreeSet::new();
        let mut touched = Vec::new();
        for execution in
            self.engine.ledger.replayed(run).into_iter().flatten().filter(|one| one.run == run)
        {
            let earlier = before(&execution.step);
            let reads: Vec<_> = execution
                .trace
                .known()
                .filter(|entity| changed.contains(*entity))
                .cloned()
                .collect();
            if reads.is_empty() && execution.step != first.step {
                continue;
            }
            let differs = differing(earlier, execution);
            changed.extend(differs.iter().cloned());
            touched.push(Touched {
                step: execution.step.clone(),
                reads,
                turned: turned(earlier.map(|one| &one.ending), &execution.ending),
                printed: earlier.map_or(!execution.stdout.bytes.is_empty(), |earlier| {
                    earlier.stdout != execution.stdout
                }),
                changed: differs,
            });
        }
        touched
    }

    fn readers_of(&self, entity: &Entity) -> Vec<Touched> {
        let mut changed = BTreeSet::from([entity.clone()]);
        let mut touched = Vec::new();
        for step in self.planned() {
            let Some(execution) = self.engine.ledger.execution(&step.id) else { continue };
            let reads: Vec<_> = execution
                .trace
                .known()
                .filter(|entity| changed.contains(*entity))
                .cloned()
                .collect();
            if reads.is_empty() {
                continue;
            }
            let wrote: Vec<_> = execution.trace.wrote.keys().cloned().collect();
            changed.extend(wrote.iter().cloned());
            touched.push(Touched {
                step: step.id.clone(),
                reads,
                changed: wrote,
                turned: None,
                printed: false,
            });
        }
        touched
    }
}

/// The differences between two executions.
fn differing(before: Option<&Arc<Execution>>, after: &Execution) -> Vec<Entity> {
    let fingerprint = |execution: &Execution, entity: &Entity| -> Option<Fingerprint> {
        let members = execution.trace.units.iter().flat_map(|made| &made.unit.members);
        members.filter(|member| member.entity == *entity).map(|member| member.own).next()
    };
    // A new step wrote nothing before.
    let Some(before) = before else {
        let wrote = after.trace.wrote.keys();
        return wrote.filter(|entity| !matches!(entity, Entity::Token(_))).cloned().collect();
    };
    let known: BTreeSet<_> = before.trace.wrote.keys().chain(after.trace.wrote.keys()).collect();
    known
        .into_iter()
        .filter(|entity| !matches!(entity, Entity::Token(_)))
        .filter(|entity| {
            before.trace.wrote.contains_key(*entity) != after.trace.wrote.contains_key(*entity)
                || fingerprint(before, entity) != fingerprint(after, entity)
        })
        .cloned()
        .collect()
}

fn turned(before: Option<&Ending>, after: &Ending) -> Option<(String, String)> {
    let before = before?;
    (before.is_ok() != after.is_ok()).then(|| (before.to_string(), after.to_string()))
}
