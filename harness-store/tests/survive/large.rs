//! Sessions whose states are large.

use harness::prelude::*;

use crate::rig::{files, open, sessions};

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Large {
    text: String,
    #[state(reduce = append)]
    items: Vec<String>,
    small: u32,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Fill,
    Count,
}

#[derive(Signal, Clone, Copy, Debug)]
enum Go {
    On,
    Out,
}

const TEXT: usize = 30 << 20;
const ITEMS: usize = 20_000;
const ITEM: usize = 1_000;

fn harness() -> Harness<(), Large> {
    Harness::<(), Large>::builder("large")
        .start(Step::Fill)
        .steps(|define, step| match step {
            Step::Fill => define
                .run(|large: View<Large>, _| async move {
                    if !large.text.is_empty() {
                        return Ok(Large::update());
                    }
                    let items = (0..ITEMS).map(|number| format!("{number:>ITEM$}"));
                    Ok(Large::update().text("t".repeat(TEXT)).items(items.collect::<Vec<_>>()))
                })
                .then(Step::Count),
            Step::Count => {
                define
                    .run(|large: View<Large>, _| async move {
                        Ok(Large::update().small(large.small + 1))
                    })
                    .route(
                        |large: &Large| {
                            if large.small.is_multiple_of(100) { Go::Out } else { Go::On }
                        },
                        |go| match go {
                            Go::On => to(Step::Count),
                            Go::Out => end(),
                        },
                    )
            }
        })
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_state_of_50_megabytes_is_written_once() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = || -> u64 {
        ["log", "checkpoint", "lease", "next"]
            .iter()
            .flat_map(|kind| files(dir.path(), kind))
            .map(|file| file.metadata().unwrap().len())
            .sum()
    };
    let agent = harness().agent("a", ()).store(open(dir.path()).await);
    let ended = agent.run(Large::update(), ()).session("s").await.unwrap().ended().unwrap();
    let size = (TEXT + ITEMS * ITEM) as u64;
    assert_eq!((ended.state.small, ended.state.items.len()), (100, ITEMS));
    let begun = bytes();
    assert!(begun < size + size / 5, "{begun} bytes for a state of {size}");
    drop((agent, ended));

    // It is opened again, and a hundred commits of a small field write no more than that.
    let store = open(dir.path()).await;
    let agent = harness().agent("a", ()).store(store.clone());
    let ended = agent.run(Large::update(), ()).session("s").await.unwrap().ended().unwrap();
    assert_eq!((ended.state.small, ended.state.text.len()), (200, TEXT));
    let more = bytes() - begun;
    assert!(more < 40_000, "{more} bytes");
    let status = sessions(&store).status("s").await.unwrap();
    assert_eq!(status.turn, 2);
}
