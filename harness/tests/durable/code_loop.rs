//! The prebuilt loop that writes, runs, repairs and reviews a program.

use std::sync::Arc;

use harness::Sessions;
use harness::async_trait;
use harness::code::{Bench, Code, ReviewCode, Reviewed};
use harness::esg::testing::TinyWorker;
use harness::esg::{Blobs, ExecError};
use harness::llm::{CallCx, Llm, LlmError, ModelId, Reply, Request, Scripted, StopReason};
use harness::loops::{Assignment, CodeLoop, CodeStep, Coding, code_loop};
use harness::prelude::*;
use harness::store::MemoryStore;

use super::rig::{Act, On, Rig, run_or_crash, runtime};

const PLAN: &str = r#"{"parts": [{"name": "load", "does": "the rows"}]}"#;

fn program(total: &str) -> String {
    format!("```python\n# %% load\nrows = [3, 1]\n# %% total\nn = {total}\n```")
}

fn patch(from: &str, to: &str) -> String {
    format!(
        "It is so.\n\nSTEP total\n<<<<<<< SEARCH\nn = {from}\n=======\nn = {to}\n>>>>>>> REPLACE\n"
    )
}

fn bench() -> Bench {
    Bench::new(|| Ok::<_, ExecError>(TinyWorker::new()), Blobs::memory())
}

fn of(replies: impl IntoIterator<Item = String>) -> (Scripted, CodeLoop<Coding>) {
    let model = Scripted::new(std::iter::once(PLAN.to_owned()).chain(replies));
    (model.clone(), code_loop(model, bench()))
}

async fn outcome(of: CodeLoop<Coding>) -> Outcome<Coding> {
    let agent = of.build().unwrap().agent("coder", ()).store(MemoryStore::new());
    agent.run(Coding::task("Add the rows up."), ()).await.unwrap()
}

#[tokio::test]
async fn a_program_is_planned_written_and_repaired_by_rules_before_a_model_is_asked() {
    let (model, of) = of([program("sum(row)")]);
    let ended = outcome(of.reviewed(false)).await.ended().unwrap();
    let program = ended.state.code.program();
    assert_eq!(program.step("total").unwrap().source.trim(), "n = sum(rows)");
    let asked = format!("{:?}", model.seen());
    assert_eq!(model.seen().len(), 2, "{asked}");
    assert!(asked.contains("load: the rows"), "{asked}");
}

#[tokio::test]
async fn what_no_rule_repairs_a_model_does() {
    let (model, of) = of([program("rows + 1"), patch("rows + 1", "sum(rows)")]);
    let ended = outcome(of.reviewed(false)).await.ended().unwrap();
    assert!(ended.state.code.is_ok());
    assert_eq!(model.seen().len(), 3);
}

#[tokio::test]
async fn what_cannot_be_patched_is_written_again_and_given_up_in_the_end() {
    // The same patch forever, of programs that differ and all fail.
    let mut replies = Vec::new();
    for add in 1..=3 {
        replies.push(program(&format!("rows + {add}")));
        replies.extend(std::iter::repeat_n(patch("rows + 9", "1"), 2));
    }
    let (model, of) = of(replies);
    let Outcome::Failed(failed) = outcome(of).await else { panic!("it never works") };
    let said = failed.failure.message.clone();
    assert!(said.contains("written 3 times and still fails"), "{said}");
    assert_eq!(model.seen().len(), 1 + 3 * 3);
}

#[tokio::test]
async fn a_person_who_rejects_it_has_it_written_again() {
    let (model, of) = of([program("sum(rows)"), program("len(rows)")]);
    let agent = of.build().unwrap().agent("coder", ()).store(MemoryStore::new());
    let run = agent.run(Coding::task("Add the rows up."), ()).session("s");
    let Outcome::Interrupted(waiting) = run.await.unwrap() else { panic!("a person is asked") };
    let review = waiting.pending::<ReviewCode>().unwrap();
    let no = review.answer(Reviewed::Rejected { comment: "their count".into() });
    let again = agent.resume(&waiting, no, ()).await.unwrap();
    let Outcome::Interrupted(waiting) = again else { panic!("a person is asked again") };
    assert!(format!("{:?}", model.seen().last()).contains("A person rejected it: their count"));
    let review = waiting.pending::<ReviewCode>().unwrap();
    let yes = review.answer(Reviewed::Approved);
    let ended = agent.resume(&waiting, yes, ()).await.unwrap().ended().unwrap();
    assert_eq!(ended.state.code.reviewed(), Some(&Reviewed::Approved));
}

#[tokio::test]
async fn another_task_changes_the_program_that_is_there() {
    let (model, of) = of([program("sum(rows)"), PLAN.to_owned(), program("len(rows)")]);
    let agent = of.reviewed(false).build().unwrap().agent("coder", ()).store(MemoryStore::new());
    let turn = async |task| {
        let ended = agent.run(Coding::task(task), ()).session("s").await.unwrap().ended();
        ended.unwrap().state.code
    };
    turn("Add the rows up.").await;
    let code = turn("Count the rows.").await;
    let asked = format!("{:?}", model.seen().last());
    assert!(asked.contains("Count the rows.") && asked.contains("n = sum(rows)"), "{asked}");
    assert_eq!(code.program().step("total").unwrap().source.trim(), "n = len(rows)");
    let ran: Vec<&str> = code.ledger().executions().iter().map(|it| &*it.step).collect();
    assert_eq!(ran, ["load", "total", "total"], "what stays the same does not run again");
}

#[tokio::test]
async fn patches_are_bounded() {
    let (model, of) = of([program("rows + 1"), patch("rows + 1", "rows + 2")]);
    let Outcome::Failed(failed) = outcome(of.max_patches(1).max_writes(1)).await else {
        panic!("it never works")
    };
    assert!(failed.failure.message.contains("written 1 times"), "{}", failed.failure.message);
    assert_eq!(model.seen().len(), 3);
}

#[derive(Context)]
struct Slots {
    #[slot(runtime)]
    model: Arc<dyn Llm>,
    #[slot(runtime)]
    bench: Bench,
}

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Own {
    #[state(provides, nest)]
    assignment: Assignment,
    #[state(esg)]
    code: Code,
    done: bool,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    #[step(nest)]
    Code(CodeStep),
    Finish,
}

#[tokio::test]
async fn it_is_nested_with_slots_and_the_state_of_the_loop_around_it() {
    let code = CodeLoop::<Own, Slots>::from_context(|cx| cx.model.clone(), |cx| cx.bench.clone())
        .reviewed(false);
    let harness = Harness::<Slots, Own>::builder("whole")
        .start(Step::Code(CodeStep::Plan))
        .steps(|define, step| match step {
            Step::Code(step) => define
                .nest(Step::Code, |define, step| code.steps(define, step), step)
                .then(Step::Finish),
            Step::Finish => define.run(|_, _| async move { Ok(Own::update().done(true)) }).end(),
        })
        .build()
        .unwrap();
    let model = Arc::new(Scripted::new([PLAN.to_owned(), program("sum(rows)")]));
    let slots = Slots::runtime().model(model).bench(bench()).build();
    let input = Own::update().assignment(Assignment::update().task("Add the rows up."));
    let ended = harness.agent("w", ()).run(input, slots).await.unwrap().ended().unwrap();
    assert!(ended.state.done && ended.state.code.is_ok());
    assert_eq!(ended.state.assignment.plan[0].name, "load");
}

#[test]
fn a_crash_at_any_append_leaves_what_the_loop_comes_to() {
    let finish = |plan: Option<(u64, Act)>| {
        let (memory, blobs) = (MemoryStore::new(), Blobs::memory());
        let mut first = plan;
        let mut crashes = 0;
        for _ in 0..4 {
            let rig = match first.take() {
                Some((nth, act)) => Rig::nth(&memory, On::Append, nth, act),
                None => Rig::new(memory.clone()),
            };
            let bench = {
                let blobs = blobs.clone();
                Bench::new(|| Ok::<_, ExecError>(TinyWorker::new()), blobs)
            };
            let agent = code_loop::<Coding>(Author, bench)
                .reviewed(false)
                .build()
                .unwrap()
                .agent("coder", ())
                .store(rig.clone());
            let begun = runtime().block_on(Sessions::new(memory.clone()).status("s")).is_ok();
            let run = match begun {
                true => agent.resume("s", Answers::none(), ()),
                false => agent.run(Coding::task("Add the rows up."), ()).session("s"),
            };
            match run_or_crash(&rig, |_| run) {
                None => crashes += 1,
                Some(outcome) => return (outcome.ended().unwrap().state, crashes),
            }
        }
        panic!("it never ends");
    };
    let (plain, _) = finish(None);
    assert_eq!(plain.code.program().step("total").unwrap().source.trim(), "n = sum(rows)");
    let mut crashed = 0;
    for act in [Act::HangBefore, Act::HangAfter] {
        for nth in 1..14 {
            let (state, crashes) = finish(Some((nth, act.clone())));
            assert_eq!(
                state.code.program().to_script().unwrap(),
                plain.code.program().to_script().unwrap()
            );
            assert!(state.code.is_ok());
            assert_eq!(state.assignment, plain.assignment, "append {nth}");
            crashed += crashes;
        }
    }
    assert!(crashed >= 16, "{crashed} crashes");
}

/// Plans, writes and repairs always the same.
struct Author;

#[async_trait]
impl Llm for Author {
    fn id(&self) -> ModelId {
        ModelId::new("test", "author")
    }

    async fn complete(&self, request: Request<'_>, _: &CallCx) -> Result<Reply, LlmError> {
        let asked = format!("{request:?}");
        let text = match () {
            () if asked.contains("You plan a Python program") => PLAN.to_owned(),
            () if asked.contains("You write a Python program") => program("rows + 1"),
            () => patch("rows + 1", "sum(rows)"),
        };
        Ok(Reply::new(text, StopReason::End, self.id()))
    }
}
