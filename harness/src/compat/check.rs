//! Compares a session with the loop that is to resume it.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde_json::Value;

use crate::session::{Adopted, AskedInterrupt, Cursor, Fingerprint, Recorded, Resolution, Session};
use crate::state::{Field, Schema, State, of_json, to_json};
use crate::store::Phase;
use crate::text::{near, words};

use super::incompatible::{Compatibility, Difference, Incompatible};

/// The loop that is to resume a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TargetVersion<'a> {
    pub(crate) graph: &'a Arc<Fingerprint>,
    pub(crate) schema: &'a Arc<Schema>,
    /// Older names of steps, each with the current name.
    pub(crate) aliases: &'a BTreeMap<String, String>,
    /// The schema of the answer to each question that is known, by the question's name.
    pub(crate) answers: &'a BTreeMap<String, Value>,
    pub(crate) compatibility: Compatibility,
}

/// A session that the loop can resume.
#[derive(Debug)]
pub(crate) struct Compatible<S> {
    /// Its state.
    pub(crate) state: S,
    /// The entry to append before anything runs, if anything has changed.
    pub(crate) adopted: Option<Adopted>,
}

type Cause = Box<dyn Error + Send + Sync>;

/// Compares a session with the loop that is to resume it, and converts its state. Runs no user code
/// but the state's own: how it is decoded, its defaults, its migration.
///
/// # Errors
/// Every difference that matters.
pub(crate) fn check<S: State>(
    recorded: &Recorded,
    target: &TargetVersion<'_>,
) -> Result<Compatible<S>, Incompatible> {
    let session = &recorded.session;
    let mut differences = Vec::new();
    let mut source = None;
    let renamed = steps(session, target, &mut differences);
    answers(session, target.answers, &mut differences);
    let schema = &**target.schema;
    let state = match state::<S>(recorded, schema, &mut differences) {
        Ok(state) => state,
        Err(cause) => {
            source = cause;
            None
        }
    };
    if target.compatibility == Compatibility::Strict {
        strict(session, target, schema, &mut differences);
    }
    match state {
        Some((state, encoded)) if differences.is_empty() => {
            let adopted = Adopted {
                graph: (session.graph != *target.graph).then(|| Arc::clone(target.graph)),
                schema: (session.schema != *target.schema).then(|| Arc::clone(target.schema)),
                state: encoded,
                renamed,
            };
            let changed = adopted.graph.is_some()
                || adopted.schema.is_some()
                || adopted.state.is_some()
                || !adopted.renamed.is_empty();
            Ok(Compatible { state, adopted: changed.then_some(adopted) })
        }
        _ => Err(Incompatible { differences, source }),
    }
}

/// The state of a session in the form of this program, for any loop.
///
/// # Errors
/// The differences of the state.
pub(crate) fn state_of<S: State>(recorded: &Recorded) -> Result<S, Incompatible> {
    let mut differences = Vec::new();
    let (found, source) = match state::<S>(recorded, &S::schema(), &mut differences) {
        Ok(found) => (found, None),
        Err(cause) => (None, cause),
    };
    match found {
        Some((state, _)) => Ok(state),
        None => Err(Incompatible { differences, source }),
    }
}

/// Decodes a stored state. Fields that it lacks have their values of a new state.
///
/// # Errors
/// The error of the state's `Deserialize`.
pub(crate) fn decode_state<S: State>(stored: &Value) -> Result<S, Cause> {
    caught(|| decode::<S>(stored))
}

/// The result of a state's own code. After a panic there is no partial value to clean up.
fn caught<T>(make: impl FnOnce() -> Result<T, Cause>) -> Result<T, Cause> {
    catch_unwind(AssertUnwindSafe(make)).unwrap_or_else(|panic| Err(words(&*panic).into()))
}

fn decode<S: State>(stored: &Value) -> Result<S, Cause> {
    let mut whole = to_json(&S::default())?;
    fill(&mut whole, stored, S::schema().fields());
    Ok(of_json(whole)?)
}

/// Replaces what `whole` has by what is stored. `fields` are those of the state; the ones that are
/// states themselves may lack fields, too.
fn fill(whole: &mut Value, stored: &Value, fields: &[Field]) {
    let (Value::Object(whole), Value::Object(stored)) = (&mut *whole, stored) else {
        *whole = stored.clone();
        return;
    };
    for (name, value) in stored {
        let inner = fields.iter().find(|it| it.name() == name && !it.fields().is_empty());
        match (whole.get_mut(name), inner) {
            (Some(place), Some(inner)) => fill(place, value, inner.fields()),
            _ => {
                whole.insert(name.clone(), value.clone());
            }
        }
    }
}

/// Looks up the steps at which the session can be resumed. Returns those that were renamed.
fn steps(
    session: &Session,
    now: &TargetVersion<'_>,
    differences: &mut Vec<Difference>,
) -> BTreeMap<Arc<str>, Arc<str>> {
    let known = &now.graph.steps;
    let name_now = |step: &str| match (known.get_key_value(step), now.aliases.get(step)) {
        (Some((name, kind)), _) => Some((name, *kind)),
        (None, Some(name)) => known.get_key_value(name).map(|(name, kind)| (name, *kind)),
        (None, None) => None,
    };
    // The next turn begins at the start.
    let over = session.phase == Phase::Ended || !session.cursor.is_entered();
    let parked = session.parked.as_ref().map(|parked| &parked.cursor);
    let cursors: Vec<&Cursor> = if over {
        Vec::new()
    } else {
        [Some(&session.cursor), parked].into_iter().flatten().collect()
    };
    let at_rest: BTreeSet<&str> = cursors.iter().map(|cursor| &*cursor.step).collect();
    for step in at_rest {
        match (name_now(step), session.graph.steps.get(step)) {
            (None, _) => differences.push(Difference::StepGone {
                step: step.to_owned(),
                near: near(step, known.keys().map(String::as_str)).map(str::to_owned),
            }),
            (Some((_, kind)), Some(before)) if kind != *before => {
                differences.push(Difference::StepKindChanged {
                    step: step.to_owned(),
                    saved: *before,
                    now: kind,
                });
            }
            (Some(_), _) => {}
        }
    }
    cursors
        .iter()
        .flat_map(|cursor| cursor.visits.iter().map(|(step, _)| step).chain([&cursor.step]))
        .filter_map(|step| {
            let (name, _) = name_now(step)?;
            (**name != **step).then(|| (Arc::clone(step), Arc::from(name.as_str())))
        })
        .collect()
}

/// Compares the schemas of answers that are expected, or not applied yet.
fn answers(session: &Session, now: &BTreeMap<String, Value>, differences: &mut Vec<Difference>) {
    let parked = session.parked.iter().flat_map(|parked| parked.interrupts.iter());
    let changed: BTreeSet<&str> = session
        .interrupts
        .iter()
        .chain(parked)
        .filter(|asked| matches!(asked.resolution, None | Some(Resolution::Answered { .. })))
        // An inline question can narrow its answer by the data that it has.
        .filter(|asked| asked.interrupt.key.is_none())
        .filter(|AskedInterrupt { interrupt, .. }| {
            now.get(&interrupt.name).is_some_and(|schema| *schema != interrupt.answer_schema)
        })
        .map(|asked| asked.interrupt.name.as_str())
        .collect();
    differences.extend(
        changed
            .into_iter()
            .map(|question| Difference::AnswerSchemaChanged { question: question.to_owned() }),
    );
}

/// The state in its current form and, if it is stored in another form, its encoding. `None` if the
/// differences explain why there is none.
fn state<S: State>(
    recorded: &Recorded,
    schema: &Schema,
    differences: &mut Vec<Difference>,
) -> Result<Option<(S, Option<Value>)>, Option<Cause>> {
    let saved = &*recorded.session.schema;
    let (before, version) = (saved.version(), schema.version());
    if before == version {
        let known = differences.len();
        fields(saved.fields(), schema.fields(), "", differences);
        if differences.len() > known {
            return Ok(None);
        }
    }
    let converted = if before == version {
        decode_state::<S>(&recorded.state)
    } else {
        let back = version.checked_sub(before);
        let migration = S::migration();
        let ran = back.zip(migration).and_then(|(back, it)| {
            let run = || it.run_from(back, recorded.state.clone()).transpose();
            caught(|| Ok(run()?)).transpose()
        });
        match ran {
            // Each function of a migration reads exactly one version: an older form could decode as
            // that version by accident, and lose fields.
            Some(Ok(state)) => Ok(state),
            Some(Err(cause)) => Err(cause),
            None => {
                differences.push(Difference::VersionUnknown { saved: before, now: version });
                return Ok(None);
            }
        }
    };
    let encoded = converted.and_then(|state| match to_json(&state) {
        Ok(encoded) => Ok((state, encoded)),
        Err(error) => Err(error.into()),
    });
    match encoded {
        Ok((state, encoded)) => {
            let changed =
                before != version || schema.difference(&recorded.state, &encoded).is_some();
            Ok(Some((state, changed.then_some(encoded))))
        }
        Err(cause) => {
            differences.push(Difference::StateUnreadable);
            Err(Some(cause))
        }
    }
}

/// Compares the fields of a state, or of a state in it, whose place is `above`.
fn fields(saved: &[Field], now: &[Field], above: &str, differences: &mut Vec<Difference>) {
    for before in saved {
        let field = format!("{above}{}", before.name());
        match now.iter().find(|field| field.name() == before.name()) {
            None => differences.push(Difference::FieldRemoved { field }),
            Some(now) if now.type_name() != before.type_name() => {
                differences.push(Difference::FieldTypeChanged {
                    field,
                    saved: before.type_name().to_owned(),
                    now: now.type_name().to_owned(),
                });
            }
            // What was stored before its fields were known says nothing of them.
            Some(now) => {
                fields(before.fields(), now.fields(), &format!("{field}."), differences);
            }
        }
    }
}

/// Adds the differences that only [`Compatibility::Strict`] rejects.
fn strict(
    saved: &Session,
    now: &TargetVersion<'_>,
    schema: &Schema,
    differences: &mut Vec<Difference>,
) {
    if saved.graph != *now.graph {
        differences.push(Difference::WiringChanged);
    }
    let (before, version) = (saved.schema.version(), schema.version());
    if before != version {
        let known =
            |difference: &Difference| matches!(difference, Difference::VersionUnknown { .. });
        if !differences.iter().any(known) {
            differences.push(Difference::VersionChanged { saved: before, now: version });
        }
        return;
    }
    strict_fields(saved.schema.fields(), schema.fields(), "", differences);
}

fn strict_fields(saved: &[Field], now: &[Field], above: &str, differences: &mut Vec<Difference>) {
    for now in now {
        let field = format!("{above}{}", now.name());
        match saved.iter().find(|before| before.name() == now.name()) {
            None => differences.push(Difference::FieldAdded { field }),
            Some(before) if before.reducer() != now.reducer() => {
                differences.push(Difference::ReducerChanged { field });
            }
            Some(before) => {
                strict_fields(before.fields(), now.fields(), &format!("{field}."), differences);
            }
        }
    }
}

#[cfg(test)]
mod tests;
