//! The steps of this program, and the routes between them. Those that write, run, diagnose and patch code
//! steps are the library's.

use std::sync::Arc;

use harness::code::{self, LlmPatcher, Unpatched};
use harness::esg::patcher::{Patcher, Proposal, Proposing, judge as hides, propose};
use harness::esg::{Diagnosis, Patch, Program, RulePatcher};
use harness::prelude::*;
use harness::{Answered, StepError};

use super::diff::{Paint, first_change, unified};
use super::state::{Approve, At, Decision, Fate, Repair, Trial, Tried, Why};
use super::{Ctx, End};

/// What a run leads to.
#[derive(Signal, Clone, Copy, Debug)]
pub(super) enum Ran {
    /// Every code step ends well, and the program prints what it should.
    Works,
    /// It prints something else since the last patch.
    NoBetter,
    /// It fails.
    Fails,
    /// It prints something else, and nothing fails.
    Wrong,
}

pub(super) fn ran(repair: &Repair) -> Ran {
    // A file may be empty.
    let is_ok = repair.program().is_empty() || repair.code.is_ok();
    match (is_ok, repair.is_right(), &repair.trial) {
        (true, true, _) => Ran::Works,
        (true, false, Some(_)) => Ran::NoBetter,
        (true, false, None) => Ran::Wrong,
        (false, ..) => Ran::Fails,
    }
}

/// Says whether the patch on trial helped, and takes the next fault up.
pub(super) async fn judge(rounds: u32, repair: View<Repair>, _cx: Cx<Ctx>) -> StepResult<Repair> {
    let Some(found) = repair.found() else {
        return Err(StepError::fatal("the program fails without a diagnosis"));
    };
    if let Some(trial) = &repair.trial
        && (!found.is_after(&trial.before)
            || found.is_moved(&trial.before, &repair.proven_program(), repair.program())
            || is_worse_off(&repair, &trial.before, &found))
    {
        return Ok(Repair::update());
    }
    let update = Repair::update().trial(None).proven(repair.program().versions().len());
    if repair.fault.as_ref().is_some_and(|known| known.is(&found)) {
        return Ok(update);
    }
    if repair.rounds == rounds {
        return Ok(update.why(Some(Why::Rounds { rounds })));
    }
    Ok(update.fault(Some(found)).rounds(1))
}

/// Whether the very expression that a patch changed fails in another way now, and no rule knows why: what it
/// was replaced by is then as wrong.
fn is_worse_off(repair: &Repair, before: &At, found: &At) -> bool {
    let Some(diagnosis) = repair.code.diagnosis() else { return false };
    found.is_same_place(before) && rules(&repair.tests, diagnosis, repair.program()).is_empty()
}

/// What a diagnosis leads to.
#[derive(Signal, Clone, Copy, Debug)]
pub(super) enum Judged {
    /// There is a fault to patch.
    Fault,
    /// The patch on trial did not help.
    NoBetter,
    /// There are too many faults.
    Enough,
}

pub(super) fn judged(repair: &Repair) -> Judged {
    match (&repair.trial, &repair.why) {
        (Some(_), _) => Judged::NoBetter,
        (None, Some(_)) => Judged::Enough,
        (None, None) => Judged::Fault,
    }
}

/// How many patches are tried for one fault: a model may propose others without end.
const TRIES: usize = 12;

/// Applies the next patch, for a person to look at. It does not run before the answer.
pub(super) async fn patch(repair: View<Repair>, cx: Cx<Ctx>) -> StepResult<Repair> {
    if repair.tried.iter().filter(|tried| tried.round == repair.rounds).count() >= TRIES {
        let enough = StepError::fatal(format!("{TRIES} patches were tried for one fault"));
        return Err(enough.code(Unpatched::CODE));
    }
    let tests = repair.tests.clone();
    code::patch(move |cx: &Cx<Ctx>| patcher(cx, tests.clone())).run(repair, cx).await
}

fn patcher(cx: &Cx<Ctx>, tests: Vec<String>) -> Arc<dyn Patcher> {
    match &cx.model {
        Some(model) => Arc::new(LlmPatcher::of_step(cx, model).after_rules().read_only(tests)),
        None => Arc::new(Rules { tests }),
    }
}

/// The rules, for any step but the tests.
struct Rules {
    tests: Vec<String>,
}

impl Patcher for Rules {
    fn propose<'a>(&'a self, diagnosis: &'a Diagnosis, program: &'a Program) -> Proposing<'a> {
        Box::pin(std::future::ready(Ok(rules(&self.tests, diagnosis, program))))
    }
}

/// The patches of the rules that change no test.
fn rules(tests: &[String], diagnosis: &Diagnosis, program: &Program) -> Vec<Patch> {
    let is_test = |step: &str| tests.iter().any(|id| *id == *step);
    // A name that a test lacks is not the program's to import.
    let of_test = is_test(&diagnosis.raised_at().step);
    let lacks = matches!(diagnosis.fault.kind.as_str(), "NameError" | "ModuleNotFoundError");
    if of_test && lacks {
        return Vec::new();
    }
    let mut patches = RulePatcher.patches(diagnosis, program);
    patches.retain(|patch| patch.steps().all(|step| !is_test(step)));
    patches
}

/// First half of the gate: the question.
pub(super) async fn ask(repair: View<Repair>, _cx: Cx<Ctx>) -> Result<Approve, StepError> {
    let Some((by, explanation)) = repair.proposal() else {
        return Err(StepError::fatal("there is no patch to ask about"));
    };
    let (before, after) = (repair.copy(), repair.document.view(repair.program()));
    Ok(Approve {
        file: repair.name.clone(),
        fault: repair.fault.as_ref().map(ToString::to_string).unwrap_or_default(),
        by,
        line: first_change(&before, &after),
        explanation,
        diff: unified(&repair.name, &before, &after, Paint::Plain),
    })
}

/// Second half: the answer. Until the next run the patch is on trial.
pub(super) async fn hear(
    repair: View<Repair>,
    _cx: Cx<Ctx>,
    said: Answered<Approve>,
) -> StepResult<Repair> {
    let Some(before) = repair.fault.clone() else {
        return Err(StepError::fatal("there is no fault to patch"));
    };
    let by = said.by;
    let (fate, why) = match said.answer {
        Decision::Apply => (Fate::Applied { by }, None),
        Decision::Next => (Fate::Declined { by }, None),
        Decision::Quit => (Fate::Declined { by }, Some(Why::Quit)),
    };
    let Approve { by, line, explanation, .. } = said.question;
    let (number, round) = (repair.next_number(), repair.rounds);
    let tried = Tried { number, round, by, line, explanation, fate };
    let update = Repair::update().decision(Some(said.answer)).tried([tried.clone()]).why(why);
    Ok(update.trial(Some(Trial { tried, before })))
}

/// Where an answer leads.
#[derive(Signal, Clone, Copy, Debug)]
pub(super) enum Decided {
    /// The patch is approved.
    Apply,
    /// It is not.
    Decline,
}

pub(super) fn decided(repair: &Repair) -> Decided {
    match repair.decision {
        Some(Decision::Apply) => Decided::Apply,
        Some(Decision::Next | Decision::Quit) | None => Decided::Decline,
    }
}

/// Returns the steps to their versions before the patch on trial.
pub(super) async fn take_back(repair: View<Repair>, _cx: Cx<Ctx>) -> StepResult<Repair> {
    let Some(Trial { mut tried, .. }) = repair.trial.clone() else {
        return Err(StepError::fatal("there is no patch to take back"));
    };
    if let Fate::Applied { by } = tried.fate {
        let ending = match repair.failure() {
            Some(ending) => ending.to_string(),
            None => "it prints something else".to_owned(),
        };
        tried.fate = Fate::TakenBack { by, ending };
    }
    let changes = repair.code.edited(|program| repair.take_back(program)).fatal()?;
    Ok(Repair::update().code(changes).trial(None).tried([tried]))
}

/// Whether the person wants to see more.
#[derive(Signal, Clone, Copy, Debug)]
pub(super) enum Left {
    /// The next patch of this fault.
    More,
    /// The person quit.
    Quit,
}

pub(super) fn left(repair: &Repair) -> Left {
    if repair.has_quit() { Left::Quit } else { Left::More }
}

/// Records why there is no further patch, with the proposals that would only hide the failure.
pub(super) async fn give_up(repair: View<Repair>, cx: Cx<Ctx>) -> StepResult<Repair> {
    let failure = cx.failure();
    let error = failure.as_ref().map(|failure| format!("{failure:#}")).unwrap_or_default();
    if failure.is_none_or(|failure| failure.code.as_deref() != Some(Unpatched::CODE)) {
        return Ok(Repair::update().why(Some(Why::Broken { error })));
    }
    let fault = repair.fault.as_ref().map(ToString::to_string).unwrap_or_default();
    let tried: Vec<_> = repair.tried.iter().filter(|it| it.round == repair.rounds).collect();
    let declined = tried.iter().all(|it| matches!(it.fate, Fate::Declined { .. }));
    let why = match (tried.is_empty(), declined) {
        (true, _) => Why::NoPatch { fault },
        (false, true) => Why::Declined,
        (false, false) => Why::NoneHelped { fault },
    };
    Ok(Repair::update().why(Some(why)).tried(refused(&repair)))
}

/// The proposals of the rules that would hide the failure.
fn refused(repair: &Repair) -> Vec<Tried> {
    let Some(diagnosis) = repair.code.diagnosis() else { return Vec::new() };
    let (at, fault) = (diagnosis.raised_at(), &diagnosis.fault);
    let Ok(step) = repair.program().step(&at.step) else { return Vec::new() };
    let refused = propose(&step.source, fault).into_iter().filter_map(|proposal| {
        let why = hides(&step.source, &proposal.fixed, fault).err()?;
        Some((proposal, why))
    });
    let entry = |(number, (proposal, why))| {
        let Proposal { rule, line, explanation, .. } = proposal;
        let (document, program) = (&repair.document, repair.program());
        Tried {
            number,
            round: repair.rounds,
            by: "rules".to_owned(),
            line: document.line(program, &at.step, line),
            explanation: document.sentence(program, &at.step, &format!("{rule}: {explanation}")),
            fate: Fate::Refused { why },
        }
    };
    (repair.next_number()..).zip(refused).map(entry).collect()
}

/// Records which step failed.
pub(super) async fn breaks(_repair: View<Repair>, cx: Cx<Ctx>) -> StepResult<Repair> {
    let error = cx.failure().map(|failure| format!("{failure:#}")).unwrap_or_default();
    Ok(Repair::update().why(Some(Why::Broken { error })))
}

/// Records how the repair ends: a program that works has proven its last patch.
pub(super) async fn report(repair: View<Repair>, _cx: Cx<Ctx>) -> StepResult<Repair> {
    if repair.why.is_some() {
        return Ok(Repair::update());
    }
    let update = Repair::update().trial(None).proven(repair.program().versions().len());
    match &repair.expected {
        Some(expected) if !repair.is_right() => {
            Ok(update.why(Some(differing(expected, &repair.output().0))))
        }
        _ => Ok(update),
    }
}

pub(super) fn how(repair: &Repair) -> End {
    if repair.why.is_none() { End::Runs } else { End::Fails }
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
