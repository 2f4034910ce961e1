//! Replies in parts that do not arrive as they should, and calls that are dropped.

use std::time::{Duration, Instant};

use crate::llm::{CallCx, Delta, LlmErrorKind, Request, TimeoutPhase};

use super::super::server::{Play, Then};
use super::super::world::{Kept, PROMPT, SOON, Setup, Stop, World, dropped_in_flight, talk, texts};
use super::clauses;

clauses! {
    "parts-are-heard-as-they-arrive" => as_they_arrive,
    "reply-that-ends-early-is-a-stream-error" => ends_early,
    "connection-that-breaks-is-a-stream-error" => breaks,
    "error-inside-a-reply-has-its-kind" => error_inside,
    "dropped-call-closes-its-connection" => dropped,
    "silent-server-is-left-at-the-deadline" => silent,
    "reply-that-pauses-is-left-at-the-deadline" => pauses,
}

fn streaming(setup: &Setup) -> Kept {
    match setup.model.caps().streaming {
        true => Ok(()),
        false => Err(Stop::Skipped("the model does not stream".into())),
    }
}

/// Where the first text of these parts is complete, in pieces of the server.
fn after_first_text(w: &World, parts: &[Delta]) -> usize {
    w.wire.frames(parts).iter().position(|frame| frame.contains("first")).map_or(1, |at| at + 1)
}

async fn as_they_arrive(w: World) -> Kept {
    let said = texts(&["first ", "second ", "third"]);
    let count = after_first_text(&w, &said);
    let setup = w.setup([Play::Cut(said, count, Then::Hang)]).await?;
    streaming(&setup)?;
    let talk = talk();
    let mut stream = setup.model.stream(Request::new(talk.sealed()?), &CallCx::detached());
    let hears = async {
        while let Some(part) = stream.next().await {
            if matches!(part?, Delta::Text(text) if text.contains("first")) {
                return Ok(true);
            }
        }
        Ok::<_, Stop>(false)
    };
    let heard = tokio::time::timeout(SOON, hears).await;
    ensure!(matches!(heard, Ok(Ok(true))), "the first part is not heard before the second is sent");
    Ok(())
}

async fn ends_early(w: World) -> Kept {
    let said = texts(&["one ", "two"]);
    let count = w.wire.frames(&said).len();
    let plays = (0..count).map(|sent| Play::Cut(said.clone(), sent, Then::End));
    let setup = w.setup(plays).await?;
    streaming(&setup)?;
    for sent in 0..count {
        let (_, reply) = setup.stream().await?;
        let kind = reply.err().map(|error| error.kind());
        let what = format!("the error after {sent} of {count} pieces");
        same!(what, kind, Some(LlmErrorKind::Stream));
    }
    Ok(())
}

async fn breaks(w: World) -> Kept {
    let said = texts(&["first ", "second"]);
    let count = after_first_text(&w, &said);
    for then in [Then::Close, Then::Reset] {
        let setup = w.setup([Play::Cut(said.clone(), count, then)]).await?;
        streaming(&setup)?;
        let (_, reply) = setup.stream().await?;
        let error = reply.err();
        let kind = error.as_ref().map(|error| error.kind());
        same!(format!("the error of {then:?}"), kind, Some(LlmErrorKind::Stream));
        ensure!(error.is_some_and(|error| error.is_retryable()), "the error is not retryable");
    }
    Ok(())
}

async fn error_inside(w: World) -> Kept {
    let said = texts(&["first ", "second"]);
    let count = after_first_text(&w, &said);
    let mut asked = 0;
    for kind in [
        LlmErrorKind::Overloaded,
        LlmErrorKind::RateLimited { retry_after: None },
        LlmErrorKind::Unavailable,
    ] {
        let Some(frame) = w.wire.error_frame(kind, PROMPT) else { continue };
        asked += 1;
        let setup = w.setup([Play::CutWith(said.clone(), count, frame)]).await?;
        streaming(&setup)?;
        let error = setup.stream().await?.1.err();
        same!("the error", error.as_ref().map(|error| error.kind()), Some(kind));
        let shown = error.map(|error| format!("{error} {error:?}")).unwrap_or_default();
        ensure!(!shown.contains("canary"), "the error shows the message of the vendor: {shown}");
    }
    match asked {
        0 => Err(Stop::Skipped("the vendor reports no error inside a reply".into())),
        _ => Ok(()),
    }
}

async fn dropped(w: World) -> Kept {
    let said = texts(&["first ", "second"]);
    let count = after_first_text(&w, &said);
    let setup = w.setup([Play::Cut(said, count, Then::Hang), Play::Silent]).await?;
    let gone = |setup: Setup| async move {
        let gone = tokio::time::timeout(Duration::from_secs(1), setup.server.client_gone()).await;
        ensure!(gone.is_ok(), "a second after the call was dropped, its connection is open");
        Ok::<_, Stop>(setup)
    };
    let talk = talk();
    let mut stream = setup.model.stream(Request::new(talk.sealed()?), &CallCx::detached());
    let begun = async {
        while let Some(Ok(part)) = stream.next().await {
            // A model that does not stream has no part before the end.
            if matches!(part, Delta::Text(_)) {
                setup.server.arrival().await;
                break;
            }
        }
    };
    match setup.model.caps().streaming {
        true => {
            let begun = tokio::time::timeout(SOON, begun).await;
            ensure!(begun.is_ok(), "the first part is not heard before the second is sent");
        }
        false => ensure!(
            dropped_in_flight(&setup.server, begun).await.is_none(),
            "the call returns without a response"
        ),
    }
    drop(stream);
    let setup = gone(setup).await?;
    let cx = CallCx::detached();
    let call = setup.model.complete(Request::new(talk.sealed()?), &cx);
    ensure!(
        dropped_in_flight(&setup.server, call).await.is_none(),
        "the call returns without a response"
    );
    gone(setup).await?;
    Ok(())
}

async fn at_deadline(w: World, play: Play) -> Kept {
    let setup = w.setup([play]).await?;
    let cx = CallCx::detached()
        .with_listener(|_| {})
        .with_deadline(Instant::now() + Duration::from_millis(200));
    let call = tokio::time::timeout(SOON, setup.complete_with(&cx)).await;
    let Ok(reply) = call else {
        return Err(Stop::Broken(format!("the call ran for {SOON:?} after its deadline")));
    };
    let kind = reply?.err().map(|error| error.kind());
    let expected = LlmErrorKind::Timeout { phase: TimeoutPhase::Total };
    same!("the error", kind, Some(expected));
    Ok(())
}

async fn silent(w: World) -> Kept {
    at_deadline(w, Play::Silent).await
}

async fn pauses(w: World) -> Kept {
    let said = texts(&["first ", "second"]);
    let count = after_first_text(&w, &said);
    at_deadline(w, Play::Cut(said, count, Then::Hang)).await
}
