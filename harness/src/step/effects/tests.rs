//! What the surface of steps asks of an executor, and in which order.

use std::sync::{Mutex, PoisonError};

use futures_util::FutureExt;

use super::*;
use crate::question::EffectInDoubt;
use crate::step::ask::Ask;
use crate::step::{FailureKind, InDoubt, Once, Scope};
use crate::store::FormerHolder;

/// An executor that writes down what it is asked, and gives prepared replies.
#[derive(Default)]
struct Reported {
    calls: Mutex<Vec<String>>,
    once: Mutex<Vec<OnceReply>>,
    refuses: Option<&'static str>,
    stopping: CancellationToken,
}

impl Reported {
    fn call(&self, what: impl Into<String>) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(what.into());
    }

    fn reply(&self) -> OnceReply {
        self.once.lock().unwrap().pop().unwrap()
    }

    fn recorded(&self, what: &'static str) -> Result<(), StepError> {
        self.call(what);
        match self.refuses == Some(what) {
            true => Err(StepError::of(FailureKind::Store, true, "no store".to_owned())),
            false => Ok(()),
        }
    }
}

impl Effects for Reported {
    fn into_any(self: Arc<Self>) -> Arc<dyn std::any::Any + Send + Sync> {
        self
    }

    fn incarnation(&self) -> String {
        "a1".to_owned()
    }
    fn ids(&self) -> &Ids {
        static IDS: std::sync::LazyLock<Ids> = std::sync::LazyLock::new(|| Ids {
            agent: AgentId::new("a"),
            session: SessionId::new("s").unwrap(),
            run: RunId::fresh(),
            parent: None,
        });
        &IDS
    }
    fn step_name(&self, _: usize) -> &str {
        "Pay"
    }
    fn emit(&self, _: Place, _: Arc<dyn Payload>) {}
    fn charge(&self, _: Place, _: &Spend) {}
    fn spent(&self) -> Spend {
        Spend::default()
    }
    fn begin_call(&self, _: Place, _: Option<CallId>, _: &str) -> (CallId, Span) {
        (CallId::new("c"), Span::none())
    }
    fn end_call(&self, _: Place, _: CallId, _: CallEnd<'_>) {}
    fn recorded_call(&self, _: Place, _: Option<CallId>, _: &str, _: &Reply) {}
    fn begin_tool(&self, _: Place, _: &ToolCall, _: EffectClass) -> Span {
        Span::none()
    }
    fn end_tool(&self, _: Place, _: &ToolCall, _: ToolEnd<'_>) {}
    fn wants_tokens(&self) -> bool {
        false
    }
    fn token(&self, _: Place, _: &CallId, _: &Delta) {}
    fn deadline(&self, _: Place) -> Option<Instant> {
        None
    }
    fn recorded(&self, _: Place, _: EffectScope, _: &str) -> Option<Value> {
        None
    }
    fn ask(&self, _: Place, key: &str, asked: Asked) -> AskReply {
        self.call(format!("ask {key} {:?}", asked.expires));
        AskReply::Expired
    }
    fn sleep(&self, _: Place, key: &str, wake: Wake) -> SleepReply {
        self.call(format!("sleep {key} {wake:?}"));
        SleepReply::Due
    }
    fn effect_ended(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn begin_once(&self, _: Place, _: EffectScope, key: &str, guard: Guard) -> OnceReply {
        self.call(format!("begin {key} {guard:?}"));
        self.reply()
    }
    fn retry_once(&self, _: Place, _: EffectScope, _: &str) -> OnceReply {
        self.call("retry");
        self.reply()
    }
    fn intend<'a>(
        &'a self,
        _: Place,
        _: EffectScope,
        _: &'a str,
        guard: Guard,
    ) -> BoxFuture<'a, Result<(), StepError>> {
        async move {
            match guard {
                Guard::AtMostOnce => self.recorded("intend"),
                Guard::AtLeastOnce => self.recorded("flush"),
            }
        }
        .boxed()
    }
    fn end_once<'a>(
        &'a self,
        _: Place,
        _: EffectScope,
        _: &'a str,
        value: Value,
    ) -> BoxFuture<'a, Result<(), StepError>> {
        async move {
            // Not ready at once, as a store is not.
            tokio::task::yield_now().await;
            self.call(value.to_string());
            self.recorded("end")
        }
        .boxed()
    }
    fn take_back<'a>(
        &'a self,
        _: Place,
        _: EffectScope,
        _: &'a str,
    ) -> BoxFuture<'a, Result<(), StepError>> {
        async { Ok(()) }.boxed()
    }
    fn drop_once(&self, _: Place, _: EffectScope, _: &str) {
        self.call("drop");
    }
    fn adopt(&self, _: Place, _: AbortHandle) {}
    fn stopping(&self) -> &CancellationToken {
        &self.stopping
    }
    #[cfg(feature = "code")]
    fn giving_up(&self, _: Place) -> CancellationToken {
        self.stopping.clone()
    }
    fn failure(&self) -> Option<Arc<Failure>> {
        None
    }
}

/// An effect that pays, under this policy; the executor's replies come in the order given.
async fn pays(
    refuses: Option<&'static str>,
    replies: impl IntoIterator<Item = OnceReply, IntoIter: DoubleEndedIterator>,
    fails: bool,
    policy: Option<InDoubt>,
) -> (Result<u32, StepError>, Vec<String>) {
    let once = Mutex::new(replies.into_iter().rev().collect());
    let reported = Arc::new(Reported { refuses, once, ..Reported::default() });
    let scope = Scope { effects: Arc::clone(&reported) as _, place: Place::default() };
    let effect = Arc::clone(&reported);
    let effect = async move || {
        effect.call("pay");
        if fails { Err(StepError::fatal("broke")) } else { Ok(7) }
    };
    let once = Once::new(scope, EffectScope::Position, "pay", effect);
    let paid = match policy {
        None => once.await,
        Some(policy) => once.in_doubt(policy).await,
    };
    let calls = std::mem::take(&mut *reported.calls.lock().unwrap());
    (paid, calls)
}

fn kind(error: &StepError) -> FailureKind {
    Failure::new(error, "Pay", Position(1), 1).kind
}

#[tokio::test]
async fn a_result_is_on_record_before_the_step_sees_it() {
    let (paid, calls) = pays(None, [OnceReply::Run], false, None).await;
    assert_eq!(paid.unwrap(), 7);
    assert_eq!(calls, ["begin pay AtLeastOnce", "flush", "pay", "7", "end"]);
    let (paid, calls) = pays(None, [OnceReply::Run], true, None).await;
    assert!(paid.is_err());
    assert_eq!(calls, ["begin pay AtLeastOnce", "flush", "pay", "drop"]);
    // Ended with an error is ended: nothing follows.
    let (paid, calls) = pays(Some("end"), [OnceReply::Run], false, None).await;
    assert_eq!(kind(&paid.unwrap_err()), FailureKind::Store);
    assert_eq!(calls, ["begin pay AtLeastOnce", "flush", "pay", "7", "end"]);
}

#[tokio::test]
async fn an_intent_comes_before_the_effect_and_without_it_nothing_happens() {
    let fail = Some(InDoubt::Fail);
    let (paid, calls) = pays(None, [OnceReply::Run], false, fail).await;
    assert_eq!(paid.unwrap(), 7);
    assert_eq!(calls, ["begin pay AtMostOnce", "intend", "pay", "7", "end"]);
    let (paid, calls) = pays(Some("intend"), [OnceReply::Run], false, fail).await;
    assert_eq!(kind(&paid.unwrap_err()), FailureKind::Store);
    assert_eq!(calls, ["begin pay AtMostOnce", "intend", "drop"]);
    // An effect that is run again on a policy's word has its intent too.
    let replies = [OnceReply::InDoubt(FormerHolder::Dead), OnceReply::Run];
    let (paid, calls) = pays(None, replies, false, Some(InDoubt::Retry)).await;
    assert_eq!(paid.unwrap(), 7);
    assert_eq!(calls, ["begin pay AtMostOnce", "retry", "intend", "pay", "7", "end"]);
}

#[tokio::test]
async fn a_run_that_may_not_act_does_not() {
    let lost = || {
        let message = "the session is another's".to_owned();
        OnceReply::Refused(StepError::of(FailureKind::LeaseLost, false, message))
    };
    for replies in [vec![lost()], vec![OnceReply::InDoubt(FormerHolder::Dead), lost()]] {
        let (paid, calls) = pays(None, replies, false, Some(InDoubt::Retry)).await;
        assert_eq!(kind(&paid.unwrap_err()), FailureKind::LeaseLost);
        assert!(!calls.contains(&"pay".to_owned()), "{calls:?}");
    }
}

#[tokio::test]
async fn a_question_says_how_long_it_waits_and_may_expire() {
    let reported = Arc::new(Reported::default());
    let scope = Scope { effects: Arc::clone(&reported) as _, place: Place::default() };
    let question = EffectInDoubt {
        key: "k".to_owned(),
        step: "Pay".to_owned(),
        op_id: "s/a1/1".to_owned(),
        former: FormerHolder::Dead,
    };
    let ask = Ask::new(scope.clone(), "k".to_owned(), &question);
    let error = ask.expires(Duration::from_secs(60)).await.unwrap_err();
    assert!(error.is_expired() && !error.is_key_reused());
    assert_eq!(error.to_string(), "the question `k` expired before it was answered");
    assert!(StepError::from(error).is_fatal());
    assert!(Ask::new(scope, "k".to_owned(), &question).await.is_err());
    assert_eq!(*reported.calls.lock().unwrap(), ["ask k Some(60s)", "ask k None"]);
}
