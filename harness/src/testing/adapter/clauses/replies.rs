//! Complete replies.

use crate::llm::{Delta, LlmErrorKind, StopReason};

use super::super::server::{Play, folded};
use super::super::world::{Kept, Stop, World, call, end, text_of, texts};
use super::clauses;

clauses! {
    "reply-in-one-piece" => whole,
    "reply-in-parts" => parts,
    "what-is-heard-is-the-reply" => heard,
    "reply-in-single-bytes" => bytewise,
    "text-is-kept-to-the-character" => unicode,
    "reply-can-be-empty" => empty,
    "reply-that-reaches-its-limit-says-so" => limited,
    "refusal-is-a-reply" => refusal,
    "withheld-reply-is-a-reply" => filtered,
    "reply-that-is-too-large-is-refused" => too_large,
    "body-that-is-no-reply-is-a-bad-reply" => no_reply,
}

async fn whole(w: World) -> Kept {
    let said = texts(&["one ", "two"]);
    let expected = w.expected(&said)?;
    let setup = w.setup([Play::Reply(said)]).await?;
    let reply = setup.complete().await??;
    same!("the turn", reply.turn.blocks, expected.turn.blocks);
    same!("why it stopped", reply.stop, StopReason::End);
    same!("the usage", reply.usage, expected.usage);
    Ok(())
}

async fn parts(w: World) -> Kept {
    let said = texts(&["one ", "two ", "three"]);
    let expected = w.expected(&said)?;
    let setup = w.setup([Play::Reply(said)]).await?;
    let (heard, reply) = setup.stream().await?;
    let reply = reply?;
    same!("the text that was heard", text_of(&heard), "one two three");
    same!("the turn", reply.turn.blocks, expected.turn.blocks);
    same!("why it stopped", reply.stop, StopReason::End);
    same!("the usage", reply.usage, expected.usage);
    if setup.model.caps().streaming {
        let count = heard.iter().filter(|part| matches!(part, Delta::Text(_))).count();
        ensure!(count > 1, "the parts of the reply were heard as one");
    }
    Ok(())
}

/// A person reads the parts, and the loop continues with the reply: they are the same.
async fn heard(w: World) -> Kept {
    let mut said = vec![Delta::Text("one ".into()), Delta::Text("two".into())];
    said.extend(call(0, "c0", "first", "{\"n\":1}"));
    said.extend(end(StopReason::ToolCalls));
    let setup = w.setup([Play::Reply(said)]).await?;
    let (heard, reply) = setup.stream().await?;
    let reply = reply?;
    let Some(folded) = folded(heard) else {
        return Err(Stop::Broken("the parts that were heard are no reply".into()));
    };
    same!("the turn", folded.turn.blocks, reply.turn.blocks);
    same!("why it stopped", folded.stop, reply.stop);
    same!("the usage", folded.usage, reply.usage);
    Ok(())
}

async fn bytewise(w: World) -> Kept {
    let said = texts(&["gr\u{fc}\u{df} ", "dich \u{1f980}"]);
    let expected = w.expected(&said)?;
    let setup = w.setup([Play::Bytewise(said.clone()), Play::Bytewise(said)]).await?;
    let reply = setup.stream().await?.1?;
    same!("the turn", reply.turn.blocks, expected.turn.blocks);
    let reply = setup.complete().await??;
    same!("the turn in one piece", reply.turn.blocks, expected.turn.blocks);
    Ok(())
}

async fn unicode(w: World) -> Kept {
    let text = "\u{1f980} \"q\" \\n \n\t\u{0}\u{2028}\u{feff} \u{65e5}\u{672c} e\u{301}  ";
    let said: Vec<_> = text.chars().map(|c| Delta::Text(c.to_string())).collect();
    let said: Vec<_> = said.into_iter().chain(end(StopReason::End)).collect();
    let setup = w.setup([Play::Reply(said.clone()), Play::Reply(said)]).await?;
    let whole = setup.complete().await??.text();
    same!("text in one piece", whole.as_deref(), Some(text));
    let parts = setup.stream().await?.1?.text();
    same!("text in parts", parts.as_deref(), Some(text));
    Ok(())
}

/// A reply of these parts, in one piece and in parts.
async fn both(w: &World, said: Vec<Delta>) -> Kept {
    let expected = w.expected(&said)?;
    let setup = w.setup([Play::Reply(said.clone()), Play::Reply(said)]).await?;
    for (how, reply) in
        [("in one piece", setup.complete().await??), ("in parts", setup.stream().await?.1?)]
    {
        same!(format!("the turn {how}"), reply.turn.blocks, expected.turn.blocks);
        same!(format!("why it stopped, {how}"), reply.stop, expected.stop);
    }
    Ok(())
}

async fn empty(w: World) -> Kept {
    both(&w, end(StopReason::End).into()).await
}

async fn stopped(w: World, reason: StopReason, text: &str) -> Kept {
    w.stops(&reason)?;
    both(&w, [Delta::Text(text.into())].into_iter().chain(end(reason)).collect()).await
}

async fn limited(w: World) -> Kept {
    stopped(w, StopReason::MaxTokens, "and then").await
}

async fn refusal(w: World) -> Kept {
    stopped(w, StopReason::Refusal, "I cannot do that").await
}

async fn filtered(w: World) -> Kept {
    stopped(w, StopReason::ContentFilter, "it is").await
}

async fn too_large(w: World) -> Kept {
    let setup = w.setup([Play::Endless, Play::Endless]).await?;
    for result in [setup.complete().await?, setup.stream().await?.1] {
        let kind = result.err().map(|error| error.kind());
        same!("the error of a reply of 64 MiB", kind, Some(LlmErrorKind::BadReply));
    }
    Ok(())
}

async fn no_reply(w: World) -> Kept {
    for body in ["<html>", "{}", "[]", "null", "{\"a\": "] {
        let setup = w.setup([Play::Raw(200, String::new(), body.into())]).await?;
        let kind = setup.complete().await?.err().map(|error| error.kind());
        same!(format!("the error of `{body}`"), kind, Some(LlmErrorKind::BadReply));
    }
    Ok(())
}
