//! What the tests of the contract have in common.

use harness::store::SessionStore;
use harness::testing::{Call, Contract, Faulty, Report, Verdict};

/// Everything was kept, and checked but for damage that cannot be done: a database drops what of its
/// log is not whole, and a newer format is one of all its sessions.
pub(crate) fn is_kept_by_a_database(report: &Report) {
    report.assert();
    let skipped: Vec<_> = report
        .checked
        .iter()
        .filter(|checked| checked.verdict != Verdict::Kept)
        .map(|checked| checked.clause.as_str())
        .collect();
    let no_such_damage =
        ["torn-tail-is-set-aside", "newer-format-is-reported", "newer-format-is-left-alone"];
    assert_eq!(skipped, no_such_damage, "{report}");
}

/// Clones of one store share its leases.
pub(crate) async fn by_clones(store: impl SessionStore + Clone) {
    let again = move || {
        let store = store.clone();
        async move { store }
    };
    Contract::new(again).check().await;
}

/// The wrapper changes nothing while no call fails.
pub(crate) async fn where_calls_may_fail<S, Fut>(
    open: impl Fn() -> Fut + Clone + Send + Sync + 'static,
) where
    S: SessionStore,
    Fut: Future<Output = S> + Send + 'static,
{
    let wrapped = move || {
        let opened = open();
        async move {
            let store = Faulty::new(opened.await);
            store.faults().before(Call::Append, |_| false);
            store
        }
    };
    Contract::new(wrapped).check().await;
}
