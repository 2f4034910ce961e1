//! Stores that are wrong in one thing each, and the clause that finds each of them out.

mod due;
mod store;

use std::time::Duration;

use harness::testing::{Contract, Verdict};

use store::Wrong;

/// What a store does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    AppendsAtTheHead,
    AppliesTheSummaryOfARefusedBatch,
    LetsOldHoldersIn,
    LetsOldHoldersOfRemovedSessionsIn,
    ChecksTheLeaseBeforeTheResend,
    RefusesAResend,
    TakesAnyBatchForAResend,
    ResendBringsTheSummaryBack,
    SplitsBatches,
    ForgetsInterrupts,
    CutsAtZeroBytes,
    IgnoresCaseOfIds,
    ConfusesPrefixesOfIds,
    SessionsExistOnceClaimed,
    FreesHeldSessions,
    ReportsFormerHoldersDead,
    LeasesNeverExpire,
    ReleaseDoesNothing,
    ExpiryEndsTheLease,
    RenewsAfterTheft,
    PagesCutBatches,
    PagesMayBeEmpty,
    IgnoresTheLimit,
    PrunesAboveTheSnapshot,
    SkipsWhatWasPruned,
    LastMessageWins,
    SendsOneByOne,
    ComparesBodies,
    TakesLateAnswers,
    IgnoresExpiry,
    TakesEarlyExpiry,
    SendsToNoSession,
    HidesTheInbox,
    LosesMessagesInARush,
    RemembersNothingOfRemoval,
    FiltersByEither,
    PagesByCount,
    RepeatsTheLastRow,
    ListsClosedInterrupts,
    ReleaseHidesMessages,
    ReleaseLooksTooEarly,
    SummariesHaveEntries,
    CancelsHalfway,
    HandlesKeepACopy,
    FindsNoCrash,
    FindsDueWithoutALease,
    ClaimsHeldOnesAsDue,
    WaitsForTheHolder,
    IgnoresDueTimes,
    FindsOnlyCrashes,
    ForgetsWhatWasRead,
    FindsAll,
    IgnoresTheRequest,
    RemembersRemovedOnesAsDue,
    SharesDueSessions,
    WaitsForever,
}

use Bug::*;

/// Each with the clause that names it.
const FOUND_BY: &[(Bug, &str)] = &[
    (AppendsAtTheHead, "append-conflict-changes-nothing"),
    (AppendsAtTheHead, "concurrent-appends-one-for-each-seq"),
    (AppliesTheSummaryOfARefusedBatch, "append-conflict-changes-nothing"),
    (LetsOldHoldersIn, "append-after-another-claim-is-fenced"),
    (LetsOldHoldersOfRemovedSessionsIn, "lease-of-a-removed-session-does-not-hold-the-new-one"),
    (ChecksTheLeaseBeforeTheResend, "resend-after-losing-the-lease-is-reported-as-appended"),
    (RefusesAResend, "resend-is-reported-as-appended"),
    (TakesAnyBatchForAResend, "other-batch-after-the-same-seq-is-a-conflict"),
    (ResendBringsTheSummaryBack, "resend-does-not-bring-back-summary-and-interrupts"),
    (SplitsBatches, "pages-end-where-batches-end"),
    (ForgetsInterrupts, "append-carries-summary-and-interrupts"),
    (CutsAtZeroBytes, "entries-are-kept-byte-for-byte"),
    (IgnoresCaseOfIds, "hostile-ids-are-kept-apart"),
    (ConfusesPrefixesOfIds, "hostile-ids-are-kept-apart"),
    (SessionsExistOnceClaimed, "claim-alone-makes-no-session"),
    (FreesHeldSessions, "claim-of-a-held-session-is-busy"),
    (ReportsFormerHoldersDead, "claim-reports-what-is-known-of-the-former-holder"),
    (LeasesNeverExpire, "lease-is-free-once-it-expires-and-not-before"),
    (ReleaseDoesNothing, "release-frees-at-once"),
    (ExpiryEndsTheLease, "expired-lease-without-another-claim-still-holds"),
    (RenewsAfterTheft, "renew-after-another-claim-is-fenced"),
    (PagesCutBatches, "pages-end-where-batches-end"),
    (PagesMayBeEmpty, "page-holds-at-least-one-batch"),
    (IgnoresTheLimit, "page-holds-no-more-than-the-limit"),
    (PrunesAboveTheSnapshot, "prune-stops-at-the-last-snapshot"),
    (SkipsWhatWasPruned, "read-below-the-first-entry-kept-is-refused"),
    (LastMessageWins, "messages-first-wins"),
    (SendsOneByOne, "messages-are-sent-all-or-none"),
    (ComparesBodies, "messages-with-the-same-digest-count-as-sent"),
    (TakesLateAnswers, "answer-to-an-interrupt-that-is-not-open-is-too-late"),
    (IgnoresExpiry, "answer-after-expiry-is-too-late"),
    (TakesEarlyExpiry, "expiry-is-taken-only-after-its-time"),
    (SendsToNoSession, "send-to-a-missing-session-is-gone"),
    (HidesTheInbox, "append-renew-and-release-report-the-inbox"),
    (LosesMessagesInARush, "concurrent-sends-none-lost"),
    (RemembersNothingOfRemoval, "removed-session-is-gone"),
    (FiltersByEither, "list-filters-hold-together"),
    (PagesByCount, "list-pages-stand-though-sessions-come-and-go"),
    (RepeatsTheLastRow, "list-pages-show-each-row-once"),
    (ListsClosedInterrupts, "list-of-interrupts-follows-its-session"),
    (ReleaseHidesMessages, "append-renew-and-release-report-the-inbox"),
    (ReleaseLooksTooEarly, "message-is-seen-by-the-release-or-finds-the-lease-free"),
    (SummariesHaveEntries, "read-of-a-summary-has-no-entries-and-no-messages"),
    (CancelsHalfway, "cancelled-append-is-done-or-not"),
    (HandlesKeepACopy, "handles-see-each-others-writes"),
    (FindsNoCrash, "claim-due-finds-a-run-that-has-not-settled"),
    (FindsDueWithoutALease, "claim-due-takes-a-lease"),
    (ClaimsHeldOnesAsDue, "claim-due-leaves-held-sessions-alone"),
    (WaitsForTheHolder, "claim-due-finds-a-lease-that-has-expired"),
    (IgnoresDueTimes, "claim-due-waits-for-the-time-of-the-summary"),
    (FindsOnlyCrashes, "claim-due-finds-messages-that-were-not-read"),
    (ForgetsWhatWasRead, "claim-due-passes-over-what-the-holder-has-read"),
    (FindsAll, "claim-due-leaves-sessions-that-rest-alone"),
    (IgnoresTheRequest, "claim-due-keeps-to-its-request"),
    (RemembersRemovedOnesAsDue, "claim-due-forgets-a-removed-session"),
    (SharesDueSessions, "concurrent-claims-of-due-sessions-share-nothing"),
    (WaitsForever, "wait-for-due-ends-in-time"),
];

async fn checked(bug: Bug, clauses: Option<&str>) -> Vec<(String, Verdict)> {
    let store = Wrong::new(bug);
    let mut contract = Contract::new(move || {
        let handle = store.handle();
        async move { handle }
    });
    if let Some(clause) = clauses {
        contract = contract.only([clause]);
    }
    let report = contract.short_lease(Duration::from_millis(40)).run().await;
    report.checked.into_iter().map(|checked| (checked.clause, checked.verdict)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_wrong_store_is_found_out_by_the_clause_that_names_it() {
    let mut tasks = tokio::task::JoinSet::new();
    for (bug, clause) in FOUND_BY {
        tasks.spawn(async move { (*bug, *clause, checked(*bug, Some(clause)).await) });
    }
    let mut missed = Vec::new();
    while let Some(done) = tasks.join_next().await {
        let (bug, clause, verdicts) = done.unwrap();
        match verdicts.as_slice() {
            [(_, Verdict::Broken(why))] => println!("{bug:?}: {clause}: {why}"),
            other => missed.push(format!("{bug:?} is not found out by `{clause}`: {other:?}")),
        }
    }
    assert!(missed.is_empty(), "\n{}", missed.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_wrong_store_breaks_few_clauses_beside_its_own() {
    for (bug, clause) in [
        (HidesTheInbox, "append-renew-and-release-report-the-inbox"),
        (FiltersByEither, "list-filters-hold-together"),
    ] {
        let verdicts = checked(bug, None).await;
        let broken: Vec<_> = verdicts
            .iter()
            .filter(|(_, verdict)| matches!(verdict, Verdict::Broken(_)))
            .map(|(clause, _)| clause.as_str())
            .collect();
        assert!(broken.contains(&clause) && broken.len() <= 4, "{bug:?}: {broken:?}");
    }
}
