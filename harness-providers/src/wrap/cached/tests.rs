use super::*;
use harness::llm::scripted::{fail, say};
use harness::llm::{Delta, Scripted, Tally, Transcript, Usage, user};
use std::time::Duration;
use tokio::sync::Semaphore;

async fn ask(model: &impl Llm, text: &str, cx: &CallCx) -> Result<Reply, LlmError> {
    let talk = Transcript::from_iter([user(text)]);
    model.complete(Request::new(talk.sealed().unwrap()), cx).await
}

#[tokio::test]
async fn a_hit_has_the_reply_and_no_usage_and_charges_nothing() {
    let inner = Scripted::new([say("one").usage(Usage::tokens(5, 2)), say("two")]);
    let model = Cached::new(inner.clone(), 10);
    let tally = Arc::new(Tally::default());
    let cx = CallCx::detached().with_meter(tally.clone());
    let first = ask(&model, "a", &cx).await.unwrap();
    let again = ask(&model, "a", &cx).await.unwrap();
    assert_eq!(again, first.clone().as_cached());
    assert_eq!((first.cached, first.usage.total()), (false, Some(7)));
    assert_eq!((again.cached, again.usage), (true, Usage::tokens(0, 0)));
    assert_eq!((tally.exchanges(), tally.spend().usage.total()), (1, Some(7)));
    let talk = Transcript::from_iter([user("a")]);
    let mut stream = model.stream(Request::new(talk.sealed().unwrap()), &cx);
    let mut heard = Vec::new();
    while let Some(delta) = stream.next().await {
        heard.push(delta.unwrap());
    }
    // Who listens hears of no usage that was not spent, and the reply says that it was kept.
    assert!(heard.contains(&Delta::Text("one".into())));
    assert!(heard.contains(&Delta::Usage(Usage::tokens(0, 0))));
    assert!(stream.reply().await.unwrap().cached);
    assert_eq!(ask(&model, "b", &cx).await.unwrap().text().as_deref(), Some("two"));
    assert_eq!(inner.seen().len(), 2);
    assert_eq!(model.counts(), CacheCounts { hits: 2, misses: 2, kept: 2 });
}

#[tokio::test]
async fn errors_are_not_kept() {
    let error = fail(LlmError::new(LlmErrorKind::Overloaded));
    let model = Cached::new(Scripted::new([error, say("ok")]), 10);
    ask(&model, "a", &CallCx::detached()).await.unwrap_err();
    assert!(!ask(&model, "a", &CallCx::detached()).await.unwrap().cached);
    assert!(ask(&model, "a", &CallCx::detached()).await.unwrap().cached);
}

#[tokio::test]
async fn the_number_of_replies_is_bounded() {
    let model = Cached::new(Scripted::from_fn(|_| "ok"), 16);
    for number in 0..500 {
        ask(&model, &number.to_string(), &CallCx::detached()).await.unwrap();
    }
    assert!((1..=32).contains(&model.counts().kept), "{:?}", model.counts());
}

/// Replies when it gets a permit.
struct Gated {
    gate: Arc<Semaphore>,
    inner: Scripted,
}

#[async_trait]
impl Llm for Gated {
    fn id(&self) -> ModelId {
        self.inner.id()
    }

    async fn complete(&self, request: Request<'_>, cx: &CallCx) -> Result<Reply, LlmError> {
        self.gate.acquire().await.unwrap().forget();
        self.inner.complete(request, cx).await
    }
}

fn gated(
    lines: Vec<harness::llm::scripted::Line>,
) -> (Arc<Semaphore>, Scripted, Arc<Cached<Gated>>) {
    let (gate, inner) = (Arc::new(Semaphore::new(0)), Scripted::new(lines));
    let model = Gated { gate: Arc::clone(&gate), inner: inner.clone() };
    (gate, inner, Arc::new(Cached::new(model, 10)))
}

fn spawn(model: &Arc<Cached<Gated>>) -> tokio::task::JoinHandle<Result<Reply, LlmError>> {
    let model = Arc::clone(model);
    tokio::spawn(async move { ask(&*model, "a", &CallCx::detached()).await })
}

#[tokio::test(start_paused = true)]
async fn equal_requests_at_the_same_time_share_one_call() {
    let (gate, inner, model) = gated(vec![say("once")]);
    let calls: Vec<_> = (0..20).map(|_| spawn(&model)).collect();
    // Paused time passes only when every task waits.
    tokio::time::sleep(Duration::from_secs(1)).await;
    gate.add_permits(1);
    let mut fresh = 0;
    for call in calls {
        let reply = call.await.unwrap().unwrap();
        assert_eq!(reply.text().as_deref(), Some("once"));
        fresh += usize::from(!reply.cached);
    }
    assert_eq!((fresh, inner.seen().len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_or_fails_leaves_its_place_to_the_next() {
    let error = fail(LlmError::new(LlmErrorKind::Overloaded));
    let (gate, inner, model) = gated(vec![error, say("ok")]);
    let dropped = spawn(&model);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (fails, third) = (spawn(&model), spawn(&model));
    tokio::time::sleep(Duration::from_secs(1)).await;
    dropped.abort();
    assert!(dropped.await.unwrap_err().is_cancelled());
    gate.add_permits(2);
    // One of them calls and fails, then the other calls.
    let replies = [fails.await.unwrap(), third.await.unwrap()];
    let replied = replies.iter().filter(|reply| reply.is_ok()).count();
    assert_eq!((replied, inner.seen().len()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn waiting_for_an_equal_request_has_the_deadline_of_the_call() {
    let (_gate, _, model) = gated(vec![]);
    let first = spawn(&model);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let soon = Instant::now() + Duration::from_secs(3);
    let cx = CallCx::detached().with_deadline(soon.into_std());
    let error = ask(&*model, "a", &cx).await.unwrap_err();
    assert_eq!(error.kind(), LlmErrorKind::Timeout { phase: TimeoutPhase::Total });
    assert!(Instant::now() >= soon && !first.is_finished());
}
