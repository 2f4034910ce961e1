//! Appending a batch.

use harness::Seq;
use harness::store::rules::{self, Append, Outline};
use harness::store::{Appended, Batch, InboxSeq, Lease, StoreError};
use redis::Cmd;

use crate::sql::{batch_size, encode, frame, phase_number};

use super::error::unexpected;
use super::frame::{MAX_SEQ, hash, sum};
use super::inner::Inner;
use super::reply::Reply;
use super::scripts;

pub(crate) async fn append(
    inner: &Inner,
    lease: &Lease,
    batch: &Batch<'_>,
) -> Result<Appended, StoreError> {
    let outline = Outline::from(batch);
    let after = batch.after.0.min(MAX_SEQ);
    let bytes = batch_size(batch.entries)?;
    let framed = frame(batch.entries);
    let snapshots = batch.entries.iter().zip(after + 1..).filter(|(entry, _)| entry.snapshot);
    let snapshots: Vec<u64> = snapshots.map(|(_, seq)| seq).collect();
    let token = lease.token.to_string();
    let sum = sum(&lease.session, after + 1, after + outline.entries, &token, &framed);
    let changes = match outline.entries {
        0 => hash(&encode(&(batch.summary, batch.open, batch.close))?),
        _ => String::new(),
    };
    let summary = match batch.summary {
        Some(summary) => Some((summary, phase_number(summary.phase)?, encode(summary)?)),
        None => None,
    };
    let arguments = |command: &mut Cmd| {
        command.arg(&token).arg(after).arg(outline.entries);
        command.arg(bytes).arg(&framed).arg(&sum);
        command.arg(batch.at.0).arg(u8::from(batch.flush)).arg(&changes);
        match &summary {
            Some((summary, phase, bytes)) => {
                command.arg(1).arg(summary.agent.as_str()).arg(*phase).arg(bytes)
            }
            None => command.arg(0).arg("").arg("").arg(""),
        };
        command.arg(rules::list_key(&lease.session, None));
        let (seen, due) = batch.summary.map_or((0, None), |it| (it.inbox.0, it.due));
        command.arg(seen.min(MAX_SEQ)).arg(due.map(|at| at.0.to_string()).unwrap_or_default());
        command.arg(inner.client.expire_ended().map(|it| it.to_string()).unwrap_or_default());
        command.arg(snapshots.len()).arg(batch.open.len()).arg(batch.close.len());
        for seq in &snapshots {
            command.arg(*seq);
        }
        for open in batch.open {
            let expires = open.expires.map(|at| at.0.to_string()).unwrap_or_default();
            command.arg(open.id.as_str()).arg(format!("{}:{expires}", open.since.0));
        }
        for id in batch.close {
            command.arg(id.as_str());
        }
    };
    let read = |reply: Reply<'_>| judge(inner, lease, outline, reply);
    let appended = inner.client.call_on(&scripts::APPEND, &lease.session, arguments, read).await?;
    inner.known.acknowledged(lease, appended.head);
    Ok(appended)
}

fn judge(
    inner: &Inner,
    lease: &Lease,
    outline: Outline,
    reply: Reply<'_>,
) -> Result<Appended, StoreError> {
    let session = &lease.session;
    if reply.name() == "done" {
        return Ok(Appended::new(Seq(reply.count(2)?), InboxSeq(reply.count(3)?)));
    }
    let head = reply.number(4).map(Seq);
    let judged = match (reply.name(), reply.number(2)) {
        ("no", Some(1)) => {
            let held = || rules::check_lease(lease, reply.token(3));
            rules::judge_append(session, outline, head, reply.count(6)? == 1, held)
        }
        ("no", _) => Err(StoreError::Gone { session: session.clone() }),
        _ => Err(reply.unexpected("no append")),
    };
    let last_fence = reply.number(1).unwrap_or_default();
    match judged.map_err(|error| inner.known.explain(lease, last_fence, head, error))? {
        Append::Done(head) => Ok(Appended::new(head, InboxSeq(reply.count(5)?))),
        _ => Err(unexpected("nothing appended of a batch that should be")),
    }
}
