//! Removing the beginning of a log, or a whole session.

use harness::Seq;
use harness::store::{Lease, NewEntry, Remove, StoreError, rules};

use crate::sql::{batch_size, frame};

use super::batch::{Stored, get, signed, snapshots, sum, token_of};
use super::client::{Client, Connection};

pub(crate) async fn remove(client: &Client, lease: &Lease, what: Remove) -> Result<(), StoreError> {
    let mut connection = client.connection().await?;
    connection.begin().await?;
    let id = lease.session.as_str().as_bytes();
    let rows = connection.query("SELECT * FROM lock_3($1)", &[&id], false).await?;
    let Some(row) = rows.first() else {
        connection.end().await?;
        return Err(StoreError::Gone { session: lease.session.clone() });
    };
    let (key, last): (i64, Option<&[u8]>) = (get(row, 0)?, get(row, 1)?);
    if let Err(lost) = rules::check_lease(lease, last.and_then(token_of)) {
        connection.end().await?;
        return Err(lost);
    }
    match what {
        Remove::All => {
            connection.query("SELECT remove_3($1)", &[&key], false).await?;
        }
        Remove::Below(below) => {
            let (first, snapshot): (i64, i64) = (get(row, 2)?, get(row, 3)?);
            let snapshot = (snapshot > 0).then_some(Seq(snapshot.cast_unsigned()));
            match rules::first_kept(below, Seq(first.cast_unsigned()), snapshot) {
                Some(kept) => prune(&mut connection, lease, key, signed(kept.0)).await?,
                None => return connection.end().await,
            }
        }
    }
    connection.commit().await
}

async fn prune(
    connection: &mut Connection<'_>,
    lease: &Lease,
    key: i64,
    kept: i64,
) -> Result<(), StoreError> {
    // A batch of which only a part is kept is written without the rest.
    let text = "SELECT first, last, token, sum, entries FROM batch \
                WHERE session = $1 AND first < $2 AND last >= $2 ORDER BY first DESC LIMIT 1";
    let rows = connection.query(text, &[&key, &kept], false).await?;
    let partial = match rows.first() {
        Some(row) => {
            let (first, last): (i64, i64) = (get(row, 0)?, get(row, 1)?);
            let token: &[u8] = get(row, 2)?;
            let places = [first, last];
            let after = first.cast_unsigned().saturating_sub(1);
            let batch =
                Stored::check(&lease.session, after, places, token, get(row, 3)?, get(row, 4)?)?;
            let skipped = usize::try_from(kept - first).unwrap_or(usize::MAX);
            let entries = batch.entries.into_iter().skip(skipped);
            let entries = entries.map(|(bytes, snapshot)| NewEntry { bytes, snapshot });
            let entries: Vec<_> = entries.collect();
            let framed = frame(&entries);
            let sum = sum(&lease.session, kept, last, token, &framed);
            let bytes = signed(batch_size(&entries)?);
            Some((last, token, bytes, snapshots(kept, &entries), framed, sum))
        }
        None => None,
    };
    let partial = partial.as_ref();
    let (last, token) = partial.map(|(last, token, ..)| (*last, *token)).unzip();
    let bytes = partial.map(|(_, _, bytes, ..)| *bytes);
    let snapshots = partial.and_then(|(_, _, _, snapshots, ..)| snapshots.as_ref());
    let (framed, sum) = partial.map(|(.., framed, sum)| (framed, sum)).unzip();
    let text = "SELECT prune_3($1, $2, $3, $4, $5, $6, $7, $8)";
    let values: [super::client::Value<'_>; 8] =
        [&key, &kept, &last, &bytes, &token, &snapshots, &framed, &sum];
    connection.query(text, &values, false).await.map(drop)
}
