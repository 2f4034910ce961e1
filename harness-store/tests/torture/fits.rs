//! Whether sessions fit another version of their program, in each store.

use harness::compat::Fit;
use harness::inspect::Filter;
use harness::prelude::*;
use harness::{Outcome, Sessions};

use crate::place::Place;
use crate::store::{Kind, Store, in_each_store};
use crate::work::{open, runtime};

/// More than a check reads of a list at once.
const SESSIONS: usize = 260;

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Doc {
    fails: bool,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool, name = "sign")]
struct Sign;

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Write,
    Sign,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Next {
    Write,
    Confirm,
}

fn agent(store: Store) -> Agent<(), Doc> {
    Harness::<(), Doc>::builder("fits")
        .start(Step::Write)
        .steps(|define, step| match step {
            Step::Write => define
                .run(|doc: View<Doc>, _| async move {
                    if doc.fails { Err(StepError::fatal("no ink")) } else { Ok(Doc::update()) }
                })
                .then(Step::Sign),
            Step::Sign => define
                .ask(|_, _| async move { Ok(Sign) })
                .answer(|_, _, _: harness::Answered<Sign>| async move { Ok(Doc::update()) })
                .end(),
        })
        .build()
        .unwrap()
        .agent("fits", ())
        .store(store)
}

/// A version that has no step `Sign`.
fn next(store: Store) -> Agent<(), Doc> {
    Harness::<(), Doc>::builder("fits")
        .start(Next::Write)
        .steps(|define, step| match step {
            Next::Write => define.run(|_, _| async move { Ok(Doc::update()) }).then(Next::Confirm),
            Next::Confirm => define.run(|_, _| async move { Ok(Doc::update()) }).end(),
        })
        .build()
        .unwrap()
        .agent("fits", ())
        .store(store)
}

in_each_store!(a_check_finds_what_the_next_version_would_and_writes_nothing, checked);

fn checked(kind: Kind) {
    let _alone = crate::alone();
    let dir = Place::new("fits", None);
    kind.choose(dir.path());
    runtime().block_on(async {
        let now = agent(open(dir.path(), true).await);
        for session in 0..SESSIONS {
            let fails = session.is_multiple_of(100);
            let name = format!("s{session:03}");
            let outcome = now.run(Doc::update().fails(fails), ()).session(name).await.unwrap();
            assert_eq!(matches!(outcome, Outcome::Interrupted(_)), !fails, "{outcome:?}");
        }
        // A program that is about to be deployed has its own connection to the store.
        let store = open(dir.path(), true).await;
        let sessions = Sessions::new(store.clone());
        let heads = async || {
            let rows = sessions.all(&Filter::sessions()).await.unwrap().into_iter();
            rows.map(|row| (row.session, row.head, row.updated)).collect::<Vec<_>>()
        };
        let before = heads().await;
        let all = now.check_all().await.unwrap();
        assert_eq!(
            (all.same, all.adopts, all.incompatible, all.unreadable),
            (260, 0, 0, 0),
            "{all}"
        );
        let next = next(store);
        let all = next.check_all().await.unwrap();
        assert_eq!(
            (all.same, all.adopts, all.incompatible, all.unreadable),
            (0, 3, 257, 0),
            "{all}"
        );
        let [(difference, affected)] = &all.differences.iter().collect::<Vec<_>>()[..] else {
            panic!("{all}")
        };
        assert!(difference.contains("`Sign`") && affected.sessions == 257, "{all}");
        assert!(matches!(next.check("s100").await.unwrap(), Fit::Adopts));
        let Fit::Incompatible(why) = next.check("s001").await.unwrap() else { panic!("it fits") };
        assert_eq!(heads().await, before);

        // A resume finds the same.
        let refused = next.resume("s001", Answers::none(), ()).await.unwrap_err();
        assert_eq!(refused.incompatible().unwrap().to_string(), why.to_string());
        assert_eq!(heads().await, before);
        next.resume("s100", Answers::none(), ()).await.unwrap().ended().unwrap();
    });
}
