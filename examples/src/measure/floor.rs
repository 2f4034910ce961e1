//! The floor: the loop as one writes it by hand, with boxed futures and a typed partial update.

use std::future::Future;
use std::pin::Pin;

pub(super) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

#[derive(Clone, Copy)]
enum At {
    Think,
    Act,
    Done,
}

/// A counter, thought about and acted on.
#[derive(Default)]
pub(super) struct Count {
    pub(super) thoughts: u64,
    pub(super) acts: u64,
}

#[derive(Default)]
struct Update {
    thoughts: Option<u64>,
    acts: Option<u64>,
}

impl Count {
    fn apply(&mut self, update: Update) {
        self.thoughts += update.thoughts.unwrap_or(0);
        self.acts += update.acts.unwrap_or(0);
    }
}

type Body = Box<dyn for<'a> Fn(&'a Count) -> BoxFuture<'a, Result<Update, std::io::Error>>>;

pub(super) async fn run(steps: u64) -> Result<Count, std::io::Error> {
    let think: Body = Box::new(|_| {
        Box::pin(async { Ok(Update { thoughts: Some(1), ..Update::default() }) })
    });
    let act: Body =
        Box::new(|_| Box::pin(async { Ok(Update { acts: Some(1), ..Update::default() }) }));
    let mut count = Count::default();
    let mut at = At::Think;
    loop {
        at = match at {
            At::Think => {
                let update = think(&count).await?;
                count.apply(update);
                if count.thoughts + count.acts >= steps { At::Done } else { At::Act }
            }
            At::Act => {
                let update = act(&count).await?;
                count.apply(update);
                At::Think
            }
            At::Done => return Ok(count),
        };
    }
}
