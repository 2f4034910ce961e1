use super::*;
use harness::llm::scripted::{fail, say};
use harness::llm::{Scripted, Tally, Transcript, Usage, user};
use proptest::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::time::sleep;

const MINUTE: Duration = Duration::from_secs(60);

async fn ask(model: &impl Llm, cx: &CallCx) -> Result<Reply, LlmError> {
    let talk = Transcript::from_iter([user("hi")]);
    model.complete(Request::new(talk.sealed().unwrap()), cx).await
}

fn until(limit: Duration) -> CallCx {
    CallCx::detached().with_deadline((Instant::now() + limit).into_std())
}

/// About so many seconds since `start`.
fn passed(start: Instant, seconds: f64) -> bool {
    (start.elapsed().as_secs_f64() - seconds).abs() < 0.05
}

#[tokio::test(start_paused = true)]
async fn requests_beyond_the_window_wait_for_their_share() {
    let model = RateLimited::new(Scripted::from_fn(|_| "ok")).requests(60, MINUTE);
    let start = Instant::now();
    for _ in 0..60 {
        ask(&model, &CallCx::detached()).await.unwrap();
    }
    assert!(passed(start, 0.0));
    for _ in 0..5 {
        ask(&model, &CallCx::detached()).await.unwrap();
    }
    assert!(passed(start, 5.0), "{:?}", start.elapsed());
    // Time without requests fills one window and no more.
    sleep(MINUTE * 10).await;
    let start = Instant::now();
    for _ in 0..62 {
        ask(&model, &CallCx::detached()).await.unwrap();
    }
    assert!(passed(start, 2.0), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn tokens_beyond_the_window_delay_the_calls_after() {
    let inner = Scripted::from_fn(|_| say("ok").usage(Usage::tokens(1_400, 100)));
    let model = RateLimited::new(inner).tokens(1_000, Duration::from_secs(10));
    let tally = Arc::new(Tally::default());
    let start = Instant::now();
    let cx = CallCx::detached().with_meter(tally.clone());
    ask(&model, &cx).await.unwrap();
    assert!(passed(start, 0.0));
    // 500 too many at 100 a second.
    ask(&model, &cx).await.unwrap();
    assert!(passed(start, 5.0), "{:?}", start.elapsed());
    assert_eq!(tally.exchanges(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_passes_the_deadline_fails_at_once_and_sends_nothing() {
    let inner = Scripted::from_fn(|_| "ok");
    let model = RateLimited::new(inner.clone()).requests(1, MINUTE);
    ask(&model, &CallCx::detached()).await.unwrap();
    let start = Instant::now();
    let error = ask(&model, &until(Duration::from_secs(10))).await.unwrap_err();
    assert!(passed(start, 0.0));
    let LlmErrorKind::RateLimited { retry_after: Some(wait) } = error.kind() else {
        panic!("{error}");
    };
    assert!(wait > Duration::from_secs(59) && error.is_retryable());
    assert_eq!(inner.seen().len(), 1);
    ask(&model, &until(MINUTE * 2)).await.unwrap();
    assert!(passed(start, 60.0), "{:?}", start.elapsed());
    let never = RateLimited::new(inner).requests(0, MINUTE);
    let error = ask(&never, &CallCx::detached()).await.unwrap_err();
    assert_eq!(error.kind(), LlmErrorKind::RateLimited { retry_after: None });
}

#[tokio::test(start_paused = true)]
async fn all_calls_wait_when_the_provider_asks_to() {
    let wait = LlmErrorKind::RateLimited { retry_after: Some(Duration::from_secs(7)) };
    let inner = Scripted::new([fail(LlmError::new(wait)), say("ok"), say("ok")]);
    let model = RateLimited::new(inner);
    let start = Instant::now();
    assert_eq!(ask(&model, &CallCx::detached()).await.unwrap_err().kind(), wait);
    let error = ask(&model, &until(Duration::from_secs(5))).await.unwrap_err();
    assert!(matches!(error.kind(), LlmErrorKind::RateLimited { retry_after: Some(_) }));
    ask(&model, &CallCx::detached()).await.unwrap();
    assert!(passed(start, 7.0), "{:?}", start.elapsed());
    ask(&model, &CallCx::detached()).await.unwrap();
    assert!(passed(start, 7.0));
}

/// Takes a second, and knows how many calls are under way.
#[derive(Default)]
struct Busy {
    now: AtomicUsize,
    most: AtomicUsize,
}

struct Held(Arc<Busy>);

#[async_trait]
impl Llm for Held {
    fn id(&self) -> ModelId {
        ModelId::new("test", "busy")
    }

    async fn complete(&self, _: Request<'_>, _: &CallCx) -> Result<Reply, LlmError> {
        let now = self.0.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.most.fetch_max(now, Ordering::SeqCst);
        sleep(Duration::from_secs(1)).await;
        self.0.now.fetch_sub(1, Ordering::SeqCst);
        Ok(Reply::new("ok", harness::llm::StopReason::End, self.id()))
    }
}

#[tokio::test(start_paused = true)]
async fn concurrency_is_bounded_and_a_dropped_call_leaves_its_place() {
    let busy = Arc::new(Busy::default());
    let model = Arc::new(RateLimited::new(Held(Arc::clone(&busy))).concurrency(3));
    let start = Instant::now();
    let calls: Vec<_> = (0..10)
        .map(|_| {
            let model = Arc::clone(&model);
            tokio::spawn(async move { ask(&*model, &CallCx::detached()).await })
        })
        .collect();
    sleep(Duration::from_millis(500)).await;
    calls[0].abort();
    let mut done = 0;
    for call in calls {
        done += usize::from(call.await.is_ok_and(|reply| reply.is_ok()));
    }
    assert_eq!((done, busy.most.load(Ordering::SeqCst)), (9, 4));
    assert!(passed(start, 3.5), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_a_place_has_its_deadline() {
    let model = Arc::new(RateLimited::new(Held(Arc::default())).concurrency(1));
    let first = {
        let model = Arc::clone(&model);
        tokio::spawn(async move { ask(&*model, &CallCx::detached()).await })
    };
    sleep(Duration::from_millis(1)).await;
    let error = ask(&*model, &until(Duration::from_millis(300))).await.unwrap_err();
    assert_eq!(error.kind(), LlmErrorKind::RateLimited { retry_after: None });
    first.await.unwrap().unwrap();
}

proptest! {
    /// However requests come, no window has more than twice its amount: what was left, and what came.
    #[test]
    fn no_window_has_more_than_it_may(gaps in prop::collection::vec(0_u64..3_000, 1..80)) {
        let mut bucket = Bucket::new(10, Duration::from_secs(10));
        let mut now = Instant::now();
        let start = now;
        let mut begun: Vec<f64> = Vec::new();
        for gap in gaps {
            now += Duration::from_millis(gap);
            let wait = bucket.wait(now);
            now += wait;
            prop_assert!(bucket.wait(now).is_zero());
            bucket.spend(1);
            begun.push((now - start).as_secs_f64());
        }
        for (at, first) in begun.iter().enumerate() {
            let inside = begun[at..].iter().filter(|time| *time - first < 10.0).count();
            prop_assert!(inside <= 20, "{inside}");
        }
    }
}
