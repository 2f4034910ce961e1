//! The terminal: prints reports and asks for approvals.

use std::io::{self, BufRead, IsTerminal, Write};

use examples::shown;
use tokio::sync::{oneshot, watch};

use super::diff::{Paint, unified};
use super::state::{Approve, Decision, Repair};

/// The reply to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// An answer, and the user who gave it.
    Answer(Decision, String),
    /// There is no terminal to ask at.
    NoTerminal,
    /// Ctrl-C was pressed.
    Stop,
}

/// The terminal, if there is one, and Ctrl-C.
#[derive(Debug)]
pub(super) struct Console {
    /// Approve every proposal.
    pub(super) yes: bool,
    /// Standard output is for JSON only.
    pub(super) json: bool,
    /// How often Ctrl-C was pressed.
    pub(super) stop: watch::Receiver<u32>,
}

impl Console {
    /// Prints text for people. A closed output is no error.
    pub(super) fn say(&self, text: &str) {
        let print = |mut out: Box<dyn Write>| {
            out.write_all(text.as_bytes())?;
            // A prompt has no line end.
            out.flush()
        };
        let _ = if self.json {
            print(Box::new(anstream::stderr()))
        } else {
            print(Box::new(anstream::stdout()))
        };
    }

    /// Whether Ctrl-C was pressed.
    pub(super) fn is_stopping(&self) -> bool {
        *self.stop.borrow() > 0
    }

    /// Shows a proposal and asks whether to apply it.
    pub(super) async fn ask(&self, question: &Approve, repair: &Repair) -> Reply {
        if self.yes {
            if !self.json {
                self.say(&proposal(question, repair));
                self.say("Approved by --yes.\n\n");
            }
            return Reply::Answer(Decision::Apply, "--yes".to_owned());
        }
        if !io::stdin().is_terminal() {
            return Reply::NoTerminal;
        }
        self.say(&proposal(question, repair));
        loop {
            self.say("Apply this repair? [y]es, [n]ext, [q]uit: ");
            let mut stop = self.stop.clone();
            let line = tokio::select! {
                line = read_line() => line,
                Ok(_) = stop.wait_for(|times| *times > 0) => return Reply::Stop,
            };
            let decision = match line {
                Some(line) => decision(&line),
                // The end of input approves nothing.
                None => Some(Decision::Quit),
            };
            if let Some(decision) = decision {
                self.say("\n");
                return Reply::Answer(decision, user());
            }
            self.say("Please type y, n or q; an empty line approves nothing.\n");
        }
    }
}

fn decision(line: &str) -> Option<Decision> {
    match line.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Some(Decision::Apply),
        "n" | "no" | "next" => Some(Decision::Next),
        "q" | "quit" => Some(Decision::Quit),
        _ => None,
    }
}

/// The proposal as the person sees it.
fn proposal(question: &Approve, repair: &Repair) -> String {
    let Approve { file, fault, by, line, explanation, diff } = question;
    let (before, after) = (repair.copy(), repair.document.view(repair.code.program()));
    let coloured = unified(&repair.name, &before, &after, Paint::Coloured);
    format!(
        "{}: {}\nProposal for line {line} by the {}, {}\n{}",
        shown(file),
        shown(fault),
        shown(by),
        shown(explanation),
        if coloured.is_empty() { diff } else { &coloured }
    )
}

/// A line from the terminal; `None` at the end of input. The program ends without waiting for the
/// thread that reads.
async fn read_line() -> Option<String> {
    let (send, receive) = oneshot::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        // The receiver is gone after Ctrl-C.
        let _ = send.send(matches!(read, Ok(1..)).then_some(line));
    });
    receive.await.ok().flatten()
}

fn user() -> String {
    ["USER", "LOGNAME"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|user| !user.is_empty()))
        .unwrap_or_else(|| "terminal".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_yes_approves() {
        for line in ["y\n", "Y\r\n", " yes \n"] {
            assert_eq!(decision(line), Some(Decision::Apply), "{line:?}");
        }
        assert_eq!(decision("n\n"), Some(Decision::Next));
        assert_eq!(decision("q\n"), Some(Decision::Quit));
        for line in ["", "\n", " \n", "yn\n", "ye\n", "ok\n", "1\n", "\u{1b}[A\n"] {
            assert_eq!(decision(line), None, "{line:?}");
        }
    }
}
