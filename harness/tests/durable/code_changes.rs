//! Changes of a program of code steps: those that do not apply, and what folding them costs.

use std::sync::{Arc, Mutex};

use harness::FailureKind;
use harness::code::{self, Code, CodeChange};
use harness::esg::{Blobs, Program, Provenance, ProvenanceKind};
use harness::prelude::*;
use harness::store::MemoryStore;

use super::code_steps::{Analysis, Counts, Ctx, bench, slots};

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Only {
    Run,
}

#[tokio::test]
async fn a_change_that_does_not_apply_is_refused_and_not_dropped() {
    let program = Program::from_script("# %% first\nx = 1").unwrap();
    let agent = |input: Vec<CodeChange>| {
        let input = Arc::new(Mutex::new(Some(input)));
        let harness = Harness::<Ctx, Analysis>::builder("adds")
            .start(Only::Run)
            .steps(move |define, Only::Run| {
                let input = Arc::clone(&input);
                let add = move |_, _| {
                    let changes = input.lock().unwrap().take().unwrap_or_default();
                    async move { Ok(Analysis::update().task("added").code(changes)) }
                };
                define.run(add).end()
            })
            .build()
            .unwrap();
        harness.agent("a", ())
    };
    let slots = || slots(&[], bench(&Blobs::memory(), &Counts::default()));
    let input = || Analysis::update().code(Code::added(&program));

    // A step whose changes do not apply: nothing of its update counts.
    for store in [None, Some(MemoryStore::new())] {
        let agent = agent(Code::added(&program));
        let agent = match store {
            Some(store) => agent.store(store),
            None => agent,
        };
        let Outcome::Failed(failed) = agent.run(input(), slots()).await.unwrap() else {
            panic!("the step is there already")
        };
        assert_eq!(failed.failure.kind, FailureKind::Refused);
        let said = &failed.failure.message;
        assert!(said.contains("field `code`") && said.contains("`first`"), "{said}");
        if let Some(state) = failed.state.as_ref() {
            assert_eq!((state.task.as_str(), state.code.program().len()), ("", 1));
        }
    }

    // An input that does not: the session is as it was.
    let memory = MemoryStore::new();
    let agent = agent(Vec::new()).store(memory.clone());
    let first = agent.run(input(), slots()).session("s").await.unwrap();
    assert!(matches!(first, Outcome::Ended(_)), "{first:?}");
    let refused = agent.run(input(), slots()).session("s").await.unwrap_err();
    assert!(refused.is_input_refused(), "{refused}");
    let code = first.state().unwrap().code.clone();
    let more = Program::from_script("# %% first\nx = 1\n# %% second\ny = x").unwrap();
    let changes = code.following(&more, &Provenance::new(ProvenanceKind::Written)).unwrap();
    let next = agent.run(Analysis::update().code(changes), slots()).session("s").await.unwrap();
    assert_eq!(next.state().unwrap().code.program().len(), 2);
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Rounds {
    Edit,
    Run,
}

#[derive(Signal, Clone, Copy, Debug)]
enum Left {
    More,
    None,
}

/// What a step costs must not grow with what the program has behind it.
#[tokio::test]
async fn a_step_copies_nothing_of_the_program() {
    const EDITS: usize = 6;
    for store in [None, Some(MemoryStore::new())] {
        let places = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&places);
        let harness = Harness::<Ctx, Analysis>::builder("edits")
            .start(Rounds::Edit)
            .steps(move |define, step| match step {
                Rounds::Edit => {
                    let seen = Arc::clone(&seen);
                    let edit = move |state: View<Analysis>, _: Cx<Ctx>| {
                        let mut seen = seen.lock().unwrap();
                        seen.push(std::ptr::from_ref(state.code.ledger()) as usize);
                        let source = format!("x = {}", seen.len());
                        let changes = state
                            .code
                            .edited(|program| program.replace("first", &source).map(drop));
                        async move { Ok(Analysis::update().code(changes.unwrap())) }
                    };
                    define.run(edit).then(Rounds::Run)
                }
                Rounds::Run => {
                    let left = |state: &Analysis| match state.code.ledger().executions().len() {
                        done if done < EDITS => Left::More,
                        _ => Left::None,
                    };
                    let run = define.handler(code::execute(|cx: &Ctx| cx.bench.clone()));
                    run.route(left, |left| match left {
                        Left::More => to(Rounds::Edit),
                        Left::None => end(),
                    })
                }
            })
            .budget(Budget::steps(30))
            .build()
            .unwrap();
        let agent = match store {
            Some(store) => harness.agent("a", ()).store(store),
            None => harness.agent("a", ()),
        };
        let program = Program::from_script("# %% first\nx = 0").unwrap();
        let input = Analysis::update().code(Code::added(&program));
        let slots = slots(&[], bench(&Blobs::memory(), &Counts::default()));
        let ended = agent.run(input, slots).await.unwrap();
        assert!(matches!(ended, Outcome::Ended(_)), "{ended:?}");
        let places = places.lock().unwrap();
        assert_eq!(places.len(), EDITS);
        assert!(places.iter().all(|place| *place == places[0]), "{places:?}");
    }
}
