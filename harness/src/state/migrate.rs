//! Reads the stored form of older versions.

use std::fmt::{self, Display};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

/// Converts the JSON of an older version into the state `S` of this version.
///
/// ```
/// use harness::state::Migration;
/// use serde_json::json;
///
/// #[derive(serde::Deserialize)]
/// struct Old { name: String }
/// struct New { names: Vec<String> }
///
/// let migration = Migration::new(|old: Old| Ok::<_, String>(New { names: vec![old.name] }));
/// assert_eq!(migration.run(json!({"name": "Ada"}))?.names, ["Ada"]);
/// assert!(migration.run(json!({})).is_err_and(|error| error.is_unreadable()));
/// # Ok::<(), harness::state::MigrateError>(())
/// ```
pub struct Migration<S> {
    /// By distance: the first function reads the previous version, the next one the version before
    /// it.
    converts: Vec<Convert<S>>,
}

type Convert<S> = Box<dyn Fn(Value) -> Result<S, MigrateError> + Send + Sync>;

impl<S: 'static> Migration<S> {
    /// Decodes the stored form as `Old` and converts it.
    #[must_use]
    pub fn new<Old, E>(convert: impl Fn(Old) -> Result<S, E> + Send + Sync + 'static) -> Self
    where
        Old: DeserializeOwned + 'static,
        E: Display + 'static,
    {
        Self::chain(convert).build()
    }

    /// Starts a chain with the function that reads the previous version.
    #[must_use]
    pub fn chain<Old, E>(
        convert: impl Fn(Old) -> Result<S, E> + Send + Sync + 'static,
    ) -> MigrationChain<S, Old>
    where
        Old: DeserializeOwned + 'static,
        E: Display + 'static,
    {
        MigrationChain { converts: Vec::new(), last: Arc::new(move |old| refused(convert(old))) }
    }

    /// Converts a stored form of the previous version.
    ///
    /// # Errors
    ///
    /// Fails if the JSON does not decode as the previous version, or if the conversion refuses it.
    pub fn run(&self, stored: Value) -> Result<S, MigrateError> {
        self.run_from(1, stored).unwrap_or(Err(MigrateError(Kind::Unknown)))
    }

    /// Converts a stored form that is `back` versions old. Returns `None` if no function reads that
    /// version.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn run_from(&self, back: u32, stored: Value) -> Option<Result<S, MigrateError>> {
        let at = usize::try_from(back).ok()?.checked_sub(1)?;
        Some(self.converts.get(at)?(stored))
    }
}

/// A chain of functions that read older versions, each one version further back.
///
/// ```
/// use harness::state::Migration;
/// use serde_json::json;
///
/// #[derive(serde::Deserialize)]
/// struct V1 { name: String }
/// #[derive(serde::Deserialize)]
/// struct V2 { names: Vec<String> }
/// struct V3 { people: Vec<(String, u32)> }
///
/// fn from_v1(old: V1) -> Result<V2, String> {
///     Ok(V2 { names: vec![old.name] })
/// }
/// fn from_v2(old: V2) -> Result<V3, String> {
///     Ok(V3 { people: old.names.into_iter().map(|name| (name, 0)).collect() })
/// }
///
/// let migration = Migration::chain(from_v2).older(from_v1).build();
/// let v3 = migration.run_from(2, json!({"name": "Ada"})).expect("two versions are read")?;
/// assert_eq!(v3.people, [("Ada".to_owned(), 0)]);
/// # Ok::<(), harness::state::MigrateError>(())
/// ```
pub struct MigrationChain<S, Old> {
    converts: Vec<Convert<S>>,
    last: Arc<dyn Fn(Old) -> Result<S, MigrateError> + Send + Sync>,
}

impl<S: 'static, Old: DeserializeOwned + 'static> MigrationChain<S, Old> {
    /// Adds the function that reads the next older version. Its result is the argument of the
    /// function before it.
    #[must_use]
    pub fn older<Older, E>(
        mut self,
        convert: impl Fn(Older) -> Result<Old, E> + Send + Sync + 'static,
    ) -> MigrationChain<S, Older>
    where
        Older: DeserializeOwned + 'static,
        E: Display + 'static,
    {
        let last = Arc::clone(&self.last);
        self.converts.push(decoding(self.last));
        let last = Arc::new(move |older| last(refused(convert(older))?));
        MigrationChain { converts: self.converts, last }
    }

    /// Builds the migration.
    #[must_use]
    pub fn build(mut self) -> Migration<S> {
        self.converts.push(decoding(self.last));
        Migration { converts: self.converts }
    }
}

impl<S, Old> fmt::Debug for MigrationChain<S, Old> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MigrationChain")
    }
}

fn decoding<S: 'static, Old: DeserializeOwned + 'static>(
    convert: Arc<dyn Fn(Old) -> Result<S, MigrateError> + Send + Sync>,
) -> Convert<S> {
    Box::new(move |stored| {
        let old = serde_json::from_value::<Old>(stored)
            .map_err(|error| MigrateError(Kind::Unreadable(error)))?;
        convert(old)
    })
}

fn refused<T, E: Display>(converted: Result<T, E>) -> Result<T, MigrateError> {
    converted.map_err(|error| MigrateError(Kind::Refused(error.to_string())))
}

impl<S> fmt::Debug for Migration<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Migration")
    }
}

/// A stored state that failed to migrate to this version.
#[derive(Debug)]
pub struct MigrateError(Kind);

#[derive(Debug)]
enum Kind {
    Unreadable(serde_json::Error),
    Refused(String),
    Unknown,
}

impl MigrateError {
    /// Whether the JSON does not decode as the older version.
    #[must_use]
    pub fn is_unreadable(&self) -> bool {
        matches!(self.0, Kind::Unreadable(_))
    }

    /// Whether the conversion refused the state.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self.0, Kind::Refused(_))
    }
}

impl Display for MigrateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Unreadable(_) => {
                f.write_str("the stored state does not decode as the version that `migrate` reads")
            }
            Kind::Unknown => f.write_str("no `migrate` reads the version of the stored state"),
            Kind::Refused(reason) => write!(f, "`migrate` refused the stored state: {reason}"),
        }
    }
}

impl std::error::Error for MigrateError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0 {
            Kind::Unreadable(error) => Some(error),
            Kind::Refused(_) | Kind::Unknown => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reports_why_a_migration_failed() {
        let migration = Migration::new(|old: u32| match old {
            0 => Err("zero is no longer a state"),
            old => Ok(u64::from(old)),
        });
        assert_eq!(migration.run(json!(1)).unwrap(), 1);

        let error = migration.run(json!(0)).unwrap_err();
        assert!(error.is_refused() && !error.is_unreadable());
        assert_eq!(
            error.to_string(),
            "`migrate` refused the stored state: zero is no longer a state"
        );

        let error = migration.run(json!("x")).unwrap_err();
        assert!(error.is_unreadable() && !error.is_refused());
        assert_eq!(
            error.to_string(),
            "the stored state does not decode as the version that `migrate` reads"
        );
        assert!(std::error::Error::source(&error).is_some());
    }
}
