//! Each kind of record, byte for byte as it stands in the logs of the first version: how it is
//! written for as long as that is the version that is written, and how it is read indefinitely.
#![allow(clippy::unwrap_used)]

use harness::store::{Batch, NewEntry, Phase};
use harness::{InterruptId, Seq, SessionId};

use super::*;

const TOKEN: u128 = 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c;

/// What the times of batches count from.
const BASE: u64 = 1_763_729_326_123;

/// What is written, and what it was and is read as.
fn check(written: &[u8], kept: &str, record: &Record<'_>) {
    assert_eq!(String::from_utf8_lossy(written), format!("\n{kept}\n"));
    let line = inner(written);
    assert!(is_sound(line), "{kept}");
    assert_eq!(parse(line).as_ref(), Some(record), "{kept}");
}

fn summary() -> SessionSummary {
    let summary = serde_json::json!({
        "agent": "m", "phase": "interrupted", "step": "talk", "due": 4_102_444_800_000_u64,
        "inbox": 9,
    });
    serde_json::from_value(summary).unwrap()
}

fn interrupt(id: &str, since: u64, expires: Option<u64>) -> OpenInterrupt {
    OpenInterrupt {
        id: InterruptId::new(id),
        since: UtcMillis(since),
        expires: expires.map(UtcMillis),
    }
}

#[test]
fn a_header() {
    let id = SessionId::new("../日本\n").unwrap();
    let epoch = Token::from_u128(TOKEN).to_string();
    let first = Header { id, epoch, rewritten: 0, at: BASE };
    let record = Record::Header(1, Some(first.clone()));
    check(
        &header(&first),
        r#"e2f602c8H1 {"id":"../日本\n","epoch":"0af7651916cd43dd8448eb211c80319c","at":1763729326123}"#,
        &record,
    );
    let third = Header { rewritten: 3, ..first };
    let record = Record::Header(1, Some(third.clone()));
    check(
        &header(&third),
        r#"f59a9df9H1 {"id":"../日本\n","epoch":"0af7651916cd43dd8448eb211c80319c","rewritten":3,"at":1763729326123}"#,
        &record,
    );
}

#[test]
fn a_claim() {
    let token = Token::from_u128(TOKEN);
    let made = ClaimRecord { fence: 2, token, owner: 0x2ae9_be66_099c_123e, until: 7_544_812 };
    let kept = r#"52d89dafC2 0af7651916cd43dd8448eb211c80319c 2ae9be66099c123e 7544812"#;
    check(&claim(&made), kept, &Record::Claim(made));
}

/// A batch after the second entry, written under the first claim.
fn batch(batch: Batch<'_>, at: u64) -> Prepared {
    Prepared::new(&Batch { after: Seq(2), at: UtcMillis(at), ..batch }).unwrap()
}

#[test]
fn a_batch_of_one_entry_and_nothing_else() {
    let entries = [NewEntry { bytes: br#"{"t":1}"#, snapshot: false }];
    let early = batch(Batch { entries: &entries, ..Batch::default() }, BASE - 1);
    let kept = r#"dfaa6b6ab1 2 -1 {"t":1}"#;
    let mut record =
        BatchRecord { fence: 1, after: 2, at: -1, synced: false, meta: None, body: br#"{"t":1}"# };
    check(&early.line(1, BASE, false), kept, &Record::Batch(record.clone()));
    assert_eq!(super::entries(kept.as_bytes()), Some(vec![(br#"{"t":1}"#.to_vec(), false)]));

    let entries = [NewEntry { bytes: r#"{"ü":1}"#.as_bytes(), snapshot: false }];
    let after = Seq(35);
    let late = Batch { after, at: UtcMillis(BASE + 36), entries: &entries, ..Batch::default() };
    let late = Prepared::new(&late).unwrap();
    let kept = r#"770ff856B18446744073709551615 35 10 {"ü":1}"#;
    record = BatchRecord { fence: u64::MAX, after: 35, at: 36, synced: true, ..record };
    record.body = r#"{"ü":1}"#.as_bytes();
    check(&late.line(u64::MAX, BASE, true), kept, &Record::Batch(record));
}

#[test]
fn any_other_batch() {
    let (summary, close) = (summary(), [InterruptId::new("2-cc")]);
    let ask = [interrupt("2-aa", 5, Some(6)), interrupt("2-bb", 7, None)];
    let entries = [
        NewEntry { bytes: br#"{"t":1}"#, snapshot: false },
        NewEntry { bytes: br#"{"t": 2}"#, snapshot: true },
    ];
    let whole =
        Batch { entries: &entries, summary: Some(&summary), open: &ask, ..Batch::default() };
    let whole = batch(Batch { close: &close, ..whole }, BASE);
    let kept = r#"f8b08a76m1 2 0 175 {"n":[7,-9],"f":{"agent":"m","phase":"interrupted","step":"talk","due":4102444800000,"inbox":9},"a":[{"id":"2-aa","since":5,"expires":6},{"id":"2-bb","since":7}],"c":["2-cc"]}{"t":1}{"t": 2}"#;
    let meta = Meta {
        lengths: vec![7, -9],
        escaped: false,
        summary: Some(summary.clone()),
        open: ask.to_vec(),
        close: close.to_vec(),
    };
    let mut record = BatchRecord {
        fence: 1,
        after: 2,
        at: 0,
        synced: false,
        meta: Some(Cow::Owned(meta)),
        body: &kept.as_bytes()["00000000m1 2 0 ".len()..],
    };
    check(&whole.line(1, BASE, false), kept, &Record::Batch(record.clone()));
    let found = super::entries(kept.as_bytes()).unwrap();
    assert_eq!(found, [(br#"{"t":1}"#.to_vec(), false), (br#"{"t": 2}"#.to_vec(), true)]);

    let kept = r#"b8f99f35m1 2 0 2 {}"#;
    record.meta = Some(Cow::Owned(Meta::default()));
    record.body = b"2 {}";
    let empty = batch(Batch::default(), BASE);
    check(&empty.line(1, BASE, false), kept, &Record::Batch(record));
    assert_eq!(super::entries(kept.as_bytes()), Some(Vec::new()));
}

#[test]
fn a_batch_of_bytes_that_would_break_the_line() {
    let entries =
        [NewEntry { bytes: b"\n", snapshot: false }, NewEntry { bytes: b"", snapshot: true }];
    let escaped = batch(Batch { entries: &entries, ..Batch::default() }, BASE + 35 * 37);
    let kept = r#"b46d947eM1 2 zz 21 {"n":[2,-1],"e":true}Cg"#;
    let meta = Meta { lengths: vec![2, -1], escaped: true, ..Meta::default() };
    let record = BatchRecord {
        fence: 1,
        after: 2,
        at: 35 * 37,
        synced: true,
        meta: Some(Cow::Owned(meta)),
        body: br#"21 {"n":[2,-1],"e":true}Cg"#,
    };
    check(&escaped.line(1, BASE, true), kept, &Record::Batch(record));
    let found = super::entries(kept.as_bytes()).unwrap();
    assert_eq!(found, [(b"\n".to_vec(), false), (Vec::new(), true)]);
}

#[test]
fn messages_sent_and_kept() {
    let expired = Message {
        key: "interrupt/2-aa".to_owned(),
        digest: "of it".to_owned(),
        interrupt: Some(InterruptId::new("2-aa")),
        expiry: true,
        body: br#""expired""#.to_vec(),
    };
    let bytes = Message {
        key: String::new(),
        digest: String::new(),
        interrupt: None,
        expiry: false,
        body: b"\xff\n\0".to_vec(),
    };
    let both = vec![expired, bytes];
    for (kept, line) in [
        (
            false,
            r#"099ad32dpmi9hbifv [{"k":"interrupt/2-aa","d":"of it","q":"2-aa","x":true,"t":"\"expired\""},{"k":"","d":"","b":"/woA"}]"#,
        ),
        (
            true,
            r#"da591584kmi9hbifv [{"k":"interrupt/2-aa","d":"of it","q":"2-aa","x":true,"t":"\"expired\""},{"k":"","d":"","b":"/woA"}]"#,
        ),
    ] {
        let record = Record::Messages { at: 1_763_766_978_331, messages: both.clone(), kept };
        check(&messages(1_763_766_978_331, both.iter(), kept), line, &record);
    }
}

#[test]
fn what_a_rewritten_log_begins_with() {
    let mut begin = Origin {
        first: 4,
        created: UtcMillis(1),
        updated: UtcMillis(2),
        summary: summary(),
        interrupts: vec![interrupt("2-aa", 5, Some(6))],
    };
    let kept = r#"134bd50co{"first":4,"created":1,"updated":2,"summary":{"agent":"m","phase":"interrupted","step":"talk","due":4102444800000,"inbox":9},"interrupts":[{"id":"2-aa","since":5,"expires":6}]}"#;
    check(&origin(&begin), kept, &Record::Origin(Box::new(begin.clone())));
    begin.interrupts.clear();
    begin.summary.phase = Phase::Running;
    begin.summary.step.clear();
    begin.summary.due = None;
    begin.summary.inbox = harness::store::InboxSeq(0);
    let kept = r#"2a6a700eo{"first":4,"created":1,"updated":2,"summary":{"agent":"m","phase":"running","step":"","inbox":0}}"#;
    check(&origin(&begin), kept, &Record::Origin(Box::new(begin)));
}

#[test]
fn the_end_of_a_log() {
    check(&super::removed(7), "8b0660acX7", &Record::Removed { fence: 7 });
    let record = Record::Moved { offset: 2215, name: "ab.cd.next".to_owned() };
    check(&moved(2, 2215, "ab.cd.next"), "2b3586c4V2 2215 ab.cd.next", &record);
}
