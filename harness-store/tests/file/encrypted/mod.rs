//! What other stores keep when an `Encrypted` one is around them.

mod canary;
#[cfg(feature = "code")]
mod code;
mod contract;
mod logs;

use harness::store::MemoryStore;
use harness_store::{Encrypted, FileStoreOptions, Key, Keys, Sync};
use std::path::Path;

fn keys() -> Keys {
    let key = |id, secret| Key::new(id, [secret; 32]).unwrap();
    Keys::new(key("2026-11", 0x5c)).also(key("2025-03", 0x5d))
}

fn memory(store: &MemoryStore) -> Encrypted<MemoryStore> {
    Encrypted::new(store.clone(), keys())
}

async fn file(dir: &Path) -> Encrypted<harness_store::FileStore> {
    Encrypted::new(FileStoreOptions::new().sync(Sync::Never).open(dir).await.unwrap(), keys())
}

#[cfg(feature = "sqlite")]
async fn sqlite(dir: &Path) -> Encrypted<harness_store::SqliteStore> {
    let options = harness_store::SqliteStoreOptions::new().sync(Sync::Never);
    Encrypted::new(options.open(dir.join("sessions.db")).await.unwrap(), keys())
}
