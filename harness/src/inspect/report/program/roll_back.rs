//! Rolling a code step back to one of its versions, by a person.

use harness_esg::{Change, CodeGraph, Ledger, Operation, Provenance, Record, VersionId};
use serde_json::Value;

use super::{ProgramReport, programs, stale};
use crate::id::{Seq, SessionId};
use crate::inspect::{Kind, Sessions, SessionsError};
use crate::state::{Op, Path, Segment};

impl ProgramReport {
    /// The steps that would run, or may, if the program returned to this version, each with the reason.
    ///
    /// # Errors
    /// Why it cannot return to it.
    pub fn after_roll_back(&self, version: VersionId) -> Result<Vec<(String, String)>, String> {
        let (ledger, _) = rolled_back(&self.ledger, version, &Provenance::default())?;
        let graph = CodeGraph::recorded(ledger);
        let would = stale(&graph.plan());
        let steps = graph.program().steps();
        let would =
            steps.filter_map(|step| Some((step.id.to_string(), would.get(&step.id)?.clone())));
        Ok(would.collect())
    }
}

/// The ledger after a rollback, and the record of it.
fn rolled_back(
    ledger: &Ledger,
    version: VersionId,
    provenance: &Provenance,
) -> Result<(Ledger, Record), String> {
    let operation = Operation::from(Change::RolledBack { version }).signed(provenance.clone());
    let (mut ledger, record) = (ledger.clone(), Record::Edited(operation));
    ledger.apply(&record).map_err(|error| error.to_string())?;
    Ok((ledger, record))
}

impl Sessions {
    /// Returns a code step, or an input, of the program in a field of the state to one of its versions. It
    /// is an [edit](Self::edit_json) of a session at rest, made as a loop makes it: the next run of the
    /// program executes only what it affects.
    ///
    /// # Errors
    /// Those of [`edit_json`](Self::edit_json); [`is_bad_edit`](SessionsError::is_bad_edit) if the field is
    /// no program, or the version is not one of it or is the present one.
    pub async fn roll_back_code(
        &self,
        session: impl AsRef<str>,
        head: Seq,
        field: &str,
        version: u32,
        by: impl Into<String>,
        why: impl Into<String>,
    ) -> Result<Seq, SessionsError> {
        let session = SessionId::new(session)?;
        let by = by.into();
        // What is read is not newer than `head`, or the edit is refused as stale.
        let state = self.state(&session).await?;
        let ops = operations(&state, field, version, &by)
            .map_err(|why| Kind::BadEdit { session: session.clone(), why })?;
        self.edit_json(&session, head, ops, by, why).await
    }
}

fn operations(state: &Value, field: &str, version: u32, by: &str) -> Result<Vec<Op>, String> {
    let program = programs(state).into_iter().find(|program| program.field == field);
    let program = program.ok_or_else(|| format!("the field `{field}` is no program"))?;
    let found = program.version(version);
    let found = found.ok_or_else(|| format!("the program `{field}` has no version v{version}"))?;
    if found.current {
        return Err(format!("v{version} is the present version of `{}`", found.version.step));
    }
    let provenance = Provenance::default().agent(by);
    let (_, record) = rolled_back(&program.ledger, found.version.id, &provenance)?;
    let value = serde_json::to_value(&record).map_err(|error| error.to_string())?;
    let path = |name: &'static str| -> Path {
        [Segment::Key(field.to_owned().into()), Segment::Key(name.into())].into_iter().collect()
    };
    let mut ops = vec![Op::Push { path: path("records"), value }];
    if program.reviewed.is_some() {
        // No person has reviewed what it is now.
        ops.push(Op::Set { path: path("reviewed"), value: Value::Null });
    }
    if program.diagnosis.is_some() {
        // Why it fails now, the next replay has to show.
        ops.push(Op::Set { path: path("diagnosis"), value: Value::Null });
    }
    Ok(ops)
}
