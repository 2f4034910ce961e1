//! What the contracts of stores and adapters share: their clauses, and which of them are checked.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::report::{Checked, Report, Verdict};
use super::stop::{Kept, Stop};

/// How long a clause may take; then what is checked counts as stuck.
const PATIENCE: Duration = Duration::from_secs(60);

/// A promise and how to ask for it.
pub(super) struct Clause<W> {
    /// Stays as it is: people name it where they leave it out.
    pub(super) name: &'static str,
    pub(super) run: fn(W) -> BoxFuture<'static, Kept>,
}

/// The clauses of a module: each a name and an async function.
macro_rules! clauses {
    ($($name:literal => $run:ident,)*) => {
        pub(super) const CLAUSES: &[crate::testing::suite::Clause<super::World>] = &[
            $(crate::testing::suite::Clause { name: $name, run: |world| Box::pin($run(world)) },)*
        ];
    };
}

pub(super) use clauses;

/// Which clauses are checked.
#[derive(Clone, Debug, Default)]
pub(super) struct Selection {
    only: Option<Vec<String>>,
    /// Why a clause is left out.
    skip: BTreeMap<String, String>,
}

impl Selection {
    pub(super) fn only(&mut self, names: impl IntoIterator<Item = impl Into<String>>) {
        self.only = Some(names.into_iter().map(Into::into).collect());
    }

    pub(super) fn skip(&mut self, name: impl Into<String>, why: impl Into<String>) {
        self.skip.insert(name.into(), why.into());
    }

    /// Checks the clauses of a subject, each in a world of its own.
    pub(super) async fn run<W: 'static, F: Future<Output = W>>(
        &self,
        subject: &str,
        clauses: impl Iterator<Item = &'static Clause<W>>,
        world: impl Fn() -> F,
    ) -> Report {
        let clauses: Vec<_> = clauses.collect();
        // A suite that checks nothing because of a slip of the pen must not look like a success.
        let given = self.only.iter().flatten().chain(self.skip.keys());
        let unknown = given.filter(|name| clauses.iter().all(|clause| clause.name != **name));
        let broken = || Verdict::Broken("there is no clause of this name".into());
        let checked = unknown.map(|name| Checked { clause: name.clone(), verdict: broken() });
        let mut checked: Vec<_> = checked.collect();
        for Clause { name, run } in clauses {
            if self.only.as_ref().is_some_and(|only| only.iter().all(|only| only != name)) {
                continue;
            }
            let verdict = match self.skip.get(*name) {
                Some(why) => Verdict::Skipped(why.clone()),
                None => verdict(subject, run(world().await)).await,
            };
            checked.push(Checked { clause: (*name).into(), verdict });
        }
        Report { checked }
    }
}

async fn verdict(subject: &str, clause: BoxFuture<'static, Kept>) -> Verdict {
    match tokio::time::timeout(PATIENCE, AssertUnwindSafe(clause).catch_unwind()).await {
        Ok(Ok(Ok(()))) => Verdict::Kept,
        Ok(Ok(Err(Stop::Broken(why)))) => Verdict::Broken(why),
        Ok(Ok(Err(Stop::Skipped(why)))) => Verdict::Skipped(why),
        Ok(Err(_)) => Verdict::Broken(format!("{subject} panicked")),
        Err(_) => Verdict::Broken(format!("{subject} did not answer within {PATIENCE:?}")),
    }
}
