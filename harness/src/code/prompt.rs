//! What a model is asked.
use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

use harness_esg::{Diagnosis, Program};

/// The longest source of a step, and the longest refused reply, that is shown whole.
const SHOWN: usize = 20_000;

pub(super) const SYSTEM: &str = "\
You repair a Python program that runs step by step. You see why a step fails, and the source of the steps that \
have to do with it. Repair the cause, with the smallest change. Never delete, comment out, skip or catch what \
fails.

Reply with one sentence that states the cause, and then one or more blocks of this form, with nothing after them:

STEP <id of the step>
<<<<<<< SEARCH
<lines of the step, exactly as they are, enough to be there only once>
=======
<the lines that take their place>
>>>>>>> REPLACE
";

pub(super) const WRITE: &str = "\
You write a Python program for a task. It runs step by step; each step begins with a line `# %% name`, where the \
name is one word, and uses the variables of those before it. Keep steps small, so that a change repeats little \
work. If you are shown a program, return the whole of it with the smallest change.

Reply with one block of this form:

```python
# %% load
rows = [1, 2, 3]
# %% report
print(sum(rows))
```
";

/// The diagnosis, and the sources of the steps it involves.
pub(super) fn question(diagnosis: &Diagnosis, program: &Program, shown: &[Arc<str>]) -> String {
    let mut text = format!("{diagnosis}\n");
    let at = diagnosis.raised_at();
    for id in shown {
        let Ok(step) = program.step(id) else { continue };
        // Of a step with the mistake, what is around it.
        let line = [Some(at), diagnosis.root.as_ref().map(|root| &root.at)]
            .into_iter()
            .flatten()
            .find(|at| at.step == *id)
            .and_then(|at| at.line);
        let _ = write!(text, "\nSTEP {id}\n{}\n", around(&step.source, line.unwrap_or(1)));
    }
    text
}

/// The reply that cannot be used, and why.
pub(super) fn refused(reply: &str, why: &str) -> String {
    format!(
        "This reply cannot be used: {why}\nReply again in the form that was asked for.\n\nThe reply:\n{}",
        around(reply, 1)
    )
}

/// The text, or if it is long the lines around this one, from 1, with what is left out.
fn around(text: &str, line: usize) -> Cow<'_, str> {
    if text.len() <= SHOWN {
        return text.into();
    }
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    // As much before the line as after it, and no less than there is room for.
    let from = start.min(text.len()).saturating_sub(SHOWN / 2).min(text.len() - SHOWN);
    let from = text.floor_char_boundary(from);
    let to = text.floor_char_boundary(from + SHOWN);
    // Whole lines, unless a line is as long as that.
    let from = match text[from..to].find('\n') {
        Some(end) if from > 0 => from + end + 1,
        _ => from,
    };
    let to = match text[from..to].rfind('\n') {
        Some(end) if to < text.len() => from + end + 1,
        _ => to,
    };
    let left_out = |part: &str| match part.lines().count() {
        0 => String::new(),
        lines => format!("[{lines} more lines, which are not shown]\n"),
    };
    let shown = &text[from..to];
    let end = if shown.ends_with('\n') || to == text.len() { "" } else { "\n" };
    format!("{}{shown}{end}{}", left_out(&text[..from]), left_out(&text[to..])).into()
}

#[cfg(test)]
mod tests {
    use super::{SHOWN, around};

    #[test]
    fn of_a_long_text_the_lines_around_the_mistake_are_shown_and_the_rest_is_counted() {
        let text: String = (1..=10_000).map(|line| format!("x{line} = {line}\n")).collect();
        assert_eq!(around("x = 1\ny = 2", 2), "x = 1\ny = 2");
        for line in [1, 2, 5_000, 9_999, 10_000, 12_000] {
            let shown = around(&text, line);
            assert!(shown.len() < SHOWN + 100, "{line}");
            let line = line.min(10_000);
            assert!(shown.contains(&format!("x{line} = {line}\n")), "{line}: {shown}");
            let lines: usize = shown
                .lines()
                .map(|line| match line.strip_prefix('[') {
                    Some(rest) => rest.split(' ').next().unwrap().parse().unwrap(),
                    None => 1,
                })
                .sum();
            assert_eq!(lines, 10_000, "every line is shown or counted");
        }
        // One long line.
        let shown = around(&"é".repeat(SHOWN), 1).into_owned();
        assert!(shown.ends_with("\n[1 more lines, which are not shown]\n"), "{shown}");
    }
}
