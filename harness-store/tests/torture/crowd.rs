//! Many processes that answer at once, while the holder continues.

use std::collections::BTreeSet;
use std::path::Path;
use std::pin::Pin;
use std::task::Poll;
use std::time::Instant;

use harness::inspect::Phase;
use harness::prelude::*;
use harness::{Interrupt, Outcome, Sessions};

use crate::child::{Other, say, setting};
use crate::place::{Place, report};
use crate::store::{Kind, Store, in_each_store};
use crate::work::open;

const SESSIONS: u64 = 20;
const QUESTIONS: u64 = 50;
const PROCESSES: u64 = 8;

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Survey {
    answers: Vec<u64>,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = u64)]
struct Ask {
    number: u64,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Ask,
}

/// All at once.
async fn all<F: Future + Unpin>(mut futures: Vec<F>) -> Vec<F::Output> {
    let mut done: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(move |task| {
        for (future, done) in futures.iter_mut().zip(&mut done) {
            if done.is_none()
                && let Poll::Ready(value) = Pin::new(future).poll(task)
            {
                *done = Some(value);
            }
        }
        match done.iter().all(Option::is_some) {
            true => Poll::Ready(done.drain(..).flatten().collect()),
            false => Poll::Pending,
        }
    })
    .await
}

async fn ask(_: View<Survey>, cx: Cx<()>) -> StepResult<Survey> {
    let asked = (0..QUESTIONS).map(|number| Box::pin(async_ask(&cx, number)));
    let answers: Result<Vec<u64>, StepError> = all(asked.collect()).await.into_iter().collect();
    Ok(Survey::update().answers(answers?))
}

async fn async_ask(cx: &Cx<()>, number: u64) -> Result<u64, StepError> {
    Ok(cx.ask(format!("q{number}"), Ask { number }).await?)
}

fn agent(store: Store) -> Agent<(), Survey> {
    Harness::<(), Survey>::builder("survey")
        .start(Step::Ask)
        .steps(|define, step| match step {
            Step::Ask => define.run(ask).end(),
        })
        .build()
        .unwrap()
        .agent("survey", ())
        .store(store)
}

/// Answers its share of all questions: half of these processes only leave their answers, the
/// others resume the session if no other process does.
pub async fn answerer(dir: &Path) {
    let store = open(dir, true).await;
    let (agent, sessions) = (agent(store.clone()), Sessions::new(store));
    let at: u64 = setting("AT").parse().unwrap();
    let mut busy = 0;
    for session in 0..SESSIONS {
        let name = format!("q{}", (session + at) % SESSIONS);
        let Ok(status) = sessions.status(&name).await else { return say("! not found") };
        for asked in status.questions {
            let question = asked.as_question::<Ask>().unwrap();
            let number = question.question.number;
            if number % PROCESSES != at {
                continue;
            }
            let answer = question.answer(number * 3).by(at.to_string());
            if at.is_multiple_of(2) {
                if let Err(error) = sessions.answer_json(&name, answer).await {
                    say(&format!("! {name}, {number}: {error}"));
                }
                continue;
            }
            match agent.resume(&*name, answer, ()).await {
                Ok(_) => {}
                Err(error) if error.is_busy() && error.answers_recorded() => busy += 1,
                Err(error) => say(&format!("! {name}, {number}: {error}")),
            }
        }
    }
    say(&format!("busy {busy}"));
}

in_each_store!(of_many_answers_of_many_processes_none_is_refused_starved_or_lost, many_answers);

fn many_answers(kind: Kind) {
    let _alone = crate::alone();
    let dir = Place::new("crowd", None);
    kind.choose(dir.path());
    let runtime = crate::work::runtime();
    let begun = Instant::now();
    let store = runtime.block_on(open(dir.path(), true));
    let (agent, sessions) = (agent(store.clone()), Sessions::new(store));
    runtime.block_on(async {
        for session in 0..SESSIONS {
            let request = agent.run(Survey::update(), ()).session(format!("q{session}"));
            assert!(matches!(request.await.unwrap(), Outcome::Interrupted(_)));
        }
    });
    let others =
        (0..PROCESSES).map(|at| Other::start("answerer", dir.path(), &[("AT", at.to_string())]));
    let others: Vec<_> = others.collect();
    // The holder resumes with what comes for as long as anything waits.
    let (mut commits, mut left): (usize, BTreeSet<u64>) = (0, (0..SESSIONS).collect());
    runtime.block_on(async {
        while !left.is_empty() {
            for session in left.clone() {
                let name = format!("q{session}");
                match agent.resume(&*name, Answers::none(), ()).await {
                    Ok(Outcome::Ended(_)) => drop(left.remove(&session)),
                    Ok(Outcome::Interrupted(_)) => commits += 1,
                    Ok(other) => panic!("{other:?}"),
                    Err(error) if error.is_busy() => {}
                    Err(error) if error.is_not_waiting() => drop(left.remove(&session)),
                    Err(error) => panic!("{error}"),
                }
            }
            assert!(begun.elapsed().as_secs() < 120, "{left:?} wait indefinitely");
        }
    });
    let mut busy = 0;
    for other in others {
        let (status, said) = other.end();
        assert!(status.success());
        for line in said {
            let count = line.strip_prefix("busy ").unwrap_or_else(|| panic!("{line}"));
            busy += count.parse::<usize>().unwrap();
        }
    }
    let expected: Vec<u64> = (0..QUESTIONS).map(|number| number * 3).collect();
    for session in 0..SESSIONS {
        let name = format!("q{session}");
        let status = runtime.block_on(sessions.status(&name)).unwrap();
        assert_eq!(status.phase, Phase::Ended, "{name}");
        let state = runtime.block_on(sessions.state(&name)).unwrap();
        assert_eq!(state["answers"], serde_json::json!(expected), "{name}");
    }
    report(&format!(
        "crowd, {kind:?}: {} answers of {PROCESSES} processes in {:.1?}; {busy} while another was at it; \
         the holder looked {commits} times",
        SESSIONS * QUESTIONS,
        begun.elapsed(),
    ));
}

/// Questions of items of one step.
const ITEMS: u64 = 10_000;
/// How often a process gives answers.
const TIMES: usize = 3;

fn item_agent(store: Store) -> Agent<(), Survey> {
    Harness::<(), Survey>::builder("items")
        .start(Step::Ask)
        .steps(|define, step| match step {
            Step::Ask => define
                .each(|_, _| async move { Ok((0..ITEMS).collect::<Vec<_>>()) })
                .concurrency(1_000)
                .run(|number: u64, _, cx| async move { async_ask(&cx, number).await })
                .fold(|_, answers| Ok(Survey::update().answers(answers)))
                .end(),
        })
        .build()
        .unwrap()
        .agent("items", ())
        .store(store)
}

/// Answers its share of the questions of items, some at a time: half of these processes only leave
/// their answers, the others resume the session if no other run holds it.
pub async fn item_answerer(dir: &Path) {
    let store = open(dir, true).await;
    let (agent, sessions) = (item_agent(store.clone()), Sessions::new(store));
    let [at, of]: [u64; 2] = ["AT", "OF"].map(|name| setting(name).parse().unwrap());
    let Ok(status) = sessions.status("items").await else { return say("! not found") };
    let number = |asked: &Interrupt| asked.as_question::<Ask>().unwrap().question.number;
    let share: Vec<_> = status.questions.iter().filter(|asked| number(asked) % of == at).collect();
    let (mut busy, mut given) = (0, 0);
    for some in share.chunks(share.len().div_ceil(TIMES)) {
        given += some.len();
        let answer = |asked: &&Interrupt| {
            Answers::json(asked.id.clone(), (number(asked) * 3).into()).by(at.to_string())
        };
        let answers: Answers = some.iter().map(answer).collect();
        if at.is_multiple_of(2) {
            if let Err(error) = sessions.answer_json("items", answers).await {
                say(&format!("! {at}: {error}"));
            }
            continue;
        }
        match agent.resume("items", answers, ()).await {
            Ok(_) => {}
            Err(error) if error.is_busy() && error.answers_recorded() => busy += 1,
            Err(error) => say(&format!("! {at}: {error}")),
        }
    }
    say(&format!("given {given} busy {busy}"));
}

in_each_store!(of_many_answers_to_items_none_is_refused_starved_or_lost, many_answers_to_items);

fn many_answers_to_items(kind: Kind) {
    let _alone = crate::alone();
    let dir = Place::new("crowd-of-items", None);
    kind.choose(dir.path());
    let runtime = crate::work::runtime();
    let begun = Instant::now();
    let store = runtime.block_on(open(dir.path(), true));
    let (agent, sessions) = (item_agent(store.clone()), Sessions::new(store));
    let asked = runtime.block_on(async {
        match agent.run(Survey::update(), ()).session("items").await.unwrap() {
            Outcome::Interrupted(waiting) => waiting.questions.len() as u64,
            other => panic!("{other:?}"),
        }
    });
    assert_eq!(asked, ITEMS);
    let asked = begun.elapsed();
    // What a process does with the session is the same everywhere, and takes its time.
    let processes = if kind.is_server() { 2 } else { PROCESSES };
    let start = |at: u64| {
        let settings = [("AT", at.to_string()), ("OF", processes.to_string())];
        Other::start("item-answerer", dir.path(), &settings)
    };
    let others: Vec<_> = (0..processes).map(start).collect();
    // The holder applies what comes for as long as anything waits.
    let mut commits = 0;
    runtime.block_on(async {
        loop {
            match agent.resume("items", Answers::none(), ()).await {
                Ok(Outcome::Ended(_)) => break,
                Ok(Outcome::Interrupted(_)) => commits += 1,
                Ok(other) => panic!("{other:?}"),
                Err(error) if error.is_busy() => {
                    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                }
                Err(error) if error.is_not_waiting() => break,
                Err(error) => panic!("{error}"),
            }
            assert!(begun.elapsed().as_secs() < 300, "the session does not end");
        }
    });
    let (mut given, mut busy) = (0, 0);
    for other in others {
        let (status, said) = other.end();
        assert!(status.success());
        for line in said {
            let counts: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
            let [one, two] = counts[..] else { panic!("{line}") };
            (given, busy) = (given + one, busy + two);
        }
    }
    assert_eq!(given, ITEMS);
    let status = runtime.block_on(sessions.status("items")).unwrap();
    assert_eq!(status.phase, Phase::Ended);
    let state = runtime.block_on(sessions.state("items")).unwrap();
    let expected: Vec<u64> = (0..ITEMS).map(|number| number * 3).collect();
    assert_eq!(state["answers"], serde_json::json!(expected));
    report(&format!(
        "crowd of items, {kind:?}: {ITEMS} questions asked in {asked:.1?}, answered by {processes} processes \
         after {:.1?}; {busy} times while another was at it; the holder looked {commits} times",
        begun.elapsed(),
    ));
}
