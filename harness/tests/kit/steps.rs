//! One step alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use harness::llm::Scripted;
use harness::llm::scripted::say;
use harness::prelude::*;
use harness::state::Edits;
use harness::testing::{self, TestError};
use harness::{FailureKind, llm};

/// Records something else than it does.
fn wrong(notes: &mut Vec<String>, note: String) -> Edits {
    notes.push(note);
    Edits::record(|log| log.push("something else"))
}

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Order {
    #[state(reduce = add)]
    total: u32,
    receipt: Option<String>,
    rate: f64,
    #[state(reduce = wrong, update = String)]
    notes: Vec<String>,
}

#[derive(Question, Serialize, Deserialize, Debug, PartialEq)]
#[question(answer = bool)]
struct Pay {
    total: u32,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = String)]
struct Name;

#[derive(Debug, PartialEq, Serialize)]
struct Progress(u8);

async fn pay(order: View<Order>, cx: Cx<()>) -> StepResult<Order> {
    cx.emit(Progress(1));
    let total = order.total;
    if !cx.ask("pay", Pay { total }).await? {
        return Err(StepError::fatal("not approved").code("denied"));
    }
    let receipt = cx.once("charge", async move || Ok(format!("paid {total}"))).await?;
    cx.emit(Progress(2));
    Ok(Order::update().receipt(receipt).total(1))
}

fn order() -> Order {
    Order { total: 40, ..Order::default() }
}

#[tokio::test]
async fn a_step_is_entered_once_with_its_answers() {
    let paid = testing::step(pay).state(order()).answer("pay", true).await.unwrap();
    let paid = paid.done().unwrap();
    assert_eq!((paid.state.total, paid.state.receipt.as_deref()), (41, Some("paid 40")));
    assert_eq!(paid.question("pay"), Some(Pay { total: 40 }));
    assert_eq!(paid.effects(), ["charge"]);
    assert_eq!(paid.effect::<String>("charge").as_deref(), Some("paid 40"));
    assert_eq!(paid.emitted::<Progress>(), [&Progress(1), &Progress(2)]);
    assert_eq!(paid.open().count(), 0);
}

#[tokio::test]
async fn a_failure_is_a_value() {
    let denied = testing::step(pay).state(order()).answer("pay", false).await.unwrap();
    assert_eq!(denied.code(), Some("denied"));
    assert_eq!(denied.state, order());
    assert!(denied.effects().is_empty());
    let refused = denied.done().unwrap_err();
    assert!(refused.to_string().starts_with("the step failed: "), "{refused}");
}

#[tokio::test]
async fn a_panic_is_a_failure() {
    async fn panics(_: View<Order>, _: Cx<()>) -> StepResult<Order> {
        panic!("boom")
    }
    let failure = testing::step(panics).await.unwrap().failure.unwrap();
    assert_eq!(failure.kind, FailureKind::Panic);
    assert!(failure.message.contains("boom"), "{failure}");
}

#[tokio::test]
async fn a_question_without_an_answer_ends_the_step_there() {
    let asked = testing::step(pay).state(order()).await.unwrap();
    assert_eq!(asked.open().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["pay"]);
    assert_eq!(asked.state, order());
    assert!(asked.failure.is_none());
    let waits = asked.done().unwrap_err().to_string();
    assert_eq!(waits, "the step waits for an answer to `pay` (`pay`)");
}

#[tokio::test]
async fn no_default_stands_in_for_an_answer() {
    async fn denies(_: View<Order>, cx: Cx<()>) -> StepResult<Order> {
        let (said, _) = tokio::join!(
            async { tokio::time::timeout(Duration::ZERO, cx.ask("pay", Pay { total: 1 })).await },
            cx.once("slow", async || {
                tokio::task::yield_now().await;
                Ok(1)
            }),
        );
        Ok(Order::update().receipt(format!("{}", said.is_ok())))
    }
    let asked = testing::step(denies).await.unwrap();
    assert_eq!(asked.state.receipt, None);
    assert_eq!(asked.open().count(), 1);
    // An effect that has begun is waited for.
    assert_eq!(asked.effects(), ["slow"]);
}

#[tokio::test]
async fn answers_that_are_not_used_are_an_error() {
    let unused = |error: TestError| {
        assert!(error.is_unused());
        error.to_string()
    };
    let once = testing::step(pay).answer("pay", true).answer("name", "Ada").await.unwrap_err();
    assert_eq!(
        unused(once),
        "the scripted answer to `name` was not used: the step asked only `pay` (remove them, or \
         correct who asks)"
    );
    let typo = testing::step(pay).answer("pya", true).await.unwrap_err();
    assert!(unused(typo).contains("the step waits for an answer to `pay`"));
}

#[tokio::test]
async fn an_answer_of_another_type_names_its_key() {
    let wrong = testing::step(pay).answer("pay", "yes").await.unwrap_err();
    assert!(wrong.is_wrong_answer());
    let text = wrong.to_string();
    assert!(text.starts_with("the answer to `pay` does not fit its question `pay`: "), "{text}");
    let nan = testing::step(pay).answer("pay", f64::NAN).await.unwrap_err();
    assert!(nan.to_string().starts_with("the answer to `pay` cannot be encoded: "), "{nan}");
}

#[tokio::test]
async fn a_key_that_is_used_twice_fails_as_in_a_run() {
    async fn twice(_: View<Order>, cx: Cx<()>) -> StepResult<Order> {
        cx.ask("name", Name).await?;
        cx.ask("name", Name).await?;
        Ok(Order::update())
    }
    async fn again(_: View<Order>, cx: Cx<()>) -> StepResult<Order> {
        cx.once("k", async || Ok(1)).await?;
        cx.once("k", async || Ok(2)).await?;
        Ok(Order::update())
    }
    let failure = testing::step(twice).answer("name", "Ada").await.unwrap().failure.unwrap();
    assert!(failure.message.contains("the key `name` is used twice"), "{failure}");
    let tested = testing::step(again).await.unwrap();
    assert!(tested.failure.unwrap().message.contains("the key `k` is used twice"));
}

#[tokio::test]
async fn an_effect_that_fails_is_not_recorded() {
    async fn fails(_: View<Order>, cx: Cx<()>) -> StepResult<Order> {
        let done = cx.once("done", async || Ok(1)).await?;
        cx.once("fails", async || Err::<u32, _>(StepError::fatal("no"))).await?;
        Ok(Order::update().total(done))
    }
    let tested = testing::step(fails).await.unwrap();
    assert_eq!(tested.effects(), ["done"]);
    assert_eq!(tested.failure.unwrap().message, "no");
}

#[tokio::test]
async fn what_a_run_could_not_record_fails() {
    async fn not_finite(_: View<Order>, _: Cx<()>) -> StepResult<Order> {
        Ok(Order::update().rate(f64::NAN))
    }
    async fn wrong_edits(_: View<Order>, _: Cx<()>) -> StepResult<Order> {
        Ok(Order::update().notes("a note"))
    }
    let failure = testing::step(not_finite).await.unwrap().failure.unwrap();
    assert_eq!(failure.kind, FailureKind::Encode);
    let tested = testing::step(wrong_edits).await.unwrap();
    assert_eq!(tested.state, Order::default());
    let failure = tested.failure.unwrap();
    assert_eq!(failure.kind, FailureKind::NotReplayable);
    assert!(failure.message.ends_with("do not replay: `notes`"), "{failure}");
}

#[derive(Context)]
struct Ctx {
    #[slot(required)]
    greeting: String,
    #[slot(runtime)]
    model: Arc<dyn Llm>,
}

async fn greet(_: View<Order>, cx: Cx<Ctx>) -> StepResult<Order> {
    let talk = Transcript::from_iter([user(&*cx.greeting)]);
    let reply = cx.llm(&cx.model).complete(&talk, &ToolSet::default()).await?;
    Ok(Order::update().receipt(reply.text()))
}

#[tokio::test]
async fn slots_are_given_as_the_context() {
    let model = Scripted::new([say("hello").usage(llm::Usage::default())]);
    let slots = Ctx { greeting: "hi".into(), model: Arc::new(model.clone()) };
    let greeted = testing::step(greet).slots(slots).await.unwrap().done().unwrap();
    assert_eq!(greeted.state.receipt.as_deref(), Some("hello"));
    assert_eq!(model.seen().len(), 1);
}

struct Add(u32);

#[async_trait]
impl Handler<(), Order> for Add {
    async fn run(&self, _: View<Order>, cx: Cx<()>) -> StepResult<Order> {
        Ok(Order::update().total(self.0).receipt(cx.step().to_owned()))
    }
}

#[tokio::test]
async fn a_handler_is_a_step() {
    let added = testing::handler(Add(2)).named("Add").await.unwrap().done().unwrap();
    assert_eq!((added.state.total, added.state.receipt.as_deref()), (2, Some("Add")));
}

#[tokio::test]
async fn an_error_step_reads_the_failure() {
    async fn explain(_: View<Order>, cx: Cx<()>) -> StepResult<Order> {
        Ok(Order::update().receipt(cx.failure().map(|failure| failure.message.clone())))
    }
    let gone = StepError::fatal("the page is gone");
    let explained = testing::step(explain).after(gone).await.unwrap().done().unwrap();
    assert_eq!(explained.state.receipt.as_deref(), Some("the page is gone"));
}

#[tokio::test]
async fn a_question_can_expire() {
    async fn late(_: View<Order>, cx: Cx<()>) -> StepResult<Order> {
        match cx.ask("name", Name).expires(Duration::from_secs(3600)).await {
            Ok(name) => Ok(Order::update().receipt(name)),
            Err(error) if error.is_expired() => Ok(Order::update().receipt("late".to_owned())),
            Err(error) => Err(error.into()),
        }
    }
    let tested = testing::step(late).expire("name").await.unwrap().done().unwrap();
    assert_eq!(tested.state.receipt.as_deref(), Some("late"));
    let never = testing::step(pay).expire("pay").await.unwrap_err();
    assert!(never.to_string().starts_with("`pay` does not expire"), "{never}");
}

#[tokio::test]
async fn tasks_of_the_step_end_with_it() {
    static POLLED: AtomicU32 = AtomicU32::new(0);
    async fn spawns(_: View<Order>, cx: Cx<()>) -> StepResult<Order> {
        drop(cx.spawn(async {
            loop {
                POLLED.fetch_add(1, Ordering::SeqCst);
                tokio::task::yield_now().await;
            }
        }));
        tokio::task::yield_now().await;
        Ok(Order::update())
    }
    testing::step(spawns).await.unwrap().done().unwrap();
    tokio::task::yield_now().await;
    let polled = POLLED.load(Ordering::SeqCst);
    assert!(polled > 0);
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert_eq!(POLLED.load(Ordering::SeqCst), polled);
}
