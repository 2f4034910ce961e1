//! A batch on its way to the server, and what the server's answer means.

use std::collections::BTreeMap;

use harness::store::rules::{self, Append, Outline};
use harness::store::{Appended, Batch, InboxSeq, Lease, OpenInterrupt, StoreError};
use harness::{Seq, UtcMillis};
use tokio_postgres::Row;

use crate::sql::{batch_size, encode, frame, phase_number};

use super::batch::{check_id, get, seq, signed, snapshots, sum, token, token_of};
use super::client::{Call, Value};
use super::error::unexpected;

/// Appends one batch, or reports why not.
const APPEND: &str = "SELECT * FROM append_3($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, \
     $17, $18, $19, $20)";

/// Appends a batch that has entries and changes no more of its session, as most do, without the cost of
/// a function. Without a row it has done nothing.
const APPEND_ENTRIES: &str = "WITH s AS ( \
         UPDATE session SET head = $3::bigint + $4::bigint, updated = $9, \
             snapshot = coalesce(($8::bigint[])[cardinality($8::bigint[])], snapshot) \
         WHERE id = $1 AND takes_3(token, head, written, bare, $2, $3) \
         RETURNING key, inbox \
     ), b AS ( \
         INSERT INTO batch SELECT key, $3::bigint + 1, $3::bigint + $4::bigint, $5::bigint, \
             $2::bytea, $8::bigint[], $6::bytea, $7::bytea FROM s \
     ) \
     SELECT inbox, CASE WHEN NOT $10 THEN unflushed_3() END FROM s";

/// A time in microseconds, as the server has it.
fn micros(at: UtcMillis) -> i64 {
    i64::try_from(at.0.saturating_mul(1_000)).unwrap_or(i64::MAX)
}

/// A batch as it will be written, independent of what its caller has lent.
#[derive(Debug)]
pub(crate) struct Prepared {
    lease: Lease,
    outline: Outline,
    own: Vec<u8>,
    after: i64,
    count: i64,
    pub(crate) bytes: i64,
    framed: Vec<u8>,
    sum: Vec<u8>,
    snapshots: Option<Vec<i64>>,
    at: i64,
    agent: Option<Vec<u8>>,
    phase: Option<i16>,
    summary: Option<Vec<u8>>,
    counted: Option<i64>,
    due: Option<i64>,
    open: Vec<Vec<u8>>,
    since: Vec<i64>,
    expires: Vec<Option<i64>>,
    close: Vec<Vec<u8>>,
    changes: Option<Vec<u8>>,
    pub(crate) flush: bool,
}

impl Prepared {
    pub(crate) fn new(lease: &Lease, batch: &Batch<'_>) -> Result<Self, StoreError> {
        let (after, outline) = (seq(batch.after), Outline::from(batch));
        let count = signed(outline.entries);
        let bytes = signed(batch_size(batch.entries)?);
        let framed = frame(batch.entries);
        let own = token(lease.token);
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
                (Some(agent.into()), Some(phase_number(summary.phase)?), Some(encode(summary)?))
            }
            None => (None, None, None),
        };
        let changes = match outline.entries {
            0 => Some(encode(&(batch.summary, batch.open, batch.close))?),
            _ => None,
        };
        Ok(Self {
            lease: lease.clone(),
            outline,
            after,
            count,
            bytes,
            sum: sum(&lease.session, after + 1, after + count, &own, &framed),
            own,
            framed,
            snapshots: snapshots(after + 1, batch.entries),
            at: signed(batch.at.0),
            agent,
            phase,
            summary,
            counted: batch.summary.map(|summary| signed(summary.inbox.0)),
            due: batch.summary.and_then(|summary| summary.due).map(micros),
            open: open.keys().map(|id| id.as_bytes().to_vec()).collect(),
            since: open.values().map(|open| signed(open.since.0)).collect(),
            expires: open.values().map(|open| open.expires.map(|at| signed(at.0))).collect(),
            close: batch.close.iter().map(|id| id.as_str().as_bytes().to_vec()).collect(),
            changes,
            flush: batch.flush,
        })
    }

    pub(crate) fn session(&self) -> &[u8] {
        self.lease.session.as_str().as_bytes()
    }

    /// Whether [`APPEND_ENTRIES`] can append it.
    fn has_only_entries(&self) -> bool {
        self.count > 0 && self.summary.is_none() && self.open.is_empty() && self.close.is_empty()
    }

    /// The shortest statement that may append it. Whether it is flushed, its group decides.
    pub(crate) fn call<'a>(&'a self, session: &'a &[u8], flush: &'a bool) -> Call<'a> {
        if !self.has_only_entries() {
            return self.call_in_full(session, flush);
        }
        let mut values: Vec<Value<'a>> = vec![session];
        values.extend(self.entries());
        values.push(flush);
        Call { text: APPEND_ENTRIES, values }
    }

    /// The statement that appends any batch.
    pub(crate) fn call_in_full<'a>(&'a self, session: &'a &[u8], flush: &'a bool) -> Call<'a> {
        let mut values: Vec<Value<'a>> = vec![session];
        values.extend(self.entries());
        let rest: [Value<'a>; 11] = [
            &self.agent,
            &self.phase,
            &self.summary,
            &self.counted,
            &self.due,
            &self.open,
            &self.since,
            &self.expires,
            &self.close,
            &self.changes,
            flush,
        ];
        values.extend(rest);
        Call { text: APPEND, values }
    }

    fn entries(&self) -> [Value<'_>; 8] {
        [
            &self.own,
            &self.after,
            &self.count,
            &self.bytes,
            &self.framed,
            &self.sum,
            &self.snapshots,
            &self.at,
        ]
    }

    /// What the answer of the server to [`call`](Self::call) means; `None` if it takes
    /// [`call_in_full`](Self::call_in_full) to know.
    pub(crate) fn judge(&self, rows: &[Row]) -> Option<Result<Appended, StoreError>> {
        if !self.has_only_entries() {
            return Some(self.judge_in_full(rows));
        }
        let row = rows.first()?;
        let head = Seq(self.after.saturating_add(self.count).cast_unsigned());
        Some(get::<i64>(row, 0).map(|inbox| Appended::new(head, InboxSeq(inbox.cast_unsigned()))))
    }

    /// What the answer of the server to [`call_in_full`](Self::call_in_full) means.
    pub(crate) fn judge_in_full(&self, rows: &[Row]) -> Result<Appended, StoreError> {
        let (lease, row) = (&self.lease, rows.first().ok_or_else(|| unexpected("no row"))?);
        let number =
            |place| Ok(get::<Option<i64>>(row, place)?.unwrap_or_default().cast_unsigned());
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
        match rules::judge_append(&lease.session, self.outline, head, get(row, 6)?, held)? {
            Append::Done(head) => Ok(Appended::new(head, inbox)),
            _ => Err(unexpected("nothing appended of a batch that should be")),
        }
    }
}
