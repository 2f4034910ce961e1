//! The channels through which steps depend on each other.
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// One channel that steps read and write: a name, a file, the state of the random module.
///
/// Prints and parses as `n:NAME`, `f:PATH` and so on, the form in traces and on the wire.
///
/// ```
/// use harness_esg::Entity;
///
/// let rows: Entity = "n:rows".parse()?;
/// assert_eq!(rows, Entity::name("rows"));
/// assert_eq!(rows.to_string(), "n:rows");
/// # Ok::<(), harness_esg::EntityError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
#[non_exhaustive]
pub enum Entity {
    /// `n:` a global name.
    Name(Arc<str>),
    /// `t:` a class or a stateless function of the program: the object, whatever it is bound to.
    Token(Arc<str>),
    /// `m:` a module, as far as it differs from what importing it gave.
    Module(Arc<str>),
    /// `f:` a file or directory in the scratch directory, by its path from there.
    File(Arc<str>),
    /// `p:` state of the whole process: `rng`, `cwd`, `env`, `path`, `warn`, and `import/a.b` for each
    /// submodule that is loaded though its package does not load it.
    Process(Arc<str>),
    /// `d:` the listing of a directory in scratch. Only read.
    Listing(Arc<str>),
    /// `x:` a file outside scratch, by its absolute path. Only read.
    External(Arc<str>),
    /// `k:` an installed distribution. Only read.
    Package(Arc<str>),
    /// `*` everything: the step looked at its whole namespace. Only read.
    Everything,
}

/// An entity's text had no known form.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}` is no entity: expected `n:`, `t:`, `m:`, `f:`, `p:`, `d:`, `x:`, `k:` and a name, or `*`"
)]
pub struct EntityError(String);

impl Entity {
    /// The global name `name`.
    #[must_use]
    pub fn name(name: &str) -> Self {
        Self::Name(name.into())
    }

    /// The scratch file at `path`.
    #[must_use]
    pub fn file(path: &str) -> Self {
        Self::File(path.into())
    }

    /// The name, if it is one.
    #[must_use]
    pub fn as_name(&self) -> Option<&str> {
        match self {
            Self::Name(name) => Some(name),
            _ => None,
        }
    }

    /// Whether it is part of the state, not only read.
    #[must_use]
    pub fn is_state(&self) -> bool {
        matches!(
            self,
            Self::Name(_) | Self::Token(_) | Self::Module(_) | Self::File(_) | Self::Process(_)
        )
    }

    fn parts(&self) -> (&'static str, &str) {
        match self {
            Self::Name(text) => ("n:", text),
            Self::Token(text) => ("t:", text),
            Self::Module(text) => ("m:", text),
            Self::File(text) => ("f:", text),
            Self::Process(text) => ("p:", text),
            Self::Listing(text) => ("d:", text),
            Self::External(text) => ("x:", text),
            Self::Package(text) => ("k:", text),
            Self::Everything => ("*", ""),
        }
    }
}

impl fmt::Display for Entity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, text) = self.parts();
        write!(f, "{kind}{text}")
    }
}

impl From<Entity> for String {
    fn from(entity: Entity) -> Self {
        entity.to_string()
    }
}

impl FromStr for Entity {
    type Err = EntityError;

    fn from_str(text: &str) -> Result<Self, EntityError> {
        if text == "*" {
            return Ok(Self::Everything);
        }
        let unknown = || EntityError(text.chars().take(80).collect());
        let (kind, rest) = text.split_once(':').ok_or_else(unknown)?;
        let rest = rest.into();
        Ok(match kind {
            "n" => Self::Name(rest),
            "t" => Self::Token(rest),
            "m" => Self::Module(rest),
            "f" => Self::File(rest),
            "p" => Self::Process(rest),
            "d" => Self::Listing(rest),
            "x" => Self::External(rest),
            "k" => Self::Package(rest),
            _ => return Err(unknown()),
        })
    }
}

impl TryFrom<String> for Entity {
    type Error = EntityError;

    fn try_from(text: String) -> Result<Self, EntityError> {
        text.parse()
    }
}
