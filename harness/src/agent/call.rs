//! A step that calls another agent.

use std::future::ready;
use std::sync::Arc;

use crate::context::{Context, RuntimeSlots, When};
use crate::declare::{Define, NeedsThenEndOrRoute, OfStep};
use crate::recovery::{attach, encoded};
use crate::run::{Attach, Call, Kind, Outcome, RunError};
use crate::state::{State, of_json};
use crate::step::{BoxFuture, Cx};

use super::Agent;

impl<C: Context> Cx<C> {
    /// Runs another agent to the end of a turn, as a *child* of this session, and returns how it ended.
    /// `slots` are the runtime slots of that agent (`()` if it has none).
    ///
    /// The child is a session of its own in this session's store. Its id is saved before it starts: a
    /// later attempt of the step, in this process or another, attaches to it, and it never starts
    /// twice. How it ended is recorded here. What it spends counts as spent here, once, and it stops at
    /// its next boundary when that reaches the budget. Observers of this run receive its events, with
    /// this run as their [parent](crate::observe::Event::parent). A stop and a cancel of this run reach
    /// it, and a time-out of the step cancels it.
    ///
    /// If the child asks or sleeps, this does not resolve: the step is dropped, and entered again from
    /// its start when it is resumed. The run settles as [waiting](crate::Outcome::Waiting), and the
    /// question stands in the child's session alone. When the child's turn is over, a message to this
    /// session makes it due for [workers](crate::worker).
    ///
    /// ```
    /// # use harness::prelude::*;
    /// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
    /// # struct Search { topic: String, facts: Vec<String> }
    /// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
    /// # struct Report { topic: String, facts: Vec<String> }
    /// # #[derive(StepId, Clone, Debug, PartialEq, Eq)] enum Step { Work }
    /// # async fn look_up(search: View<Search>, _: Cx<()>) -> StepResult<Search> {
    /// #     Ok(Search::update().facts(vec![format!("{} is old", search.topic)]))
    /// # }
    /// #[derive(Context)]
    /// struct Ctx {
    ///     #[slot(required)]
    ///     researcher: Agent<(), Search>,
    /// }
    ///
    /// async fn write(report: View<Report>, cx: Cx<Ctx>) -> StepResult<Report> {
    ///     let input = Search::update().topic(report.topic.clone());
    ///     let found = cx.call(&cx.researcher, input, ()).await?;
    ///     Ok(Report::update().facts(found.state.facts))
    /// }
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let search = Harness::<(), Search>::builder("search").start(Step::Work)
    /// #     .steps(|define, step| match step { Step::Work => define.run(look_up).end() }).build()?;
    /// # let writing = Harness::<Ctx, Report>::builder("report").start(Step::Work)
    /// #     .steps(|define, step| match step { Step::Work => define.run(write).end() }).build()?;
    /// let researcher = search.agent("researcher", ());
    /// let writer = writing.agent("writer", Ctx::required().researcher(researcher).build());
    /// let ended = writer.run(Report::update().topic("Bern"), ()).await?.ended()?;
    /// assert_eq!(ended.state.facts, ["Bern is old"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`CallError`](crate::run::CallError) if the child failed or reached its own budget: the turn of
    /// the child is over, and a retry of the step starts another child. Also if the child could not
    /// run, a key is used twice, the input is another than before, or more than 16 sessions are above
    /// the child.
    pub fn call<D: Context, S: State>(
        &self,
        agent: &Agent<D, S>,
        input: S::Update,
        slots: impl RuntimeSlots<D>,
    ) -> Call<S> {
        let (child, slots) = (agent.clone(), slots.filled());
        let input = encoded::<S>(&input).map_err(RunError::from);
        let launch = Box::new(move |attach| child.attach(attach, slots));
        let has_slots = D::slots().iter().any(|slot| slot.when == When::Runtime);
        Call::new(self.here(), agent.id().clone(), input, has_slots, launch)
    }
}

impl<C: Context, S: State> Agent<C, S> {
    /// Runs a child where its parent runs.
    fn attach(&self, to: Attach, slots: C::Runtime) -> BoxFuture<Result<Outcome<S>, RunError>> {
        let mut options = self.options();
        options.session = Ok(to.session().clone());
        options.detached = true;
        let (mut launched, _) = options.launch(None);
        to.prepare(&mut launched);
        let Some((store, ttl, durability)) = to.store else {
            let input = match of_json::<S::Update, _>(to.input) {
                Ok(input) => input,
                Err(error) => {
                    let kind = Kind::InputNotEncodable(error.to_string());
                    return Box::pin(ready(Err(kind.into())));
                }
            };
            return self.boxed(launched, slots, |agent, run| agent.begin(input, run));
        };
        let storage = self.inner.stored.of_child(store, durability, ttl);
        let taker = self.taker(storage, slots, launched);
        Box::pin(attach(taker, to.input, to.parent))
    }
}

impl<C: Context, S: State, St> Define<C, S, St> {
    /// A step that [calls](Cx::call) another agent: `input` makes its input and its runtime slots (`()`
    /// if it has none), and `update` makes an update of the state it ended with. `input` may run again:
    /// it makes the same input of the same state.
    ///
    /// ```
    /// # use harness::prelude::*;
    /// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
    /// # struct Search { topic: String, facts: Vec<String> }
    /// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
    /// # struct Report { topic: String, facts: Vec<String> }
    /// # #[derive(StepId, Clone, Debug, PartialEq, Eq)] enum Step { Work }
    /// # async fn look_up(search: View<Search>, _: Cx<()>) -> StepResult<Search> {
    /// #     Ok(Search::update().facts(vec![format!("{} is old", search.topic)]))
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let search = Harness::<(), Search>::builder("search").start(Step::Work)
    /// #     .steps(|define, step| match step { Step::Work => define.run(look_up).end() }).build()?;
    /// let researcher = search.agent("researcher", ());
    /// let report = Harness::<(), Report>::builder("report")
    ///     .start(Step::Work)
    ///     .steps(|define, step| match step {
    ///         Step::Work => define
    ///             .child(
    ///                 &researcher,
    ///                 |report, _cx| (Search::update().topic(report.topic.clone()), ()),
    ///                 |found| Report::update().facts(found.facts),
    ///             )
    ///             .end(),
    ///     })
    ///     .build()?;
    /// let run = report.agent("writer", ()).run(Report::update().topic("Bern"), ());
    /// assert_eq!(run.await?.ended()?.state.facts, ["Bern is old"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[track_caller]
    pub fn child<D, T, R, F, G>(
        self,
        agent: &Agent<D, T>,
        input: F,
        update: G,
    ) -> NeedsThenEndOrRoute<C, S, St, OfStep>
    where
        D: Context,
        T: State,
        R: RuntimeSlots<D> + Send,
        F: Fn(&S, &Cx<C>) -> (T::Update, R) + Send + Sync + 'static,
        G: Fn(T) -> S::Update + Send + Sync + 'static,
    {
        let (agent, update) = (agent.clone(), Arc::new(update));
        self.run(move |state, cx: Cx<C>| {
            let update = Arc::clone(&update);
            let (given, slots) = input(&state, &cx);
            let call = cx.call(&agent, given, slots);
            async move { Ok(update(call.await?.state)) }
        })
    }
}
