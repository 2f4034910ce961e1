//! A batch is one step: all of it or nothing.

use crate::id::Seq;
use crate::store::{
    Batch, Filter, InboxSeq, NewEntry, Page, Phase, ReadRequest, SessionSummary, StoreError,
};

use super::super::world::{Kept, World, interrupt};
use super::clauses;

clauses! {
    "append-conflict-changes-nothing" => conflict,
    "append-carries-summary-and-interrupts" => carries,
    "summary-stay-unless-given" => facts_stay,
    "empty-batch-changes-summary-and-interrupts" => empty,
    "interrupts-asked-and-closed-at-once-are-closed" => ask_and_close,
    "readers-see-whole-batches" => one_step,
}

async fn conflict(w: World) -> Kept {
    let lease = w.session("x", 3).await?;
    w.change(&lease, 3, None, &[interrupt("q", None)], &[]).await?;
    let before = w.page(&lease.session).await?;
    let summary = SessionSummary { step: "Wrong".into(), ..w.summary(Phase::Failed) };
    for after in [0, 2, 4, 9, u64::MAX] {
        let batch = Batch {
            after: Seq(after),
            entries: &[NewEntry { bytes: b"loser", snapshot: true }],
            summary: Some(&summary),
            open: &[interrupt("wrong", None)],
            close: &["q".into()],
            ..Batch::default()
        };
        refused!(
            format!("a batch after {after} of 3"),
            w.store.append(&lease, batch).await,
            StoreError::Conflict { head: Seq(3), after: at, .. } if at == Seq(after)
        );
        let empty = Batch { entries: &[], ..batch };
        refused!(
            format!("a batch without entries after {after} of 3"),
            w.store.append(&lease, empty).await,
            StoreError::Conflict { head: Seq(3), .. }
        );
    }
    same!("the session", without_holder(w.page(&lease.session).await?), without_holder(before));
    Ok(())
}

/// The moment of expiry may differ a little each time.
fn without_holder(page: Page) -> Page {
    Page { holder: None, ..page }
}

async fn carries(w: World) -> Kept {
    let lease = w.session("x", 1).await?;
    let summary = SessionSummary {
        step: "Ask \"this\"".into(),
        due: Some(crate::clock::UtcMillis(77)),
        inbox: InboxSeq(3),
        ..w.summary(Phase::Interrupted)
    };
    let (one, two) = (interrupt("q1", None), interrupt("q2", Some(u64::MAX)));
    let batch = Batch {
        after: Seq(1),
        entries: &[NewEntry { bytes: b"2", snapshot: false }],
        summary: Some(&summary),
        open: &[two.clone(), one.clone()],
        ..Batch::default()
    };
    w.store.append(&lease, batch).await?;
    let page = w.page(&lease.session).await?;
    same!("summary", page.summary, summary);
    same!("interrupts", page.interrupts, [one.clone(), two.clone()]);
    let rows = w.rows(Filter::interrupts(), 9).await?;
    let asked: Vec<_> = rows.into_iter().filter_map(|row| row.interrupt).collect();
    same!("interrupts in the list", asked, [one, two.clone()]);
    let batch = Batch {
        after: Seq(2),
        entries: &[NewEntry { bytes: b"3", snapshot: false }],
        close: &["q1".into(), "never-asked".into()],
        ..Batch::default()
    };
    w.store.append(&lease, batch).await?;
    let page = w.page(&lease.session).await?;
    same!(
        "head and interrupts after one was closed",
        (page.head, page.interrupts),
        (Seq(3), vec![two])
    );
    same!(
        "summary at the next claim",
        {
            w.release(&lease).await?;
            w.claim(&lease.session).await?.summary
        },
        Some(summary)
    );
    Ok(())
}

async fn facts_stay(w: World) -> Kept {
    let lease = w.session("x", 1).await?;
    let before = w.page(&lease.session).await?.summary;
    let entries = &[NewEntry { bytes: b"2", snapshot: false }];
    w.store.append(&lease, Batch { after: Seq(1), entries, ..Batch::default() }).await?;
    same!("summary", w.page(&lease.session).await?.summary, before);
    Ok(())
}

async fn empty(w: World) -> Kept {
    let lease = w.session("x", 1).await?;
    let summary = w.summary(Phase::Stopped);
    let asked = w.change(&lease, 1, Some(&summary), &[interrupt("q", None)], &[]).await?;
    same!("the head", asked.head, Seq(1));
    let page = w.page(&lease.session).await?;
    same!(
        "summary and interrupts",
        (page.summary, page.interrupts),
        (summary, vec![interrupt("q", None)])
    );
    let flush = Batch { after: Seq(1), flush: true, ..Batch::default() };
    same!("the head after a mere flush", w.store.append(&lease, flush).await?.head, Seq(1));
    w.append(&lease, 1, b"2").await?;
    same!("entries", w.entries(&lease.session).await?, [b"1".to_vec(), b"2".to_vec()]);
    Ok(())
}

async fn ask_and_close(w: World) -> Kept {
    let lease = w.session("x", 1).await?;
    w.change(&lease, 1, None, &[interrupt("q", None), interrupt("r", None)], &["q".into()]).await?;
    same!("interrupts", w.page(&lease.session).await?.interrupts, [interrupt("r", None)]);
    w.change(&lease, 1, None, &[interrupt("r", Some(9))], &[]).await?;
    same!("opened again", w.page(&lease.session).await?.interrupts, [interrupt("r", Some(9))]);
    Ok(())
}

/// A reader beside a writer whose summary name the head.
async fn one_step(w: World) -> Kept {
    let lease = w.session("x", 0).await?;
    let (writer, held) = (w.clone(), lease.clone());
    let writing = tokio::spawn(async move {
        for round in 0..40 {
            let summary = SessionSummary {
                step: (round * 3 + 3).to_string(),
                ..writer.summary(Phase::Running)
            };
            let entry = NewEntry { bytes: b"part", snapshot: false };
            let batch = Batch {
                after: Seq(round * 3),
                entries: &[entry; 3],
                summary: Some(&summary),
                ..Batch::default()
            };
            writer.store.append(&held, batch).await?;
            tokio::task::yield_now().await;
        }
        Ok::<(), StoreError>(())
    });
    loop {
        let done = writing.is_finished();
        if let Some(page) =
            w.other.read(&lease.session, ReadRequest::from(Seq(1)).limit(u64::MAX)).await?
        {
            same!("summary beside the head", page.summary.step, page.head.0.to_string());
            same!("how many entries there are", page.entries.len() as u64, page.head.0);
            ensure!(page.head.0 % 3 == 0, "a reader saw half a batch: the head is {}", page.head);
        }
        if done {
            break;
        }
        tokio::task::yield_now().await;
    }
    writing.await??;
    same!("the head in the end", w.page(&lease.session).await?.head, Seq(120));
    Ok(())
}
