//! Entities: the channels through which steps depend on each other.
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// One channel that steps read and write: a name, a file, the state of the random module.
///
/// `Display` and `FromStr` use the form `n:NAME`, `f:PATH` and so on, as do traces and the worker
/// protocol.
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
    /// `t:` an object that names refer to: a class or a stateless function that the program
    /// defines.
    Token(Arc<str>),
    /// `m:` a module, as far as it differs from the module as imported.
    Module(Arc<str>),
    /// `f:` a file or directory, by its path in the scratch directory.
    File(Arc<str>),
    /// `p:` state of the whole process: `rng`, `cwd`, `env`, `path`, `warn`, and `import/a.b` for
    /// each loaded submodule that its package does not import itself.
    Process(Arc<str>),
    /// `d:` the listing of a directory in scratch. Read-only.
    Listing(Arc<str>),
    /// `x:` a file outside scratch, by its absolute path. Read-only.
    External(Arc<str>),
    /// `k:` an installed distribution. Read-only.
    Package(Arc<str>),
    /// `*` everything: the step inspected its whole namespace. Read-only.
    Everything,
}

/// The text is not an entity.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}` is not an entity: expected `n:`, `t:`, `m:`, `f:`, `p:`, `d:`, `x:`, `k:` and a name, or `*`"
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

    /// The name, if this is a global name.
    #[must_use]
    pub fn as_name(&self) -> Option<&str> {
        match self {
            Self::Name(name) => Some(name),
            _ => None,
        }
    }

    /// Whether it is part of the state. Read-only entities are not.
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
