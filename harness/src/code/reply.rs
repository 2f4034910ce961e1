//! Reads the blocks of a reply.
use std::sync::Arc;

use harness_esg::Patch;

/// The longest reason that is kept.
const WHY: usize = 300;

/// Where the reader is in a reply.
enum At {
    Outside,
    Search(String),
    Replace(String, String),
}

/// The patch in a reply, or what is wrong with the reply.
pub(super) fn patch(text: &str, shown: &[Arc<str>]) -> Result<Patch, String> {
    // With one step there is no doubt which one is meant.
    let mut step = match shown {
        [only] => Some(&**only),
        _ => None,
    };
    let mut found: Option<Patch> = None;
    let mut why = "";
    let mut at = At::Outside;
    for line in text.lines() {
        at = match at {
            At::Outside => {
                if let Some(id) = line.trim().strip_prefix("STEP ") {
                    let id = id.trim().trim_matches('`');
                    step = Some(shown.iter().find(|one| ***one == *id).ok_or_else(|| {
                        let steps = shown.join("`, `");
                        format!(
                            "it changes step `{id}`, which is not one of those shown: `{steps}`"
                        )
                    })?);
                } else if why.is_empty() && !line.starts_with("```") && !line.starts_with("<<<<<<<")
                {
                    why = line.trim();
                }
                match line.starts_with("<<<<<<<") {
                    true => At::Search(String::new()),
                    false => At::Outside,
                }
            }
            At::Search(search) if line.trim_end() == "=======" => {
                At::Replace(search, String::new())
            }
            At::Search(search) => At::Search(search + line + "\n"),
            At::Replace(search, replace) if line.starts_with(">>>>>>>") => {
                let step = step.ok_or("a block has no line `STEP <id>` before it")?;
                let next = Patch::search_replace(step, &search, &replace);
                found = Some(match found {
                    Some(patch) => patch.and(next),
                    None => next,
                });
                At::Outside
            }
            At::Replace(search, replace) => At::Replace(search, replace + line + "\n"),
        };
    }
    match (at, found) {
        (At::Search(_), _) => Err("its last block ends before `=======`".into()),
        (At::Replace(..), _) => Err("its last block ends before `>>>>>>> REPLACE`".into()),
        (At::Outside, None) => Err("it has no block".into()),
        (At::Outside, Some(patch)) => Ok(patch.why(&why[..why.floor_char_boundary(WHY)])),
    }
}
