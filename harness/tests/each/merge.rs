//! Items whose results are updates.

use harness::FailureKind;
use harness::prelude::*;
use harness::store::MemoryStore;

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Site {
    pages: Vec<String>,
    #[state(reduce = append)]
    sizes: Vec<usize>,
    #[state(reduce = add)]
    total: usize,
    #[serde(rename = "theTitle")]
    title: Option<String>,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Fetch,
}

fn harness() -> Harness<(), Site> {
    Harness::<(), Site>::builder("site")
        .start(Step::Fetch)
        .steps(|define, step| match step {
            Step::Fetch => define
                .each(|site, _| async move { Ok(site.pages.clone()) })
                .run(|page: String, _, _| async move {
                    let update = Site::update().sizes([page.len()]).total(page.len());
                    Ok(match page.strip_prefix('!') {
                        Some("none") => update.title(None),
                        Some(title) => update.title(Some(title.to_owned())),
                        None => update,
                    })
                })
                .merge()
                .end(),
        })
        .build()
        .unwrap()
}

async fn run(pages: &[&str], stored: bool) -> Outcome<Site> {
    let agent = harness().agent("a", ());
    let agent = if stored { agent.store(MemoryStore::new()) } else { agent };
    let pages = pages.iter().map(|page| (*page).to_owned());
    agent.run(Site::update().pages(pages.collect::<Vec<_>>()), ()).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn updates_of_items_are_folded_in_their_order() {
    for stored in [false, true] {
        let site = run(&["a", "!bcd", "ef"], stored).await.ended().unwrap().state;
        assert_eq!((&site.sizes[..], site.total), (&[1, 4, 2][..], 7));
        assert_eq!(site.title.as_deref(), Some("bcd"));
    }
}

#[tokio::test(start_paused = true)]
async fn two_items_that_set_one_field_fail_and_name_it() {
    for (stored, second) in [(false, "!y"), (true, "!y"), (true, "!none")] {
        let Outcome::Failed(failed) = run(&["a", "!x", "b", second], stored).await else {
            panic!()
        };
        assert_eq!(failed.failure.kind, FailureKind::ItemConflict);
        let said = &failed.failure.message;
        assert!(said.contains("items 1 and 3") && said.contains("itle"), "{said}");
        assert_eq!(failed.state.unwrap().total, 0);
    }
}
