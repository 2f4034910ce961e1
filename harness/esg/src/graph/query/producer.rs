//! The executions that a value comes from.
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::graph::CodeGraph;
use crate::model::Entity;
use crate::model::List;
use crate::program::VersionId;
use crate::trace::Execution;

/// How an entity got its value: the step that wrote it last, then the steps that wrote what that
/// one read, and so on, nearest first.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Chain {
    /// The entity.
    pub entity: Entity,
    /// The executions, nearest first, without duplicates.
    pub links: Vec<Link>,
}

/// One execution in a chain.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Link {
    /// The execution.
    pub execution: Arc<Execution>,
    /// The version of the step that ran.
    pub version: Option<VersionId>,
    /// What it read, and the step that had written it, if any.
    pub reads: Vec<(Entity, Option<Arc<str>>)>,
}

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = List(std::slice::from_ref(&self.entity)).to_string();
        for (at, link) in self.links.iter().enumerate() {
            if at == 0 {
                write!(f, "{what} was written by {link}")?;
            } else {
                write!(f, "\n{link}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.execution.step)?;
        if let Some(version) = self.version {
            write!(f, " ({version})")?;
        }
        let reads: Vec<_> = self
            .reads
            .iter()
            .filter_map(|(entity, by)| {
                let by = by.as_ref()?;
                Some(format!("{} from {by}", List(std::slice::from_ref(entity))))
            })
            .collect();
        if reads.is_empty() {
            return f.write_str(", which read nothing that another step wrote");
        }
        write!(f, ", which read {}", reads.join(" and "))
    }
}

impl CodeGraph {
    /// How an entity got its value as of the last replay. `None` if no step wrote it.
    #[must_use]
    pub fn producer_of(&self, entity: &Entity) -> Option<Chain> {
        let by = self.state.by(entity)?;
        let mut links = Vec::new();
        let mut seen = BTreeSet::from([by.clone()]);
        let mut open = std::collections::VecDeque::from([by.clone()]);
        while let Some(step) = open.pop_front() {
            let Some(execution) = self.engine.ledger.execution(&step) else { continue };
            let trace = &execution.trace;
            let read = trace.reads.iter().chain(&trace.altered);
            let reads: Vec<_> = read
                .filter(|(_, read)| read.by.as_ref() != Some(&step))
                .map(|(entity, read)| (entity.clone(), read.by.clone()))
                .collect();
            for (_, by) in &reads {
                if let Some(by) = by
                    && seen.insert(by.clone())
                {
                    open.push_back(by.clone());
                }
            }
            links.push(Link {
                execution: execution.clone(),
                version: self.version_of(execution),
                reads,
            });
        }
        Some(Chain { entity: entity.clone(), links })
    }

    /// The version of its step that an execution ran: the newest with that code.
    pub(super) fn version_of(&self, execution: &Execution) -> Option<VersionId> {
        let step = execution.step.strip_prefix(crate::program::INPUT).unwrap_or(&execution.step);
        let mut versions = self.program().versions().iter().rev();
        let same =
            versions.find(|version| &*version.step == step && version.syntax == execution.syntax);
        same.map(|version| version.id)
    }
}
