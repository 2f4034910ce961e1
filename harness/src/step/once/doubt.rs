//! What becomes of an effect of which nobody knows whether it happened.

use futures_util::future::poll_immediate;
use serde::de::DeserializeOwned;

use crate::question::{Doubt, EffectInDoubt};
use crate::step::ask::Ask;
use crate::step::effects::{EffectScope, Guard};
use crate::step::scope::Scope;
use crate::step::{FailureKind, StepError};

use super::ticket::Ticket;
use super::{Decision, InDoubt, Leave, free, leave};

/// The result that the effect is known to have had, or `None` if it is to be run.
pub(super) async fn settle<T: DeserializeOwned>(
    scope: &Scope,
    within: EffectScope,
    key: &str,
    decision: Decision<T>,
) -> Result<Option<T>, StepError> {
    match decision {
        Decision::Plain(InDoubt::Fail) => Err(unknown(scope, key)),
        Decision::Plain(InDoubt::Retry) => Ok(None),
        Decision::Probe(probe) => probe().await,
        Decision::Plain(InDoubt::Ask) => match ask(scope, within, key).await? {
            Doubt::Repeat => Ok(None),
            Doubt::Fail => {
                let op = scope.op_id();
                let message = format!("the effect `{key}` of {op} is in doubt, and is to fail");
                Err(StepError::of(FailureKind::InDoubt, false, message))
            }
            Doubt::Done { result } => match T::deserialize(result) {
                Ok(result) => Ok(Some(result)),
                Err(error) => {
                    let message = format!(
                        "the result that was given for the effect `{key}` of {} does not decode: \
                         {error} (resume, and give one that does)",
                        scope.op_id()
                    );
                    Err(StepError::of(FailureKind::InDoubt, false, message))
                }
            },
        },
    }
}

pub(super) fn unknown(scope: &Scope, key: &str) -> StepError {
    let op = scope.op_id();
    let message = format!(
        "nobody knows whether the effect `{key}` of {op} happened: it was about to, and left no \
         result (look for {op} where it acts; `.in_doubt(..)` and `.probe(..)` say what to do \
         instead of failing)"
    );
    StepError::of(FailureKind::InDoubt, false, message)
}

/// Asks a person. Each answer settles one doubt: that it was taken is recorded before anything is
/// done about it, as an effect of its own, so that an effect that is run on somebody's word and
/// leaves no result again asks again.
async fn ask(scope: &Scope, within: EffectScope, key: &str) -> Result<Doubt, StepError> {
    let base = match within {
        EffectScope::Position => format!("in-doubt/{key}"),
        EffectScope::Session => format!("in-doubt/session/{key}"),
    };
    let mut name = base.clone();
    let mut doubts = 1;
    let taken = loop {
        let begin = || scope.effects.begin_once(scope.place, within, &name, Guard::AtLeastOnce);
        match leave(free(scope, begin).await, &name)? {
            Leave::Run => break Ticket::new(scope, within, &name),
            Leave::InDoubt => return Err(unknown(scope, key)),
            Leave::Recorded(_) => {
                doubts += 1;
                name = format!("{base}/{doubts}");
            }
        }
    };
    let question = EffectInDoubt {
        key: key.to_owned(),
        step: scope.step().to_owned(),
        op_id: scope.op_id().to_string(),
    };
    let mut asked = Ask::<EffectInDoubt>::new(scope.clone(), name, &question);
    let answer = match poll_immediate(&mut asked).await {
        Some(answer) => answer?,
        None => {
            // The run waits for effects that are begun, and this one waits for the run's end.
            drop(taken);
            return Ok(asked.await?);
        }
    };
    taken.record(true).await?;
    Ok(answer)
}
