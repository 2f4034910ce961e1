use std::fmt;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use super::{Event, Observer};

/// An observer that writes each event as one line of JSON, for files and for other programs.
///
/// A line is flushed before the next event is handled. If the writer fails, that is reported once as a
/// warning, and nothing more is written. The events of a run that asks contain its questions, and
/// custom events what the steps emit: write them where the state may be written.
///
/// ```
/// # use harness::prelude::*;
/// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)] struct Doc { text: String }
/// # #[derive(StepId, Clone, Debug, PartialEq, Eq)] enum Step { Write }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let path = std::env::temp_dir().join(format!("events-{}.jsonl", std::process::id()));
/// use std::fs::File;
/// use harness::observe::JsonLines;
///
/// # let harness = Harness::<(), Doc>::builder("writer").start(Step::Write).steps(|define, step| match step {
/// #     Step::Write => define.run(|_, _| async move { Ok(Doc::update().text("hi")) }).end(),
/// # }).build()?;
/// let agent = harness.agent("w", ()).observe(JsonLines::new(File::create(&path)?));
/// agent.run(Doc::update(), ()).await?;
///
/// let lines = std::fs::read_to_string(&path)?;
/// assert!(lines.lines().next().unwrap().contains(r#""event":"run_started""#));
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub struct JsonLines<W> {
    /// None once it has failed.
    out: Mutex<Option<W>>,
    tokens: bool,
}

impl<W: Write + Send + 'static> JsonLines<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self { out: Mutex::new(Some(out)), tokens: false }
    }

    /// Writes [`Token`](super::EventKind::Token) events too.
    #[must_use]
    pub fn with_tokens(mut self) -> Self {
        self.tokens = true;
        self
    }
}

impl<W: Write + Send + 'static> Observer for JsonLines<W> {
    fn on_event(&self, event: &Event) {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(writer) = &mut *out else { return };
        let line = serde_json::to_vec(event).map_err(std::io::Error::from);
        let written = line.and_then(|mut line| {
            line.push(b'\n');
            writer.write_all(&line)?;
            writer.flush()
        });
        if let Err(error) = written {
            *out = None;
            tracing::warn!(%error, "failed to write an event, no more events are written");
        }
    }

    fn wants_tokens(&self) -> bool {
        self.tokens
    }
}

impl<W> fmt::Debug for JsonLines<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonLines").field("tokens", &self.tokens).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use serde_json::Value;

    use super::*;
    use crate::prelude::*;

    #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
    struct Doc {
        done: bool,
    }

    #[derive(StepId, Clone, Debug, PartialEq, Eq)]
    enum Step {
        Write,
    }

    /// Takes so many lines, then fails.
    #[derive(Clone)]
    struct Out(Arc<Mutex<(usize, String)>>);

    impl Write for Out {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let (left, text) = &mut *self.0.lock().unwrap();
            *left = left.checked_sub(1).ok_or(io::ErrorKind::StorageFull)?;
            text.push_str(std::str::from_utf8(bytes).unwrap());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    async fn lines(room: usize) -> Vec<Value> {
        let harness = Harness::<(), Doc>::builder("writer")
            .start(Step::Write)
            .steps(|define, Step::Write| {
                let write = async |_, cx: Cx<()>| {
                    cx.emit("two\nlines");
                    Ok(Doc::update().done(true))
                };
                define.run(write).end()
            })
            .build()
            .unwrap();
        let out = Out(Arc::new(Mutex::new((room, String::new()))));
        let request = harness.agent("w", ()).run(Doc::update(), ()).session("s");
        request.observe(JsonLines::new(out.clone())).await.unwrap().ended().unwrap();
        let (_, text) = &*out.0.lock().unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[tokio::test]
    async fn each_event_is_one_line() {
        let lines = lines(100).await;
        let events: Vec<_> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
        assert_eq!(events, ["run_started", "step_started", "custom", "committed", "settled"]);
        assert!(lines.iter().all(|line| line["session"] == "s"));
        assert_eq!(lines[2]["payload"], "two\nlines");
    }

    #[tokio::test]
    async fn a_writer_that_fails_gets_nothing_more() {
        assert_eq!(lines(2).await.len(), 2);
        assert!(lines(0).await.is_empty());
    }
}
