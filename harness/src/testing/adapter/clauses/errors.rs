//! Errors.

use std::error::Error;
use std::net::TcpListener;
use std::time::Duration;

use crate::llm::{LlmError, LlmErrorKind};

use super::super::server::Play;
use super::super::world::{KEY, Kept, PROMPT, Setup, Stop, World, metered};
use super::clauses;

clauses! {
    "errors-have-their-kind" => kinds,
    "rate-limit-gives-the-wait-that-is-asked-for" => wait,
    "errors-of-servers-can-be-retried" => servers,
    "errors-show-no-secrets" => secrets,
    "server-that-is-not-there-is-unavailable" => not_there,
    "redirects-are-not-followed" => redirect,
}

const KINDS: [LlmErrorKind; 7] = [
    LlmErrorKind::RateLimited { retry_after: None },
    LlmErrorKind::Overloaded,
    LlmErrorKind::ContextLength,
    LlmErrorKind::Auth,
    LlmErrorKind::InvalidRequest,
    LlmErrorKind::UnknownModel,
    LlmErrorKind::Unavailable,
];

/// Everything that an error shows.
fn shown(error: &LlmError) -> String {
    let mut text = format!("{error} {error:?}");
    let mut next = error.source();
    while let Some(source) = next {
        text.push_str(&format!(" {source} {source:?}"));
        next = source.source();
    }
    text
}

async fn failed(setup: &Setup) -> Kept<[LlmError; 2]> {
    let reply = |_| Stop::Broken("the call succeeds".into());
    let whole = setup.complete().await?.map_or_else(Ok, |ok| Err(reply(ok)))?;
    let parts = setup.stream().await?.1.map_or_else(Ok, |ok| Err(reply(ok)))?;
    Ok([whole, parts])
}

async fn kinds(w: World) -> Kept {
    for kind in KINDS {
        let Some((status, body)) = w.wire.error(kind, "no") else { continue };
        let play = Play::Raw(status, String::new(), body);
        let setup = w.setup([play.clone(), play]).await?;
        for error in failed(&setup).await? {
            same!(format!("the kind of `{error}`"), error.kind(), kind);
            let retryable = LlmError::new(kind).is_retryable();
            same!(format!("whether `{error}` can be retried"), error.is_retryable(), retryable);
            ensure!(error.model().is_some(), "`{error}` does not name its model");
        }
    }
    Ok(())
}

async fn wait(w: World) -> Kept {
    let kind = LlmErrorKind::RateLimited { retry_after: None };
    let Some((status, body)) = w.wire.error(kind, "no") else {
        return Err(Stop::Skipped("the vendor has no rate limit".into()));
    };
    let play = Play::Raw(status, "retry-after: 7\r\n".into(), body);
    let setup = w.setup([play.clone(), play]).await?;
    for error in failed(&setup).await? {
        let seven = Some(Duration::from_secs(7));
        same!("the kind", error.kind(), LlmErrorKind::RateLimited { retry_after: seven });
        same!("the advice", error.advice().after, seven);
    }
    Ok(())
}

async fn servers(w: World) -> Kept {
    for status in [500, 502, 503, 504, 529] {
        let play = Play::Raw(status, String::new(), "<html>".into());
        let setup = w.setup([play.clone(), play]).await?;
        for error in failed(&setup).await? {
            ensure!(error.is_retryable(), "`{error}` of status {status} cannot be retried");
        }
    }
    Ok(())
}

async fn secrets(w: World) -> Kept {
    let message = format!("invalid key {KEY} or text: {PROMPT}");
    for kind in KINDS {
        let Some((status, body)) = w.wire.error(kind, &message) else { continue };
        let play = Play::Raw(status, String::new(), body);
        let setup = w.setup([play.clone(), play]).await?;
        for error in failed(&setup).await? {
            let shown = shown(&error);
            ensure!(!shown.contains("canary"), "an error shows a key or a request: {shown}");
        }
    }
    let setup = w.setup([Play::Raw(200, String::new(), message)]).await?;
    if let Err(error) = setup.complete().await? {
        let shown = shown(&error);
        ensure!(!shown.contains("canary"), "an error shows a body: {shown}");
    }
    Ok(())
}

async fn not_there(w: World) -> Kept {
    let closed = TcpListener::bind("127.0.0.1:0")?;
    let address = closed.local_addr()?;
    drop(closed);
    let setup = w.setup([]).await?;
    let model = w.wire.adapter(&format!("http://{address}"), KEY);
    let (cx, tally) = metered();
    let result = Setup { model, ..setup }.complete_with(&cx).await?;
    let Err(error) = result else { return Err(Stop::Broken("the call succeeds".into())) };
    same!("the kind", error.kind(), LlmErrorKind::Unavailable);
    same!("how many exchanges were charged", tally.exchanges(), 0);
    ensure!(!shown(&error).contains("canary"), "the error shows a key or a request");
    Ok(())
}

async fn redirect(w: World) -> Kept {
    let other = w.setup([]).await?;
    let target = format!("location: {}/canary\r\n", other.server.url());
    let setup = w.setup([Play::Raw(307, target, "{}".into())]).await?;
    let Err(error) = setup.complete().await? else {
        return Err(Stop::Broken("the call succeeds".into()));
    };
    same!("how many requests the other server has", other.server.seen().len(), 0);
    ensure!(!shown(&error).contains("canary"), "the error shows a location");
    Ok(())
}
