//! Many at once, from several handles, and calls that are given up.

use std::collections::BTreeSet;

use tokio::task::JoinSet;

use crate::id::Seq;
use crate::store::{
    Batch, Filter, InboxSeq, NewEntry, Phase, ReadRequest, Released, Remove, Sent, SessionSummary,
    StoreError,
};

use super::super::world::{Kept, LONG, World, message};
use super::clauses;

clauses! {
    "handles-see-each-others-writes" => handles,
    "concurrent-appends-one-for-each-seq" => appends,
    "concurrent-claims-one-holder" => claims,
    "concurrent-sends-none-lost" => sends,
    "concurrent-sends-one-first" => one_first,
    "message-is-seen-by-the-release-or-finds-the-lease-free" => released,
    "cancelled-append-is-done-or-not" => cancelled,
}

async fn handles(w: World) -> Kept {
    let id = w.id("x")?;
    let lease = w.other.claim(&id, LONG).await?.lease;
    let mut here = w.clone();
    for head in 1..=10 {
        // In turns: either handle writes, and the other reads.
        std::mem::swap(&mut here.store, &mut here.other);
        here.append(&lease, head - 1, head.to_string().as_bytes()).await?;
        let page = here
            .other
            .read(
                &id,
                ReadRequest::from(Seq(head)).with_messages_after(InboxSeq(head - 1)).limit(9),
            )
            .await?;
        let found = page.map(|page| (page.head.0, page.entries.len(), page.inbox.0));
        same!("head, new entries and inbox", found, Some((head, 1, head - 1)));
        here.send(&id, &[message(&head.to_string(), "v")]).await?;
        let filter = Filter::sessions().agent(w.agent.clone());
        let rows = here.other.list(&filter, None, 9).await?.rows;
        let heads: Vec<_> = rows.into_iter().map(|row| row.head).collect();
        same!("heads in the list", heads, [Seq(head)]);
    }
    here.store.remove(&lease, Remove::All).await?;
    same!("removed", here.other.read(&id, ReadRequest::from_snapshot().limit(9)).await?, None);
    Ok(())
}

async fn appends(w: World) -> Kept {
    let lease = w.session("x", 1).await?;
    for round in 1..=15 {
        let mut tasks = JoinSet::new();
        for task in 0..8 {
            let (mut w, lease) = (w.clone(), lease.clone());
            if task % 2 == 1 {
                std::mem::swap(&mut w.store, &mut w.other);
            }
            tasks.spawn(async move {
                let text = format!("{round}-{task}");
                w.append(&lease, round, text.as_bytes()).await.map(|_| text)
            });
        }
        let mut won = Vec::new();
        while let Some(done) = tasks.join_next().await {
            match done? {
                Ok(text) => won.push(text),
                Err(StoreError::Conflict { .. }) => {}
                Err(other) => return Err(other.into()),
            }
        }
        same!("how many of eight won", won.len(), 1);
        let page =
            w.store.read(&lease.session, ReadRequest::from(Seq(round + 1)).limit(999)).await?;
        let entries = page.map(|page| page.entries).unwrap_or_default();
        let found: Vec<_> = entries.into_iter().map(|entry| entry.bytes).collect();
        let won: Vec<_> = won.into_iter().map(String::into_bytes).collect();
        same!("what is after the old head: the winner's", found, won);
    }
    same!("the head", w.page(&lease.session).await?.head, Seq(16));
    Ok(())
}

async fn claims(w: World) -> Kept {
    for round in 0..10 {
        let id = w.id(&round.to_string())?;
        let mut tasks = JoinSet::new();
        for task in 0..8 {
            let store = if task % 2 == 0 { w.store.clone() } else { w.other.clone() };
            let id = id.clone();
            tasks.spawn(async move { store.claim(&id, LONG).await });
        }
        let mut won = 0;
        while let Some(done) = tasks.join_next().await {
            match done? {
                Ok(_) => won += 1,
                Err(StoreError::Busy { .. }) => {}
                other => ensure!(false, "expected Busy, found {other:?}"),
            }
        }
        same!("how many of eight hold the session", won, 1);
    }
    Ok(())
}

async fn sends(w: World) -> Kept {
    let lease = w.session("x", 1).await?;
    let mut tasks = JoinSet::new();
    for n in 0..200 {
        let store = if n % 2 == 0 { w.store.clone() } else { w.other.clone() };
        let id = lease.session.clone();
        tasks.spawn(async move { store.send(&id, &[message(&n.to_string(), "v")]).await });
    }
    for after in 1..20 {
        w.append(&lease, after, b"between").await?;
        tokio::task::yield_now().await;
    }
    let mut marks = BTreeSet::new();
    while let Some(done) = tasks.join_next().await {
        match done?? {
            Sent::Accepted(inbox) => marks.insert(inbox),
            other => {
                ensure!(false, "expected Accepted, found {other:?}");
                false
            }
        };
    }
    let page = w.page(&lease.session).await?;
    let keys: BTreeSet<_> = page.messages.iter().map(|stored| stored.message.key.clone()).collect();
    same!("how many messages are there", keys.len(), 200);
    let order: Vec<u64> = page.messages.iter().map(|message| message.seq.0).collect();
    same!("their numbers", order, (1..=200).collect::<Vec<u64>>());
    same!("the last mark", marks.last(), Some(&InboxSeq(200)));
    Ok(())
}

async fn one_first(w: World) -> Kept {
    let id = w.session("x", 1).await?.session;
    let mut tasks = JoinSet::new();
    for n in 0..20 {
        let store = if n % 2 == 0 { w.store.clone() } else { w.other.clone() };
        let id = id.clone();
        tasks.spawn(async move {
            let own = message("k", &n.to_string());
            store.send(&id, std::slice::from_ref(&own)).await.map(|sent| (own, sent))
        });
    }
    let (mut won, mut reported) = (Vec::new(), BTreeSet::new());
    while let Some(done) = tasks.join_next().await {
        match done?? {
            (own, Sent::Accepted(_)) => won.push(own.digest),
            (_, Sent::Taken { first, .. }) => {
                reported.insert(first.digest);
            }
            (_, other) => ensure!(false, "expected Taken, found {other:?}"),
        }
    }
    same!("how many of twenty were first", won.len(), 1);
    same!("which the others were shown", reported.into_iter().collect::<Vec<_>>(), won);
    same!("how many messages are there", w.page(&id).await?.messages.len(), 1);
    Ok(())
}

/// A sender that finds the session held after its message was sent relies on the holder to read it.
async fn released(w: World) -> Kept {
    let mut lease = w.session("x", 1).await?;
    for round in 0..60 {
        let (read, key) = (InboxSeq(round), round.to_string());
        let (sender, id) = (w.other.clone(), lease.session.clone());
        let sends = tokio::spawn(async move {
            for _ in 0..round % 4 {
                tokio::task::yield_now().await;
            }
            sender.send(&id, &[message(&key, "v")]).await?;
            sender.claim(&id, LONG).await.map(|claimed| claimed.lease)
        });
        let released = w.store.release(&lease, read).await?;
        lease = match sends.await? {
            Ok(lease) => lease,
            Err(StoreError::Busy { .. }) => {
                same!(
                    "the release, after a message that found no lease",
                    released,
                    Released::MoreMessages
                );
                w.claim(&lease.session).await?.lease
            }
            Err(other) => return Err(other.into()),
        };
        same!("the inbox", w.page(&lease.session).await?.inbox, InboxSeq(round + 1));
    }
    Ok(())
}

/// Gives an append up after it was polled more and more often: it was done or not, and the writer
/// finds out by sending it again.
async fn cancelled(w: World) -> Kept {
    let lease = w.session("x", 1).await?;
    for polls in 0..24_u64 {
        let after = polls * 2 + 1;
        let summary = SessionSummary { step: (after + 2).to_string(), ..w.summary(Phase::Running) };
        let texts = [format!("{after}a"), format!("{after}b")];
        let entries =
            texts.each_ref().map(|text| NewEntry { bytes: text.as_bytes(), snapshot: false });
        let batch = Batch {
            after: Seq(after),
            entries: &entries,
            summary: Some(&summary),
            ..Batch::default()
        };
        let give_up = async {
            for _ in 0..polls {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            () = give_up => {}
            done = w.store.append(&lease, batch) => {
                done?;
            }
        }
        let page = w.page(&lease.session).await?;
        let done = page.summary.step == summary.step;
        let head = if done { after + 2 } else { after };
        same!(format!("the head after an append given up at poll {polls}"), page.head, Seq(head));
        same!("how many entries there are", page.entries.len() as u64, head);
        same!(
            "the head once it is sent again",
            w.store.append(&lease, batch).await?.head,
            Seq(after + 2)
        );
        let last =
            w.store.read(&lease.session, ReadRequest::from(Seq(after + 1)).limit(99)).await?;
        let found = last.map(|page| {
            let texts: Vec<_> = page.entries.into_iter().map(|entry| entry.bytes).collect();
            (page.summary.step, texts.concat())
        });
        same!("summary and entries", found, Some((summary.step, texts.concat().into_bytes())));
    }
    Ok(())
}
