//! Usage and its meter.

use std::sync::Arc;

use futures_util::future::join_all;

use crate::llm::{Delta, LlmErrorKind, Reply, Request, StopReason, Transcript, Usage, user};

use super::super::server::{Play, Server, Then};
use super::super::wire::WireRequest;
use super::super::world::{KEY, Kept, Setup, Stop, World, dropped_in_flight, metered, talk, texts};
use super::clauses;

clauses! {
    "every-kind-of-usage-is-reported" => kinds,
    "reply-is-charged-once" => replies,
    "failure-is-charged-once" => failures,
    "dropped-call-is-charged-once" => dropped,
    "concurrent-calls-keep-their-usage-apart" => apart,
}

fn all() -> Usage {
    Usage { cache_read: Some(3), cache_write: Some(2), reasoning: Some(4), ..Usage::tokens(17, 9) }
}

fn said() -> Vec<Delta> {
    vec![Delta::Text("x".into()), Delta::Usage(all()), Delta::Stop(StopReason::End)]
}

async fn kinds(w: World) -> Kept {
    let setup = w.setup([Play::Reply(said()), Play::Reply(said())]).await?;
    let expected = w.wire.reported(all());
    same!("in one piece", setup.complete().await??.usage, expected);
    same!("in parts", setup.stream().await?.1?.usage, expected);
    Ok(())
}

async fn replies(w: World) -> Kept {
    let setup = w.setup([Play::Reply(said()), Play::Reply(said())]).await?;
    let (cx, tally) = metered();
    let reply = setup.complete_with(&cx).await??;
    same!("exchanges in one piece", tally.exchanges(), 1);
    same!("what is charged", tally.spend().usage, reply.usage);
    let (cx, tally) = metered();
    let reply = setup.complete_with(&cx.with_listener(|_| {})).await??;
    same!("exchanges in parts", tally.exchanges(), 1);
    same!("what is charged", tally.spend().usage, reply.usage);
    Ok(())
}

async fn failures(w: World) -> Kept {
    let error = w.wire.error(LlmErrorKind::Unavailable, "no").unwrap_or((500, "{}".into()));
    let cut = Play::Cut(texts(&["one ", "two"]), 1, Then::Close);
    for (what, play) in
        [("an error", Play::Raw(error.0, String::new(), error.1)), ("a broken reply", cut)]
    {
        let setup = w.setup([play]).await?;
        let (cx, tally) = metered();
        let result = setup.complete_with(&cx.with_listener(|_| {})).await?;
        ensure!(result.is_err(), "{what} is a reply");
        same!(format!("exchanges of {what}"), tally.exchanges(), 1);
    }
    Ok(())
}

async fn dropped(w: World) -> Kept {
    let setup = w.setup([Play::Silent]).await?;
    let (cx, tally) = metered();
    let talk = talk();
    let call = setup.model.complete(Request::new(talk.sealed()?), &cx);
    ensure!(
        dropped_in_flight(&setup.server, call).await.is_none(),
        "the call returns without a response"
    );
    same!("exchanges", tally.exchanges(), 1);
    Ok(())
}

/// How many calls run at once.
const CALLS: u64 = 16;

async fn apart(w: World) -> Kept {
    let numbered = |number: u64| {
        let usage = Usage::tokens(100 + number, 1_000 + number);
        vec![
            Delta::Text(format!("reply-{number}")),
            Delta::Usage(usage),
            Delta::Stop(StopReason::End),
        ]
    };
    let choose = move |request: &WireRequest| {
        let text = request.body.to_string();
        let number = (0..CALLS).find(|number| text.contains(&format!("number-{number}-")))?;
        Some(Play::Reply(numbered(number)))
    };
    let server = Server::start(w.wire.clone(), Arc::new(choose)).await?;
    let model = w.wire.adapter(server.url(), KEY);
    let setup = Setup { server, model };
    let setup = &setup;
    let calls = (0..CALLS).map(|number| async move {
        let talk = Transcript::from_iter([user(format!("number-{number}-"))]);
        let (cx, tally) = metered();
        let cx = if number % 2 == 0 { cx.with_listener(|_| {}) } else { cx };
        let reply: Reply = setup.model.complete(Request::new(talk.sealed()?), &cx).await?;
        same!("the reply", reply.text(), Some(format!("reply-{number}")));
        let expected = Usage::tokens(100 + number, 1_000 + number);
        same!("the usage", tally.spend().usage, expected);
        Ok::<_, Stop>(())
    });
    join_all(calls).await.into_iter().collect()
}
