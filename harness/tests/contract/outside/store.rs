//! A store that keeps each session in a file, just as far as it takes to damage it and to kill who
//! writes: handles read the files when they open, and only those of one process share anything.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use async_trait::async_trait;
use harness::store::{
    Appended, Batch, Claimed, DueRequest, DueSessions, Filter, InboxSeq, Lease, Listing,
    MemoryStore, Message, NewEntry, Page, ReadRequest, Released, Remove, Sent, SessionStore,
    SessionSummary, StoreError,
};
use harness::testing::Damage;
use harness::{Seq, SessionId, UtcMillis};

use super::Bug::{self, *};

const HEADER: &str = "format 1\n";
const LONG: Duration = Duration::from_secs(600);

/// Where sessions are kept.
pub(super) struct Place {
    bug: Bug,
    dir: PathBuf,
    /// What the handles share that are open.
    open: Mutex<Weak<Shared>>,
}

pub(super) struct Toy {
    bug: Bug,
    dir: PathBuf,
    shared: Arc<Shared>,
}

/// What is known of the files.
struct Shared {
    sound: MemoryStore,
    faults: HashMap<SessionId, Fault>,
    /// Records that are yet to be written.
    late: Mutex<Vec<(PathBuf, String)>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    Corrupt,
    Newer,
}

impl Place {
    pub(super) fn new(bug: Bug, dir: &Path) -> Self {
        fs::create_dir_all(dir).unwrap();
        Self { bug, dir: dir.to_owned(), open: Mutex::default() }
    }

    pub(super) async fn open(&self) -> Toy {
        let shared = self.open.lock().unwrap().upgrade();
        let shared = match shared {
            Some(shared) => shared,
            None => {
                let shared = Arc::new(self.recover().await);
                *self.open.lock().unwrap() = Arc::downgrade(&shared);
                shared
            }
        };
        Toy { bug: self.bug, dir: self.dir.clone(), shared }
    }

    async fn recover(&self) -> Shared {
        let (sound, mut faults) = (MemoryStore::new(), HashMap::new());
        for file in fs::read_dir(&self.dir).unwrap() {
            let path = file.unwrap().path();
            let id = SessionId::new(path.file_name().unwrap().to_str().unwrap()).unwrap();
            match self.records(&path) {
                Ok(records) => replay(&sound, &id, &records).await,
                Err(fault) => drop(faults.insert(id, fault)),
            }
        }
        Shared { sound, faults, late: Mutex::default() }
    }

    /// The entries and summary of each record of a file.
    fn records(&self, path: &Path) -> Result<Vec<Record>, Fault> {
        let text = fs::read_to_string(path).unwrap();
        if text.is_empty() {
            // A process was killed before it wrote the first record.
            return Ok(Vec::new());
        }
        let Some(mut rest) = text.strip_prefix(HEADER) else {
            if self.bug == TakesNewerForItsOwn {
                return Ok(Vec::new());
            }
            if self.bug == WritesToNewer {
                fs::write(path, format!("{text}seen by an older version\n")).unwrap();
            }
            return Err(Fault::Newer);
        };
        let mut records: Vec<Record> = Vec::new();
        while !rest.is_empty() {
            let Some((line, behind)) = rest.split_once('\n') else {
                return self.torn(path, &text[..text.len() - rest.len()], rest, records);
            };
            let (sum, fields) = line.split_once('\t').unwrap();
            if sum != sum_of(fields) && self.bug != GivesDamagedBytes {
                if self.bug == MendsWhatIsDamaged {
                    fs::write(path, &text[..text.len() - rest.len()]).unwrap();
                }
                return Err(Fault::Corrupt);
            }
            let mut fields: Vec<_> = fields.split('\t').map(str::to_owned).collect();
            let summary = serde_json::from_str(&fields.pop().unwrap()).unwrap();
            records.push((fields, summary));
            rest = behind;
        }
        Ok(records)
    }

    fn torn(
        &self,
        path: &Path,
        whole: &str,
        torn: &str,
        mut records: Vec<Record>,
    ) -> Result<Vec<Record>, Fault> {
        match self.bug {
            TakesTornForDamaged => return Err(Fault::Corrupt),
            ShowsHalfABatch => {
                let summary = records.last().unwrap().1.clone();
                let mut fields: Vec<_> = torn.split('\t').skip(1).map(str::to_owned).collect();
                fields.pop();
                records.push((fields, summary));
            }
            WritesBehindTorn => {}
            _ => fs::write(path, whole).unwrap(),
        }
        Ok(records)
    }

    pub(super) fn damage(&self, id: &SessionId, how: Damage) -> bool {
        let path = self.dir.join(id.as_str());
        let text = fs::read_to_string(&path).unwrap();
        let damaged = match how {
            Damage::Flip => text.replace("second", "recond"),
            Damage::CutTail => text[..text.rfind(" entry").unwrap()].to_owned(),
            Damage::NewerFormat => text.replacen(HEADER, "format 2\n", 1),
            _ => return false,
        };
        fs::write(path, damaged).unwrap();
        true
    }

    pub(super) fn stored(&self, id: &SessionId) -> Vec<u8> {
        fs::read(self.dir.join(id.as_str())).unwrap()
    }
}

type Record = (Vec<String>, SessionSummary);

fn sum_of(fields: &str) -> String {
    let mut hasher = DefaultHasher::new();
    fields.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

async fn replay(store: &MemoryStore, id: &SessionId, records: &[Record]) {
    let lease = store.claim(id, LONG).await.unwrap().lease;
    let mut head = Seq(0);
    for (fields, summary) in records {
        let entries: Vec<_> = fields
            .iter()
            .map(|field| NewEntry { bytes: field.as_bytes(), snapshot: false })
            .collect();
        let batch = Batch {
            after: head,
            at: UtcMillis(1),
            entries: &entries,
            summary: Some(summary),
            ..Batch::default()
        };
        head = store.append(&lease, batch).await.unwrap().head;
    }
    store.release(&lease, InboxSeq(0)).await.unwrap();
}

impl Toy {
    /// Whether the session can be read.
    fn look(&self, id: &SessionId) -> Result<(), StoreError> {
        let session = match self.bug {
            NamesAnother => SessionId::new("another").unwrap(),
            _ => id.clone(),
        };
        match self.shared.faults.get(id) {
            None => Ok(()),
            Some(Fault::Newer) => Err(StoreError::NewerFormat { found: 2, known: 1 }),
            Some(Fault::Corrupt) => {
                Err(StoreError::Corrupt { session, after: Seq(0), what: "a checksum".into() })
            }
        }
    }
}

#[async_trait]
impl SessionStore for Toy {
    async fn claim(&self, session: &SessionId, ttl: Duration) -> Result<Claimed, StoreError> {
        self.look(session)?;
        self.shared.sound.claim(session, ttl).await
    }

    async fn claim_due(
        &self,
        request: &DueRequest,
        ttl: Duration,
    ) -> Result<DueSessions, StoreError> {
        self.shared.sound.claim_due(request, ttl).await
    }

    async fn release(&self, lease: &Lease, read: InboxSeq) -> Result<Released, StoreError> {
        self.shared.sound.release(lease, read).await
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<InboxSeq, StoreError> {
        self.shared.sound.renew(lease, ttl).await
    }

    async fn append(&self, lease: &Lease, batch: Batch<'_>) -> Result<Appended, StoreError> {
        let appended = self.shared.sound.append(lease, batch).await?;
        let mut fields: Vec<_> = batch
            .entries
            .iter()
            .map(|entry| String::from_utf8(entry.bytes.to_vec()).unwrap())
            .collect();
        let page = self.read(&lease.session, ReadRequest::summary()).await?.unwrap();
        fields.push(serde_json::to_string(&page.summary).unwrap());
        let fields = fields.join("\t");
        let record = format!("{}\t{fields}\n", sum_of(&fields));
        let mut late = self.shared.late.lock().unwrap();
        late.push((self.dir.join(lease.session.as_str()), record));
        let keeps = if self.bug == AcknowledgesFirst { 1 } else { 0 };
        while late.len() > keeps {
            let (path, record) = late.remove(0);
            let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
            let header = if file.metadata().unwrap().len() == 0 { HEADER } else { "" };
            file.write_all(format!("{header}{record}").as_bytes()).unwrap();
        }
        Ok(appended)
    }

    async fn send(&self, to: &SessionId, messages: &[Message]) -> Result<Sent, StoreError> {
        self.look(to)?;
        self.shared.sound.send(to, messages).await
    }

    async fn read(
        &self,
        session: &SessionId,
        request: ReadRequest,
    ) -> Result<Option<Page>, StoreError> {
        self.look(session)?;
        self.shared.sound.read(session, request).await
    }

    async fn list(
        &self,
        filter: &Filter,
        after: Option<&[u8]>,
        limit: u32,
    ) -> Result<Listing, StoreError> {
        if self.bug == OneHidesAll {
            for id in self.shared.faults.keys() {
                self.look(id)?;
            }
        }
        self.shared.sound.list(filter, after, limit).await
    }

    async fn remove(&self, lease: &Lease, what: Remove) -> Result<(), StoreError> {
        self.shared.sound.remove(lease, what).await
    }
}
