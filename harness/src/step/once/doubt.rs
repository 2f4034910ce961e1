//! Effects in doubt: it is unknown whether they happened.

use futures_util::future::poll_immediate;

use crate::question::{Doubt, EffectInDoubt};
use crate::state::{Stored, of_json};
use crate::step::ask::Ask;
use crate::step::effects::{EffectScope, Guard};
use crate::step::scope::Scope;
use crate::step::{FailureKind, StepError};
use crate::store::FormerHolder;

use super::ticket::Ticket;
use super::{Decision, InDoubt, Leave, free, leave};

/// The result of the effect, or `None` if the effect must run.
pub(super) async fn settle<T: Stored>(
    scope: &Scope,
    within: EffectScope,
    key: &str,
    decision: Decision<T>,
    former: FormerHolder,
) -> Result<Option<T>, StepError> {
    match decision {
        Decision::Plain(InDoubt::Fail) => Err(unknown(scope, key, former)),
        Decision::Plain(InDoubt::Retry) => Ok(None),
        Decision::Probe(probe) => probe().await,
        Decision::Plain(InDoubt::Ask) => match ask(scope, within, key, former).await? {
            Doubt::Repeat => Ok(None),
            Doubt::Fail => {
                let op = scope.op_id();
                let message =
                    format!("the effect `{key}` of {op} is in doubt, and the answer is to fail");
                Err(StepError::of(FailureKind::InDoubt, false, message))
            }
            Doubt::Done { result } => match of_json(result) {
                Ok(result) => Ok(Some(result)),
                Err(error) => {
                    let message = format!(
                        "failed to decode the result given for the effect `{key}` of {}: {error} \
                         (resume, and give a result that decodes)",
                        scope.op_id()
                    );
                    Err(StepError::of(FailureKind::InDoubt, false, message))
                }
            },
        },
    }
}

pub(super) fn unknown(scope: &Scope, key: &str, former: FormerHolder) -> StepError {
    let (op, former) = (scope.op_id(), of_holder(former));
    let message = format!(
        "the effect `{key}` of {op} is in doubt: its intent is recorded, its result is not, and \
         {former} (look for {op} in the system it acts on; set `.in_doubt(..)` or `.probe(..)` to \
         decide without failing)"
    );
    StepError::of(FailureKind::InDoubt, false, message)
}

/// What is known of the run that was about to make an effect.
fn of_holder(former: FormerHolder) -> &'static str {
    match former {
        FormerHolder::Released => "the attempt that began it is over",
        FormerHolder::Dead => "the process that began it has ended",
        FormerHolder::Expired => {
            "the process that began it may only be suspended and finish it later: its lease expired"
        }
        FormerHolder::Unknown => "it is not known whether the process that began it has ended",
    }
}

/// Asks a person. Each answer resolves one doubt. That it was applied is recorded first, as an effect
/// of its own: if the effect runs after the answer and leaves no result again, the step asks again.
async fn ask(
    scope: &Scope,
    within: EffectScope,
    key: &str,
    former: FormerHolder,
) -> Result<Doubt, StepError> {
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
            Leave::InDoubt(_) => return Err(unknown(scope, key, former)),
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
        former,
    };
    let mut asked = Ask::<EffectInDoubt>::new(scope.clone(), name, &question);
    let answer = match poll_immediate(&mut asked).await {
        Some(answer) => answer?,
        None => {
            // The run waits for effects that have begun, and this one waits for the run to settle.
            drop(taken);
            return Ok(asked.await?);
        }
    };
    taken.record(true).await?;
    Ok(answer)
}
