//! Lists of entities in messages.
use std::fmt;

use super::Entity;

/// Displays entities as text: `rows`, `file d.txt`.
pub(crate) struct List<'a>(pub(crate) &'a [Entity]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, entity) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(if at + 1 == self.0.len() { " and " } else { ", " })?;
            }
            match entity {
                Entity::Name(name) => write!(f, "`{name}`")?,
                Entity::File(path) | Entity::External(path) => write!(f, "the file `{path}`")?,
                Entity::Listing(path) => write!(f, "the listing of `{path}`")?,
                Entity::Module(name) => write!(f, "the module `{name}`")?,
                Entity::Package(name) => write!(f, "the distribution `{name}`")?,
                Entity::Process(what) => match what.as_ref() {
                    "rng" => f.write_str("the random state")?,
                    "cwd" => f.write_str("the working directory")?,
                    "env" => f.write_str("the environment")?,
                    "path" => f.write_str("the module path")?,
                    "warn" => f.write_str("the warning filters")?,
                    other => match other.strip_prefix("import/") {
                        Some(name) => write!(f, "whether `{name}` is loaded")?,
                        None => f.write_str(other)?,
                    },
                },
                Entity::Everything => f.write_str("the whole namespace")?,
                Entity::Token(_) => f.write_str("a class or function")?,
            }
        }
        Ok(())
    }
}
