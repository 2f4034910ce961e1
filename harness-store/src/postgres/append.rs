//! Appending a batch, in one statement.

use std::collections::BTreeMap;

use harness::Seq;
use harness::store::rules::{self, Append, Outline};
use harness::store::{Appended, Batch, InboxSeq, Lease, OpenInterrupt, StoreError};

use crate::sql::{batch_size, encode, frame, phase_number};

use super::batch::{check_id, get, seq, signed, snapshots, sum, token, token_of};
use super::client::Client;
use super::error::unexpected;

const APPEND: &str = "SELECT * FROM append_2($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, \
                      $13, $14, $15, $16, $17, $18)";

pub(crate) async fn append(
    client: &Client,
    lease: &Lease,
    batch: &Batch<'_>,
) -> Result<Appended, StoreError> {
    let (after, outline) = (seq(batch.after), Outline::from(batch));
    let count = signed(outline.entries);
    let bytes = signed(batch_size(batch.entries)?);
    let framed = frame(batch.entries);
    let own = token(lease.token);
    let sum = sum(&lease.session, after + 1, after + count, &own, &framed);
    // The last of those with one id counts.
    let open: BTreeMap<&str, &OpenInterrupt> =
        batch.open.iter().map(|open| (open.id.as_str(), open)).collect();
    for id in open.keys() {
        check_id(id)?;
    }
    let (agent, phase, summary) = match batch.summary {
        Some(summary) => {
            let agent = summary.agent.as_str();
            check_id(agent)?;
            (Some(agent.as_bytes()), Some(phase_number(summary.phase)?), Some(encode(summary)?))
        }
        None => (None, None, None),
    };
    let changes = match outline.entries {
        0 => Some(encode(&(batch.summary, batch.open, batch.close))?),
        _ => None,
    };
    let ids: Vec<&[u8]> = open.keys().map(|id| id.as_bytes()).collect();
    let since: Vec<i64> = open.values().map(|open| signed(open.since.0)).collect();
    let expires: Vec<Option<i64>> =
        open.values().map(|open| open.expires.map(|at| signed(at.0))).collect();
    let close: Vec<&[u8]> = batch.close.iter().map(|id| id.as_str().as_bytes()).collect();
    let id = lease.session.as_str().as_bytes();
    let rows = client
        .query(
            APPEND,
            &[
                &id,
                &own,
                &after,
                &count,
                &bytes,
                &framed,
                &sum,
                &snapshots(after + 1, batch.entries),
                &signed(batch.at.0),
                &agent,
                &phase,
                &summary,
                &ids,
                &since,
                &expires,
                &close,
                &changes,
                &batch.flush,
            ],
            true,
        )
        .await?;
    let row = rows.first().ok_or_else(|| unexpected("no row"))?;
    let number = |place| Ok(get::<Option<i64>>(row, place)?.unwrap_or_default().cast_unsigned());
    let (head, inbox) = (Seq(number(4)?), InboxSeq(number(5)?));
    if get(row, 0)? {
        return Ok(Appended::new(head, inbox));
    }
    if !get::<bool>(row, 1)? {
        return Err(StoreError::Gone { session: lease.session.clone() });
    }
    let head = get::<bool>(row, 2)?.then_some(head);
    let last: Option<&[u8]> = get(row, 3)?;
    let held = || rules::check_lease(lease, last.and_then(token_of));
    match rules::judge_append(&lease.session, outline, head, get(row, 6)?, held)? {
        Append::Done(head) => Ok(Appended::new(head, inbox)),
        _ => Err(unexpected("nothing appended of a batch that should be")),
    }
}
