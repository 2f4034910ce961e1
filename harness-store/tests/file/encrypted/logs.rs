//! Keys, passwords and payloads are in no log at any level, and in no `Debug` and no error of a store.

use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use harness::store::{MemoryStore, ReadRequest, SessionStore, StoreError};
use harness_store::{Encrypted, Key, Keys};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};

use super::canary::{live, no_trace};
use super::keys;

static LOGGED: Mutex<String> = Mutex::new(String::new());

fn logged() -> MutexGuard<'static, String> {
    LOGGED.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Logs;

impl Visit for Logs {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        writeln!(logged(), "{field}={value:?}").unwrap();
    }
}

impl tracing::Subscriber for Logs {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut Logs);
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut Logs);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut Logs);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl log::Log for Logs {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        // Nothing of ours, and of no use: one line for each poll.
        if record.args().to_string() != "poll_flush: flushed" {
            writeln!(logged(), "{} {}", record.target(), record.args()).unwrap();
        }
    }

    fn flush(&self) {}
}

/// From here on, what all tests of this process log.
fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        tracing::subscriber::set_global_default(Logs).unwrap();
        log::set_logger(&Logs).unwrap();
        log::set_max_level(log::LevelFilter::Trace);
    });
}

/// The bytes of the keys of these tests, and passwords, as text.
fn no_secret(what: &str, text: &str) {
    no_trace(what, text.as_bytes());
    for secret in ["CANARY", "67, 65, 78, 65, 82, 89", "5c5c5c", "5C5C5C", "92, 92, 92"] {
        assert!(!text.contains(secret), "{what} shows {secret}");
    }
}

/// What is there to see of a store in use.
async fn shown(store: impl SessionStore + Clone + std::fmt::Debug) -> String {
    watch();
    let encrypted = Encrypted::new(store.clone(), keys());
    live(encrypted.clone()).await;
    // With another key of the same name.
    let other = Encrypted::new(store, Keys::new(Key::new("2026-11", [0x5b; 32]).unwrap()));
    let id = harness::SessionId::new("s").unwrap();
    let refused = other.read(&id, ReadRequest::from_snapshot()).await.unwrap_err();
    format!("{encrypted:?} {:?} {refused} {refused:?}", keys())
}

fn no_secret_in_logs(what: &str) {
    let logged = logged().clone();
    assert!(logged.contains("session=s"), "nothing was logged");
    no_secret(what, &logged);
}

#[tokio::test]
async fn neither_logs_nor_errors_show_what_is_in_memory_or_in_files() {
    no_secret("memory", &shown(MemoryStore::new()).await);
    let dir = tempfile::tempdir().unwrap();
    no_secret("files", &shown(crate::support::open(dir.path()).await).await);
    #[cfg(feature = "sqlite")]
    {
        let options = harness_store::SqliteStoreOptions::new().sync(harness_store::Sync::Never);
        let store = options.open(dir.path().join("sessions.db")).await.unwrap();
        no_secret("a database", &shown(store).await);
    }
    no_secret_in_logs("a log");
    // The test would find them: what is not encrypted is in the errors of nothing, and in `Debug`.
    let plain = MemoryStore::new();
    live(plain.clone()).await;
    let id = harness::SessionId::new("s").unwrap();
    let page = plain.read(&id, ReadRequest::from(harness::Seq(1))).await.unwrap();
    assert!(format!("{page:?}").contains("67, 65, 78, 65, 82, 89"));
}

fn error(error: &StoreError) -> String {
    let mut text = format!("{error} {error:?}");
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        write!(text, " {error} {error:?}").unwrap();
        cause = error.source();
    }
    text
}

/// A URL of the server with a password, and one where no server is.
#[cfg(any(feature = "postgres", feature = "redis"))]
fn urls(variable: &str, user: &str) -> [String; 2] {
    let url = std::env::var(variable).unwrap_or_else(|_| {
        panic!("`{variable}` is not set: these tests need a server (see `.ci/test`)")
    });
    let host = url.rsplit(['@', '/']).find(|part| part.contains(':')).unwrap().to_owned();
    let (scheme, _) = url.split_once("://").unwrap();
    let of = |host: &str| format!("{scheme}://{user}:CANARYpassword@{host}/");
    [of(&host), of("127.0.0.1:1")]
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn neither_logs_nor_errors_show_what_is_in_postgres() {
    watch();
    let options = harness_store::PostgresStoreOptions::new().schema("test_logs");
    // It takes any password.
    let [url, nowhere] = urls("HARNESS_POSTGRES_URL", "harness");
    let url = url + "postgres";
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("DROP SCHEMA IF EXISTS test_logs CASCADE").await.unwrap();
    let refused = options.clone().connect(&nowhere).await.unwrap_err();
    no_secret("an error", &error(&refused));
    no_secret("options", &format!("{options:?}"));
    no_secret("the store", &shown(options.connect(&url).await.unwrap()).await);
    no_secret("an error", &error(&harness_store::open(&nowhere).await.err().unwrap()));
    no_secret_in_logs("a log");
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn neither_logs_nor_errors_show_what_is_in_redis() {
    watch();
    let options = harness_store::RedisStoreOptions::new().prefix("test_logs");
    // It has no password, and says so.
    for url in urls("HARNESS_REDIS_URL", "") {
        no_secret("an error", &error(&options.clone().connect(&url).await.unwrap_err()));
        no_secret("an error", &error(&harness_store::open(&url).await.err().unwrap()));
    }
    no_secret("options", &format!("{options:?}"));
    let url = std::env::var("HARNESS_REDIS_URL").unwrap();
    let mut server = redis::Client::open(&*url).unwrap().get_connection().unwrap();
    let keys: Vec<Vec<u8>> = redis::cmd("KEYS").arg("{test_logs}:*").query(&mut server).unwrap();
    if !keys.is_empty() {
        redis::cmd("DEL").arg(keys).exec(&mut server).unwrap();
    }
    no_secret("the store", &shown(options.connect(&url).await.unwrap()).await);
    no_secret_in_logs("a log");
}
