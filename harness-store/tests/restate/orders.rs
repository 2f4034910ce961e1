//! The loop of the tests: effects, a question between them, items one after the other, an end.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use harness::prelude::*;

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Order {
    #[state(reduce = append)]
    pub(crate) done: Vec<String>,
    #[state(reduce = add)]
    pub(crate) sum: u32,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool)]
pub(crate) struct Send {
    pub(crate) to: String,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Pay,
    Pack,
    Close,
}

/// When a process dies.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Death {
    Before(usize),
    After(usize),
}

/// What the steps have done to the world: the lines of a file, which survives every process.
#[derive(Clone)]
pub(crate) struct World {
    file: Arc<PathBuf>,
    death: Option<Death>,
}

impl World {
    pub(crate) fn new(file: impl AsRef<Path>) -> Self {
        Self { file: Arc::new(file.as_ref().to_owned()), death: None }
    }

    pub(crate) fn dies(self, death: Death) -> Self {
        Self { death: Some(death), ..self }
    }

    pub(crate) fn act(&self, what: &str) {
        let number = self.lines().len() + 1;
        if matches!(self.death, Some(Death::Before(at)) if at == number) {
            die();
        }
        let mut file = OpenOptions::new().append(true).create(true).open(&*self.file).unwrap();
        file.write_all(format!("{what}\n").as_bytes()).unwrap();
        if matches!(self.death, Some(Death::After(at)) if at == number) {
            die();
        }
    }

    /// The effects so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&*self.file).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

/// As `kill -9` does.
pub(crate) fn die() {
    let own = rustix::process::getpid();
    rustix::process::kill_process(own, rustix::process::Signal::KILL).unwrap();
    loop {
        std::thread::park();
    }
}

#[derive(Context)]
pub(crate) struct Ctx {
    #[slot(runtime)]
    world: World,
}

pub(crate) fn slots(world: &World) -> <Ctx as Context>::Runtime {
    Ctx::runtime().world(world.clone()).build()
}

/// Three effects with a question between them.
async fn pay(_: View<Order>, cx: Cx<Ctx>) -> StepResult<Order> {
    let effect = |name: &'static str| {
        let world = cx.world.clone();
        async move || {
            world.act(name);
            Ok(name.to_owned())
        }
    };
    let reserved = cx.once("reserve", effect("reserve")).await?;
    let paid = cx.once("pay", effect("pay")).await?;
    let send = cx.ask("send", Send { to: "sam".into() }).await?;
    let sent = cx.once("send", effect("send")).await?;
    Ok(Order::update().done([reserved, paid, format!("{sent} {send}")]))
}

pub(crate) fn agent(name: &str) -> Agent<Ctx, Order> {
    Harness::<Ctx, Order>::builder("orders")
        .start(Step::Pay)
        .steps(|define, step| match step {
            Step::Pay => define.run(pay).then(Step::Pack),
            Step::Pack => define
                .each(|_: View<Order>, _| async { Ok(vec![1_u32, 2, 3]) })
                .concurrency(1)
                .run(|part: u32, _, cx: Cx<Ctx>| async move {
                    let world = cx.world.clone();
                    cx.once("pack", async move || {
                        world.act(&format!("pack {part}"));
                        Ok(part)
                    })
                    .await
                })
                .fold(|_, parts: Vec<u32>| Ok(Order::update().sum(parts.into_iter().sum())))
                .then(Step::Close),
            Step::Close => {
                define.run(|_, _| async { Ok(Order::update().done(["closed".to_owned()])) }).end()
            }
        })
        .build()
        .unwrap()
        .agent(name, ())
}

/// What the loop ends with, if the answer is yes.
pub(crate) fn expected() -> Order {
    let done = ["reserve", "pay", "send true", "closed"].map(str::to_owned).to_vec();
    Order { done, sum: 6 }
}

/// The effects of the whole loop, in alphabetical order.
pub(crate) fn effects() -> Vec<String> {
    ["pack 1", "pack 2", "pack 3", "pay", "reserve", "send"].map(str::to_owned).to_vec()
}
