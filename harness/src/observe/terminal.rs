use std::collections::HashMap;
use std::fmt;
use std::io::{Write, stderr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::id::RunId;
use crate::llm::Spend;

use super::{End, Event, EventKind, Observer};

/// How often a live line is redrawn.
const TICK: Duration = Duration::from_millis(120);

/// An observer that shows live progress on a terminal: one line for each run, with the current
/// step, the last signal, the tokens and their cost, and the elapsed time. When the run settles, its
/// outcome replaces the line, with what the turn has spent, children included. When a run is
/// interrupted, its line is removed.
///
/// It writes to the standard error, and only if that is a terminal.
///
/// ```
/// use harness::observe::Terminal;
///
/// let progress = Terminal::stderr();
/// # let _ = progress; // agent.run(input, slots).observe(progress).await
/// ```
pub struct Terminal {
    lines: MultiProgress,
    /// Writes a permanent line.
    write: fn(&str),
    runs: Mutex<HashMap<RunId, Line>>,
}

struct Line {
    bar: ProgressBar,
    steps: u64,
    signal: Option<&'static str>,
    spent: Spend,
}

impl Terminal {
    /// Shows runs on the standard error, if it is a terminal.
    pub fn stderr() -> Self {
        // A closed terminal is not an error.
        Self::on(ProgressDrawTarget::stderr(), |line| drop(writeln!(stderr(), "{line}")))
    }

    fn on(target: ProgressDrawTarget, write: fn(&str)) -> Self {
        Self { lines: MultiProgress::with_draw_target(target), write, runs: Mutex::default() }
    }

    /// Hides the live lines while `print` runs, for a program that writes to the same terminal
    /// during runs.
    pub fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.lines.suspend(print)
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, Line>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A run that continues with what its inbox has starts again.
    fn open(&self, event: &Event) {
        if self.runs().contains_key(&event.run) {
            return;
        }
        let bar = self.lines.add(ProgressBar::new_spinner());
        bar.set_prefix(printable(event.session.as_str()));
        if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix}  {msg}  {elapsed}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(TICK);
        let line = Line { bar, steps: 0, signal: None, spent: Spend::default() };
        self.runs().insert(event.run.clone(), line);
    }

    /// `end` is `None` if the run was dropped: the program knows, and its line is over.
    fn close(&self, event: &Event, end: Option<(&End, &Spend)>) {
        if let Some(line) = self.runs().remove(&event.run) {
            let elapsed = line.bar.elapsed();
            line.bar.finish_and_clear();
            let Some((end, spent)) = end else { return };
            let sign = match end {
                // The program asks now, and the run resumes later.
                End::Interrupted | End::Waiting { .. } => return,
                End::Ended { .. } => '✓',
                End::Stopped | End::Cancelled => '■',
                _ => '✗',
            };
            let session = printable(event.session.as_str());
            let steps = line.steps;
            let outcome = printable(&end.to_string());
            let spent = shown(spent);
            let text =
                format!("{sign} {session}  {outcome}  ({steps} steps, {spent}{elapsed:.1?})");
            self.lines.suspend(|| (self.write)(&text));
        }
    }
}

impl Observer for Terminal {
    fn on_event(&self, event: &Event) {
        if self.lines.is_hidden() {
            return;
        }
        match &event.kind {
            EventKind::RunStarted { .. } => self.open(event),
            EventKind::Settled { end, spent, .. } => self.close(event, Some((end, spent))),
            EventKind::Dropped => self.close(event, None),
            kind => {
                let mut runs = self.runs();
                let Some(line) = runs.get_mut(&event.run) else { return };
                if let EventKind::Committed { signal, .. } = kind {
                    line.steps += 1;
                    line.signal = *signal;
                }
                if let EventKind::Charged { spend } = kind {
                    line.spent += *spend;
                }
                let spent = shown(&line.spent);
                let message = message(event, line.signal);
                line.bar.set_message(format!("{message}  {}", spent.trim_end_matches(", ")));
            }
        }
    }
}

/// What was spent, as the first part of a list: `1,234 tokens, $0.0150, `. Empty if nothing is known.
fn shown(spent: &Spend) -> String {
    let tokens = spent.usage.total().map(|tokens| {
        let digits = tokens.to_string();
        let groups: Vec<&str> = digits
            .as_bytes()
            .rchunks(3)
            .rev()
            .filter_map(|it| std::str::from_utf8(it).ok())
            .collect();
        format!("{} tokens, ", groups.join(","))
    });
    #[allow(clippy::cast_precision_loss)]
    let cost = spent.cost_micros.map(|micros| format!("${:.4}, ", micros as f64 / 1e6));
    tokens.unwrap_or_default() + &cost.unwrap_or_default()
}

/// The activity of a run: `repair: asked Approve`, `run [Failed]`.
fn message(event: &Event, signal: Option<&'static str>) -> String {
    let step = event.step.as_deref().unwrap_or("");
    let text = match &event.kind {
        EventKind::StepStarted => match signal {
            Some(signal) => format!("{signal} → {step}"),
            None => step.to_owned(),
        },
        EventKind::Committed { .. } => step.to_owned(),
        other => format!("{step}: {other}"),
    };
    printable(&text)
}

/// The text on one line, without control characters. It may come from a model or a file.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect()
}

impl fmt::Debug for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terminal").field("hidden", &self.lines.is_hidden()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use indicatif::InMemoryTerm;

    use super::*;
    use crate::prelude::*;

    #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
    struct Doc {
        done: bool,
    }

    #[derive(StepId, Clone, Debug, PartialEq, Eq)]
    enum Step {
        Write,
        Check,
    }

    #[derive(Signal, Clone, Copy, Debug)]
    enum Next {
        Good,
    }

    async fn run(terminal: Terminal) {
        let harness = Harness::<(), Doc>::builder("writer")
            .start(Step::Write)
            .steps(|define, step| match step {
                Step::Write => {
                    let write = async |_, _: Cx<()>| {
                        let usage = crate::llm::Usage::tokens(1_200, 34);
                        let spent = Spend { usage, cost_micros: Some(15_000) };
                        crate::observe::current().unwrap().charge(&spent);
                        Ok(Doc::update().done(true))
                    };
                    define.run(write).then(Step::Check)
                }
                Step::Check => define.decide(|_| Next::Good, |_| end()),
            })
            .build()
            .unwrap();
        let request = harness.agent("w", ()).run(Doc::update(), ()).session("a\x1b[31mb");
        request.observe(terminal).await.unwrap().ended().unwrap();
    }

    #[tokio::test]
    async fn shows_how_a_run_settled() {
        static WRITTEN: Mutex<Vec<String>> = Mutex::new(Vec::new());
        let screen = InMemoryTerm::new(10, 80);
        let target = ProgressDrawTarget::term_like(Box::new(screen.clone()));
        let write = |line: &str| WRITTEN.lock().unwrap().push(line.to_owned());
        run(Terminal::on(target, write)).await;
        let written = WRITTEN.lock().unwrap();
        let expected = "✓ a [31mb  ended by Good  (2 steps, 1,234 tokens, $0.0150, ";
        assert!(written[0].starts_with(expected), "{written:?}");
        assert_eq!(written.len(), 1);
        // The live line was drawn and then removed.
        assert_eq!(screen.contents(), "");
        assert!(screen.moves_since_last_check().contains("Check"), "no live line");
    }

    #[test]
    fn what_is_not_known_is_not_shown() {
        assert_eq!(shown(&Spend::default()), "");
        let spent = Spend { cost_micros: Some(7), ..crate::llm::Usage::tokens(1, 999_999).into() };
        assert_eq!(shown(&spent), "1,000,000 tokens, $0.0000, ");
    }

    #[tokio::test]
    async fn writes_nothing_without_a_terminal() {
        let terminal = Terminal::on(ProgressDrawTarget::hidden(), |_| unreachable!());
        terminal.on_event(&event());
        assert!(terminal.runs().is_empty());
        run(terminal).await;
    }

    fn event() -> Event {
        Event {
            number: 1,
            at: crate::UtcMillis(0),
            agent: crate::id::AgentId::new("a"),
            session: crate::SessionId::fresh(),
            run: RunId::fresh(),
            parent: None,
            parent_step: None,
            step: None,
            position: crate::id::Position(0),
            item: None,
            item_key: None,
            attempt: 0,
            seq: None,
            bytes: None,
            kind: EventKind::RunStarted {
                resumed: false,
                cause: super::super::Cause::Start,
                waited_ms: None,
                worker: false,
                trace: None,
            },
        }
    }

    /// One line for a run, however often it starts, and none once it was dropped.
    #[test]
    fn a_run_that_is_dropped_has_no_line() {
        let screen = InMemoryTerm::new(10, 80);
        let target = ProgressDrawTarget::term_like(Box::new(screen.clone()));
        let terminal = Terminal::on(target, |_| unreachable!());
        let started = event();
        for expected in [1, 1] {
            terminal.on_event(&started);
            let line = terminal.runs()[&started.run].bar.clone();
            line.tick();
            assert_eq!(screen.contents().lines().count(), expected, "{}", screen.contents());
        }
        terminal.on_event(&Event { kind: EventKind::Dropped, ..started });
        assert!(terminal.runs().is_empty());
        assert_eq!(screen.contents(), "");
    }

    #[test]
    fn messages_name_the_step_and_the_signal() {
        let mut started = Event { step: Some("Check".into()), ..event() };
        started.kind = EventKind::StepStarted;
        assert_eq!(message(&started, Some("Good")), "Good → Check");
        assert_eq!(message(&started, None), "Check");
        started.kind = EventKind::Custom(std::sync::Arc::new("tick\nwith a line"));
        assert_eq!(message(&started, None), "Check: emitted &str");
    }
}
