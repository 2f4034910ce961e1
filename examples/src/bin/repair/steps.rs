//! The steps, and the routes between them.

use harness::prelude::*;
use harness::{Answered, StepError};

use super::engine::{Paint, Proposal, Verdict, judge, progressed, propose as proposals, unified};
use super::state::{Approve, Decision, Fate, Repair, Trial, Tried, Why, fault_of};
use super::{Ctx, End};

/// Runs the copy.
pub(super) async fn run(repair: View<Repair>, cx: Cx<Ctx>) -> StepResult<Repair> {
    let ran = cx.runner.run(&repair.copy, &repair.name, &cx.limits).await?;
    Ok(Repair::update().ran(Some(ran)))
}

/// What a run leads to.
#[derive(Signal, Clone, Copy, Debug)]
pub(super) enum AfterRun {
    /// It runs.
    Runs,
    /// There is a fault to repair, the first or the next.
    Fault,
    /// The repair on trial did not help.
    NoBetter,
    /// It does not run, and nothing is left to try.
    Stuck,
}

pub(super) fn after_run(repair: &Repair) -> AfterRun {
    let (Some(ran), Some(verdict)) = (&repair.ran, repair.verdict()) else {
        return AfterRun::Stuck;
    };
    if verdict == Verdict::Fixed {
        return AfterRun::Runs;
    }
    if let Some(trial) = &repair.trial {
        let before = trial.ran.as_ref().and_then(fault_of);
        let further = before.is_none_or(|before| progressed(before, &ran.ending));
        // If no rule can read how it ended, another repair of the same fault may do better.
        if !further || (repair.fault().is_none() && !repair.proposals.is_empty()) {
            return AfterRun::NoBetter;
        }
    }
    match repair.fault() {
        Some(_) => AfterRun::Fault,
        None => AfterRun::Stuck,
    }
}

/// Finds the acceptable repairs of a fault.
pub(super) async fn propose(repair: View<Repair>, _cx: Cx<Ctx>) -> StepResult<Repair> {
    let Some(fault) = repair.fault() else {
        return Err(StepError::fatal("there is no fault to repair"));
    };
    let mut accepted = Vec::new();
    let mut refused = Vec::new();
    for proposal in proposals(&repair.copy, fault) {
        match judge(&repair.copy, &proposal.fixed, fault) {
            Ok(()) => accepted.push(proposal),
            Err(why) => {
                let number = repair.next_number() + u32::try_from(refused.len())?;
                refused.push(Tried::new(number, &proposal, Fate::Refused { why }));
            }
        }
    }
    let none = accepted.is_empty().then(|| Why::NoRule { fault: fault.to_string() });
    Ok(Repair::update().proposals(accepted).tried(refused).trial(None).why(none).rounds(1))
}

/// Whether there is another repair to ask about.
#[derive(Signal, Clone, Copy, Debug)]
pub(super) enum Left {
    /// There is.
    Some,
    /// There is not.
    None,
}

pub(super) fn any_left(repair: &Repair) -> Left {
    if repair.proposals.is_empty() { Left::None } else { Left::Some }
}

/// First half of the gate: the question.
pub(super) async fn ask(repair: View<Repair>, _cx: Cx<Ctx>) -> Result<Approve, StepError> {
    let (proposal, _) = first(&repair)?;
    Ok(Approve {
        file: repair.name.clone(),
        fault: repair.fault().map(ToString::to_string).unwrap_or_default(),
        rule: proposal.rule,
        line: proposal.line,
        explanation: proposal.explanation.clone(),
        diff: unified(&repair.name, &repair.copy, &proposal.fixed, Paint::Plain),
    })
}

/// Second half: the answer. An approved repair stays the first one, for `apply`.
pub(super) async fn hear(
    repair: View<Repair>,
    _cx: Cx<Ctx>,
    said: Answered<Approve>,
) -> StepResult<Repair> {
    let (proposal, others) = first(&repair)?;
    let note = |fate| [Tried::new(repair.next_number(), proposal, fate)];
    let update = Repair::update().decision(Some(said.answer));
    let by = said.by;
    Ok(match said.answer {
        Decision::Apply => update.tried(note(Fate::Applied { by })),
        Decision::Next => update
            .tried(note(Fate::Declined { by }))
            .proposals(others.to_vec())
            .why(others.is_empty().then_some(Why::Declined)),
        Decision::Quit => update.tried(note(Fate::Declined { by })).why(Some(Why::Quit)),
    })
}

/// Where an answer leads.
#[derive(Signal, Clone, Copy, Debug)]
pub(super) enum Decided {
    /// The repair is approved.
    Apply,
    /// Ask about the next one.
    Next,
    /// There is no next one, or the person quit.
    Stop,
}

pub(super) fn decided(repair: &Repair) -> Decided {
    match repair.decision {
        Some(Decision::Apply) => Decided::Apply,
        Some(Decision::Next) if !repair.proposals.is_empty() => Decided::Next,
        Some(Decision::Next | Decision::Quit) | None => Decided::Stop,
    }
}

/// Applies the approved repair to the copy.
pub(super) async fn apply(repair: View<Repair>, _cx: Cx<Ctx>) -> StepResult<Repair> {
    let (proposal, others) = first(&repair)?;
    let Some(tried) = repair.tried.last().cloned() else {
        return Err(StepError::fatal("there is no recorded approval"));
    };
    let trial = Trial { tried, copy: repair.copy.clone(), ran: repair.ran.clone() };
    Ok(Repair::update().copy(proposal.fixed.clone()).trial(Some(trial)).proposals(others.to_vec()))
}

/// Reverts the repair on trial.
pub(super) async fn take_back(repair: View<Repair>, _cx: Cx<Ctx>) -> StepResult<Repair> {
    let Some(trial) = repair.trial.clone() else {
        return Err(StepError::fatal("there is no repair to revert"));
    };
    let ending = repair.ran.as_ref().map(|ran| ran.ending.to_string()).unwrap_or_default();
    let mut tried = trial.tried;
    if let Fate::Applied { by } = tried.fate {
        tried.fate = Fate::TakenBack { by, ending };
    }
    let fault = trial.ran.as_ref().and_then(fault_of).map(ToString::to_string);
    let none =
        repair.proposals.is_empty().then(|| Why::NoneHelped { fault: fault.unwrap_or_default() });
    Ok(Repair::update().copy(trial.copy).ran(trial.ran).trial(None).tried([tried]).why(none))
}

/// Records that the script has more faults than the limit.
pub(super) async fn enough(repair: View<Repair>, _cx: Cx<Ctx>) -> StepResult<Repair> {
    Ok(Repair::update().why(Some(Why::Rounds { rounds: repair.rounds })))
}

/// Records which step failed.
pub(super) async fn breaks(_repair: View<Repair>, cx: Cx<Ctx>) -> StepResult<Repair> {
    let error = cx.failure().map(|failure| format!("{failure:#}")).unwrap_or_default();
    Ok(Repair::update().why(Some(Why::Broken { error })))
}

/// Records why the script is not repaired, unless another step did.
pub(super) async fn report(repair: View<Repair>, _cx: Cx<Ctx>) -> StepResult<Repair> {
    let why = match (repair.why.clone(), repair.verdict()) {
        (Some(why), _) => Some(why),
        (None, Some(Verdict::Fixed)) => None,
        (None, Some(Verdict::WrongOutput { expected, got })) => Some(differing(&expected, &got)),
        (None, Some(Verdict::StillFailing(ending))) => Some(Why::Ending { ending }),
        (None, None) => Some(Why::Broken { error: "it was never run".to_owned() }),
    };
    Ok(Repair::update().why(why))
}

pub(super) fn how(repair: &Repair) -> End {
    if repair.why.is_none() { End::Runs } else { End::Fails }
}

fn first(repair: &Repair) -> Result<(&Proposal, &[Proposal]), StepError> {
    repair.proposals.split_first().ok_or_else(|| StepError::fatal("there is no proposal"))
}

/// The first line that differs.
fn differing(expected: &str, got: &str) -> Why {
    let mut wanted = expected.split_inclusive('\n');
    let mut found = got.split_inclusive('\n');
    loop {
        let (expected, got) = (wanted.next(), found.next());
        if expected != got || expected.is_none() {
            let line = |text: Option<&str>| text.unwrap_or_default().to_owned();
            return Why::WrongOutput { expected: line(expected), got: line(got) };
        }
    }
}
