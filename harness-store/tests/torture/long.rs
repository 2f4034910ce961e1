//! A long session: its last steps cost what its first ones do.

use std::path::Path;

use harness::prelude::*;
use harness::{Durability, Sessions};

use crate::child::{Other, say};
use crate::place::{Place, report};
use crate::store::{Kind, Store};
use crate::work::{open, runtime};

/// The steps of the first and of the last turn, which are measured.
const FEW: u64 = 1_000;
const STEPS: u64 = 100_000;

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Tally {
    #[state(reduce = add)]
    done: u64,
    /// Where the turn ends.
    until: u64,
    /// What the process had read and written at the first step of the turn.
    begun: u64,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Tick,
}

#[derive(Signal, Clone, Copy, Debug)]
enum Next {
    Again,
    Over,
}

/// How many bytes this process has read from files, and written to them.
fn bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/io").unwrap();
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().parse::<u64>().unwrap()
    };
    of("rchar:") + of("wchar:")
}

async fn tick(tally: View<Tally>, _: Cx<()>) -> StepResult<Tally> {
    let left = tally.until - tally.done;
    if left == 1 && tally.begun > 0 {
        say(&format!("bytes {}", bytes() - tally.begun));
    }
    // The first step of a turn that is measured.
    Ok(match left == FEW {
        true => Tally::update().done(1).begun(bytes()),
        false => Tally::update().done(1),
    })
}

fn agent(store: Store) -> Agent<(), Tally> {
    Harness::<(), Tally>::builder("long")
        .start(Step::Tick)
        .budget(Budget::steps(10 * STEPS))
        .steps(|define, Step::Tick| {
            define.run(tick).route(
                |tally: &Tally| if tally.done < tally.until { Next::Again } else { Next::Over },
                |next| match next {
                    Next::Again => to(Step::Tick),
                    Next::Over => end(),
                },
            )
        })
        .build()
        .unwrap()
        .agent("long", ())
        .store(store)
}

/// Runs the turns of one session. What it measures of a process is of no other test.
pub async fn walker(dir: &Path) {
    let agent = agent(open(dir, false).await);
    for (until, durability) in [
        (FEW, Durability::Step),
        // Written in fewer appends: it is what the last turn follows.
        (STEPS - FEW, Durability::Settle),
        (STEPS, Durability::Step),
    ] {
        let agent = agent.clone().durability(durability);
        let run = agent.run(Tally::update().until(until).begun(0), ()).session("long");
        run.await.unwrap().ended().unwrap();
    }
    say("over");
}

#[test]
fn the_last_of_100_000_steps_costs_what_the_first_did() {
    long(Kind::Files);
}

#[cfg(feature = "sqlite")]
#[test]
fn in_a_database_the_last_of_100_000_steps_costs_what_the_first_did() {
    long(Kind::Sqlite);
}

fn long(kind: Kind) {
    let _alone = crate::alone();
    let dir = Place::new("long", None);
    kind.choose(dir.path());
    let (status, said) = Other::start("walker", dir.path(), &[]).end();
    assert!(status.success(), "{status}: {said:?}");
    let bytes: Vec<u64> =
        said.iter().filter_map(|line| line.strip_prefix("bytes ")?.parse().ok()).collect();
    // The turn between them is written when it settles.
    let [first, _, last] = bytes[..] else { panic!("{said:?}") };
    runtime().block_on(async {
        let sessions = Sessions::new(open(dir.path(), false).await);
        let status = sessions.status("long").await.unwrap();
        assert!(status.head.0 > STEPS, "{status:?}");
        assert_eq!(sessions.state("long").await.unwrap()["done"], STEPS);
    });
    report(&format!(
        "long, {kind:?}: {} bytes for each of the first {FEW} steps, {} for each of the last",
        first / FEW,
        last / FEW,
    ));
    assert!(last < 2 * first, "{last} bytes for the last {FEW} steps, {first} for the first");
}
