//! Two processes that give one answer at the same moment.

use std::path::Path;

use harness::prelude::*;
use harness::{Outcome, Sessions};

use crate::child::{Other, hear, say};
use crate::loops::Ctx;
use crate::outside::Outside;
use crate::place::{Place, report};
use crate::store::{Kind, Store, in_each_store};
use crate::work::open;

const RACES: usize = 200;

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Approval {
    approved: Option<bool>,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool)]
struct Approve;

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Ask,
    Act,
}

/// What is guarded: it happens once, whichever process does it.
async fn act(_: View<Approval>, cx: Cx<Ctx>) -> StepResult<Approval> {
    let (outside, op, session) =
        (cx.outside.clone(), cx.op_id().to_string(), cx.session_id().to_string());
    cx.once("act", async move || {
        outside.act(&session, &op, "act", "once").await;
        Ok(())
    })
    .await?;
    Ok(Approval::update())
}

fn agent(store: Store, outside: Outside) -> Agent<Ctx, Approval> {
    let harness = Harness::<Ctx, Approval>::builder("approval")
        .start(Step::Ask)
        .steps(|define, step| match step {
            Step::Ask => define
                .ask(|_, _| async move { Ok(Approve) })
                .answer(|_, _, said: harness::Answered<Approve>| async move {
                    Ok(Approval::update().approved(Some(said.answer)))
                })
                .then(Step::Act),
            Step::Act => define.run(act).end(),
        })
        .build()
        .unwrap();
    harness.agent("approval", Ctx::required().outside(outside).build()).store(store)
}

/// Answers when it is asked to, and says what came of it.
pub async fn racer(dir: &Path) {
    let agent = agent(open(dir, true).await, Outside::new(&dir.join("effects")));
    say("ready");
    loop {
        let heard = hear();
        let parts: Vec<&str> = heard.split(' ').collect();
        let [session, id, answer] = parts[..] else { return };
        let answer = Answers::json(id, (answer == "true").into());
        let request = agent.resume(session, answer, ());
        // The other is as far.
        say("set");
        assert_eq!(hear(), "go");
        say(&match request.await {
            Ok(Outcome::Ended(ended)) => format!("ended {:?}", ended.state.approved.unwrap()),
            Ok(other) => format!("settled as {other:?}"),
            Err(error) if error.answer_error().is_some_and(|it| it.is_conflict()) => {
                format!(
                    "conflict {}",
                    error.answer_error().and_then(|it| it.recorded_answer()).unwrap()
                )
            }
            Err(error) if error.is_busy() && error.answers_recorded() => "busy".into(),
            Err(error) => format!("refused: {error}"),
        });
    }
}

in_each_store!(
    of_two_processes_that_answer_at_once_one_decides_and_it_happens_once,
    answers_at_once
);

fn answers_at_once(kind: Kind) {
    let _alone = crate::alone();
    let dir = Place::new("races", None);
    kind.choose(dir.path());
    let runtime = crate::work::runtime();
    let effects = dir.path().join("effects");
    let agent =
        runtime.block_on(async { agent(open(dir.path(), true).await, Outside::new(&effects)) });
    let sessions = Sessions::new(runtime.block_on(open(dir.path(), true)));
    let mut racers = [0, 1].map(|_| Other::start("racer", dir.path(), &[]));
    for racer in &mut racers {
        assert_eq!(racer.hear(), "ready");
    }
    let mut came = std::collections::BTreeMap::<String, usize>::new();
    let mut read = 0;
    for race in 0..RACES {
        let differ = race % 2 == 0;
        let session = format!("r{race}");
        let outcome = runtime
            .block_on(async { agent.run(Approval::update(), ()).session(&session).await.unwrap() });
        let Outcome::Interrupted(waiting) = outcome else { panic!() };
        let id = waiting.questions[0].id.clone();
        // Which is asked first changes too.
        let order = if race % 4 < 2 { [0, 1] } else { [1, 0] };
        for at in order {
            racers[at].say(&format!("{session} {id} {}", !differ || at == 0));
        }
        for racer in &mut racers {
            assert_eq!(racer.hear(), "set");
        }
        for at in order {
            racers[at].say("go");
        }
        let said = [0, 1].map(|at| racers[at].hear());
        let state = runtime.block_on(async { sessions.state(&session).await.unwrap() });
        let (traces, end) = Outside::traces(&effects, read);
        read = end;
        let done = traces.iter().filter(|trace| trace.session == session && trace.begins).count();
        assert_eq!(done, 1, "race {race}: {said:?}, {traces:?}");
        let approved = state["approved"].as_bool().unwrap();
        let (winner, loser) = match said[0].starts_with("ended") {
            true => (&said[0], &said[1]),
            false => (&said[1], &said[0]),
        };
        assert_eq!(*winner, format!("ended {approved}"), "race {race}: {said:?}");
        let fits = match differ {
            true => *loser == format!("conflict {approved}"),
            false => loser == "busy" || loser == winner,
        };
        assert!(fits, "race {race}: {said:?}");
        let mut said = said.map(|said| said.split(' ').next().unwrap_or_default().to_owned());
        said.sort_unstable();
        *came.entry(said.join(" + ")).or_default() += 1;
    }
    report(&format!("races: {RACES}, {came:?}"));
}
