//! What a model is asked.
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
    for id in shown {
        let Ok(step) = program.step(id) else { continue };
        let _ = write!(text, "\nSTEP {id}\n{}\n", cut(&step.source));
    }
    text
}

/// The reply that cannot be used, and why.
pub(super) fn refused(reply: &str, why: &str) -> String {
    format!(
        "This reply cannot be used: {why}\nReply again in the form that was asked for.\n\nThe reply:\n{}",
        cut(reply)
    )
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(SHOWN)]
}
