//! The floor: the loop written by hand, with boxed futures and a typed partial update. A table of
//! steps, each with its body and its route.

use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;

pub(super) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A counter of two steps.
#[derive(Default)]
pub(super) struct Count {
    pub(super) thoughts: u64,
    pub(super) acts: u64,
}

#[derive(Default)]
pub(super) struct Update {
    pub(super) thoughts: Option<u64>,
    pub(super) acts: Option<u64>,
}

impl Count {
    pub(super) fn apply(&mut self, update: &Update) {
        self.thoughts += update.thoughts.unwrap_or(0);
        self.acts += update.acts.unwrap_or(0);
    }
}

pub(super) type Error = Box<dyn std::error::Error + Send + Sync>;
type Body = Box<dyn for<'a> Fn(&'a Count) -> BoxFuture<'a, Result<Update, Error>> + Send + Sync>;
type Route = Box<dyn Fn(&Count) -> Option<usize> + Send + Sync>;

async fn think(_count: &Count) -> Result<Update, Error> {
    Ok(Update { thoughts: Some(1), ..Update::default() })
}

async fn act(_count: &Count) -> Result<Update, Error> {
    Ok(Update { acts: Some(1), ..Update::default() })
}

/// Think, act, think, until there are enough of them.
pub(super) fn table(steps: u64) -> Vec<(Body, Route)> {
    let enough = move |count: &Count| (count.thoughts + count.acts < steps).then_some(1);
    let table: Vec<(Body, Route)> = vec![
        (Box::new(|count| Box::pin(think(count))), Box::new(enough)),
        (Box::new(|count| Box::pin(act(count))), Box::new(|_| Some(0))),
    ];
    // The compiler does not know a program's steps where its loop is compiled.
    black_box(table)
}

pub(super) async fn run(steps: u64) -> Result<Count, Error> {
    let table = table(steps);
    let mut count = Count::default();
    let mut at = Some(0);
    while let Some((body, route)) = at.and_then(|at| table.get(at)) {
        let update = body(&count).await?;
        count.apply(&update);
        at = route(&count);
    }
    Ok(count)
}
