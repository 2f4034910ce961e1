//! Reading the stored form of an older version.

use std::fmt::{self, Display};

use serde::de::DeserializeOwned;
use serde_json::Value;

/// A way from the JSON of an older version to the state `S` of this one.
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
    convert: Box<dyn Fn(Value) -> Result<S, MigrateError> + Send + Sync>,
}

impl<S> Migration<S> {
    /// Decodes the stored form as `Old` and converts it.
    #[must_use]
    pub fn new<Old, E>(convert: impl Fn(Old) -> Result<S, E> + Send + Sync + 'static) -> Self
    where
        Old: DeserializeOwned,
        E: Display,
    {
        let convert = move |stored| {
            let old = serde_json::from_value::<Old>(stored)
                .map_err(|error| MigrateError(Kind::Unreadable(error)))?;
            convert(old).map_err(|error| MigrateError(Kind::Refused(error.to_string())))
        };
        Self { convert: Box::new(convert) }
    }

    /// Converts a stored form.
    ///
    /// # Errors
    ///
    /// When the JSON is not that of the older version, or the conversion
    /// refuses it.
    pub fn run(&self, stored: Value) -> Result<S, MigrateError> {
        (self.convert)(stored)
    }
}

impl<S> fmt::Debug for Migration<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Migration")
    }
}

/// A stored state that could not be brought to this version.
#[derive(Debug)]
pub struct MigrateError(Kind);

#[derive(Debug)]
enum Kind {
    Unreadable(serde_json::Error),
    Refused(String),
}

impl MigrateError {
    /// Whether the JSON is not that of the older version.
    #[must_use]
    pub fn is_unreadable(&self) -> bool {
        matches!(self.0, Kind::Unreadable(_))
    }

    /// Whether the conversion itself refused the state.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self.0, Kind::Refused(_))
    }
}

impl Display for MigrateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Unreadable(_) => {
                f.write_str("the stored state is not of the version that `migrate` reads")
            }
            Kind::Refused(reason) => write!(f, "`migrate` refused the stored state: {reason}"),
        }
    }
}

impl std::error::Error for MigrateError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0 {
            Kind::Unreadable(error) => Some(error),
            Kind::Refused(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn says_why_a_state_could_not_be_brought_over() {
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
            "the stored state is not of the version that `migrate` reads"
        );
        assert!(std::error::Error::source(&error).is_some());
    }
}
