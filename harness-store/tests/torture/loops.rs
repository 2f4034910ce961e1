//! Loops that always do the same: what their sessions come to does not depend on who runs them,
//! nor on how often it was begun.

use harness::prelude::*;
use harness::question::{Doubt, EffectInDoubt};
use harness::step::Interrupt;
use harness::{FailureKind, step::InDoubt};

use crate::outside::Outside;

pub const TURNS: u64 = 3;
/// How many kinds of sessions there are: one for each thing to do in doubt.
pub const KINDS: u64 = 4;

#[derive(Context)]
pub struct Ctx {
    #[slot(required)]
    pub outside: Outside,
}

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Doc {
    pub kind: u64,
    pub turn: u64,
    /// Written again by every step, so that snapshots are due often.
    pub filler: String,
    #[state(reduce = append)]
    pub lines: Vec<String>,
    #[state(reduce = append)]
    pub doubts: Vec<String>,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = String)]
pub struct Gate {
    pub turn: u64,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = u64)]
pub struct Inline {
    pub number: u64,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Fill,
    Note,
    Pay,
    Mend,
    Ask,
    Both,
    Close,
}

fn filler(doc: &Doc, step: u64) -> String {
    let digit = (doc.kind * 7 + doc.turn * 3 + step) % 10;
    digit.to_string().repeat(12 << 10)
}

async fn fill(doc: View<Doc>, _: Cx<Ctx>) -> StepResult<Doc> {
    Ok(Doc::update().filler(filler(&doc, 1)).lines([format!("fill {}", doc.turn)]))
}

/// An effect that may be repeated.
async fn acts(cx: &Cx<Ctx>, key: String, value: u64) -> Result<u64, StepError> {
    let (outside, op, session) =
        (cx.outside.clone(), cx.op_id().to_string(), cx.session_id().to_string());
    let named = key.clone();
    cx.once(&key, async move || {
        outside.act(&session, &op, &named, "once").await;
        Ok(value)
    })
    .await
}

async fn note(doc: View<Doc>, cx: Cx<Ctx>) -> StepResult<Doc> {
    let noted = acts(&cx, format!("note.{}", doc.turn), doc.turn + 10).await?;
    Ok(Doc::update().filler(filler(&doc, 2)).lines([format!("noted {noted}")]))
}

fn paid(doc: &Doc, paid: u64) -> DocUpdate {
    Doc::update().filler(filler(doc, 3)).lines([format!("paid {paid}")])
}

async fn pay(doc: View<Doc>, cx: Cx<Ctx>) -> StepResult<Doc> {
    let (key, value) = (format!("pay.{}", doc.turn), doc.turn + 20);
    let (outside, op, session) =
        (cx.outside.clone(), cx.op_id().to_string(), cx.session_id().to_string());
    let (named, kind) = (key.clone(), ["fail", "ask", "probe", "retry"][doc.kind as usize]);
    let (path, same) = (outside.path().to_owned(), op.clone());
    let effect = cx.once(&key, async move || {
        outside.act(&session, &op, &named, kind).await;
        Ok(value)
    });
    let got = match kind {
        "fail" => effect.at_most_once().await?,
        "ask" => effect.in_doubt(InDoubt::Ask).await?,
        "retry" => effect.in_doubt(InDoubt::Retry).await?,
        _ => {
            let probe = async move || {
                let (traces, _) = Outside::traces(&path, 0);
                let done = traces
                    .iter()
                    .any(|trace| trace.op == same && trace.kind == "probe" && !trace.begins);
                Ok(done.then_some(value))
            };
            effect.probe(probe).await?
        }
    };
    Ok(paid(&doc, got))
}

/// Continues as if it had been paid, and notes the doubt.
async fn mend(doc: View<Doc>, cx: Cx<Ctx>) -> StepResult<Doc> {
    let kind = cx.failure().map(|failure| failure.kind);
    if kind != Some(FailureKind::InDoubt) {
        return Err(StepError::fatal(format!("not a doubt: {kind:?}")));
    }
    Ok(paid(&doc, doc.turn + 20).doubts([format!("pay.{}", doc.turn)]))
}

async fn both(doc: View<Doc>, cx: Cx<Ctx>) -> StepResult<Doc> {
    let before = acts(&cx, format!("before.{}", doc.turn), doc.turn + 30).await?;
    let ask = |number| cx.ask(format!("ask {number}"), Inline { number });
    let (one, two) = tokio::join!(ask(1), ask(2));
    let (one, two) = (one?, two?);
    let after = acts(&cx, format!("after.{}", doc.turn), doc.turn + 40).await?;
    let line = format!("{before} {one} {two} {after}");
    Ok(Doc::update().filler(filler(&doc, 5)).lines([line]))
}

async fn close(doc: View<Doc>, _: Cx<Ctx>) -> StepResult<Doc> {
    Ok(Doc::update().filler(filler(&doc, 6)).lines([format!("close {}", doc.turn)]))
}

pub fn harness() -> Harness<Ctx, Doc> {
    Harness::<Ctx, Doc>::builder("torture")
        .start(Step::Fill)
        .on_error(Step::Mend)
        .steps(|define, step| match step {
            Step::Fill => define.run(fill).then(Step::Note),
            Step::Note => define.run(note).then(Step::Pay),
            Step::Pay => define.run(pay).then(Step::Ask),
            Step::Mend => define.run(mend).then(Step::Ask),
            Step::Ask => define
                .ask(|doc: View<Doc>, _| async move { Ok(Gate { turn: doc.turn }) })
                .answer(|doc, _, said: harness::Answered<Gate>| async move {
                    let line = format!("said {} by {:?}", said.answer, said.by);
                    Ok(Doc::update().filler(filler(&doc, 4)).lines([line]))
                })
                .then(Step::Both),
            Step::Both => define.run(both).then(Step::Close),
            Step::Close => define.run(close).end(),
        })
        .build()
        .unwrap()
}

/// The input of a turn, counted from 1.
pub fn input(number: u64, turn: u64) -> DocUpdate {
    Doc::update().kind(number % KINDS).turn(turn)
}

/// What is always answered.
pub fn answers(questions: &[Interrupt]) -> Answers {
    questions.iter().fold(Answers::none(), |answers, asked| {
        answers.and(if let Ok(gate) = asked.as_question::<Gate>() {
            gate.answer(format!("go {}", gate.question.turn)).by("sam")
        } else if let Ok(inline) = asked.as_question::<Inline>() {
            inline.answer(inline.question.number * 100)
        } else {
            let doubt = asked.as_question::<EffectInDoubt>().unwrap();
            let turn: u64 = doubt.question.key.rsplit('.').next().unwrap().parse().unwrap();
            doubt.answer(Doubt::Done { result: (turn + 20).into() })
        })
    })
}
