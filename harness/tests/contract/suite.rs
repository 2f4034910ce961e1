//! What the suite itself must not do: look like a success when nothing was checked.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use async_trait::async_trait;
use harness::SessionId;
use harness::store::{
    Appended, Batch, Claimed, DueRequest, DueSessions, Filter, InboxSeq, Lease, Listing,
    MemoryStore, Message, Page, ReadRequest, Released, Remove, Sent, SessionStore, StoreError,
};
use harness::testing::{Call, Checked, Contract, Faulty, Report, Verdict};

fn contract() -> Contract {
    let store = MemoryStore::new();
    Contract::new(move || {
        let store = store.clone();
        async move { store }
    })
}

#[tokio::test]
async fn a_name_that_no_clause_has_is_a_failure() {
    let report = contract().only(["messages-first-winz"]).run().await;
    assert_eq!(report.broken().collect::<Vec<_>>(), ["messages-first-winz"]);
    let report = contract().only(["messages-first-wins"]).skip("nothing", "slip").run().await;
    assert_eq!(report.broken().collect::<Vec<_>>(), ["nothing"]);
}

#[tokio::test]
async fn what_is_left_out_is_said() {
    let name = "messages-first-wins";
    let report = contract().only([name]).skip(name, "not yet").run().await;
    assert_eq!(
        report.checked,
        [Checked { clause: name.into(), verdict: Verdict::Skipped("not yet".into()) }]
    );
    let text = "skipped messages-first-wins: not yet\n0 of 1 clauses are kept";
    assert_eq!(report.to_string(), text);
}

#[test]
fn a_broken_clause_panics_with_its_name_and_reason() {
    let checked = vec![Checked { clause: "x-is-y".into(), verdict: Verdict::Broken("z".into()) }];
    let report = Report { checked };
    let panic = catch_unwind(AssertUnwindSafe(|| report.assert())).unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(text.contains("broken  x-is-y: z"), "{text}");
}

#[test]
fn clauses_have_names_of_their_own() {
    let names: Vec<_> = Contract::clauses().collect();
    let own: std::collections::HashSet<_> = names.iter().collect();
    assert_eq!(own.len(), names.len());
    let kebab = |name: &str| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    assert!(names.iter().all(|name| kebab(name)), "{names:?}");
}

#[tokio::test]
async fn handles_that_share_nothing_are_found_out() {
    let report = Contract::new(|| async { MemoryStore::new() })
        .only(["handles-see-each-others-writes"])
        .run()
        .await;
    assert_eq!(report.broken().count(), 1);
}

#[tokio::test]
async fn a_store_that_fails_breaks_the_clause_with_its_error() {
    let report = Contract::new(|| async {
        let store = Faulty::new(MemoryStore::new());
        store.faults().before(Call::Send, |_| true);
        store
    })
    .only(["messages-first-wins"])
    .run()
    .await;
    let [Checked { verdict: Verdict::Broken(why), .. }] = report.checked.as_slice() else {
        panic!("{report}");
    };
    assert!(why.contains("a test fails this Send"), "{why}");
}

/// Does nothing well.
struct Unfit {
    hangs: bool,
}

#[async_trait]
impl SessionStore for Unfit {
    async fn claim(&self, _: &SessionId, _: Duration) -> Result<Claimed, StoreError> {
        if self.hangs {
            std::future::pending::<()>().await;
        }
        panic!("unfit")
    }

    async fn claim_due(&self, _: &DueRequest, _: Duration) -> Result<DueSessions, StoreError> {
        unreachable!()
    }

    async fn renew(&self, _: &Lease, _: Duration) -> Result<InboxSeq, StoreError> {
        unreachable!()
    }

    async fn release(&self, _: &Lease, _: InboxSeq) -> Result<Released, StoreError> {
        unreachable!()
    }

    async fn append(&self, _: &Lease, _: Batch<'_>) -> Result<Appended, StoreError> {
        unreachable!()
    }

    async fn send(&self, _: &SessionId, _: &[Message]) -> Result<Sent, StoreError> {
        unreachable!()
    }

    async fn read(&self, _: &SessionId, _: ReadRequest) -> Result<Option<Page>, StoreError> {
        Ok(None)
    }

    async fn list(&self, _: &Filter, _: Option<&[u8]>, _: u32) -> Result<Listing, StoreError> {
        Ok(Listing::default())
    }

    async fn remove(&self, _: &Lease, _: Remove) -> Result<(), StoreError> {
        unreachable!()
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_panics_or_hangs_breaks_the_clause_and_not_the_suite() {
    for (hangs, expected) in [(false, "the store panicked"), (true, "did not answer within")] {
        let report = Contract::new(move || async move { Unfit { hangs } })
            .only(["missing-session-is-none", "messages-first-wins"])
            .run()
            .await;
        let verdicts: Vec<_> = report.checked.iter().map(|checked| &checked.verdict).collect();
        assert_eq!(verdicts.first(), Some(&&Verdict::Kept));
        let found = format!("{:?}", verdicts.last());
        assert!(found.contains(expected), "{found}");
    }
}
