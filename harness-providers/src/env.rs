//! Models by name, with keys from the environment.

use crate::Secret;
use harness::llm::Llm;
use std::sync::Arc;

/// The model of a name such as `anthropic/claude-sonnet-4-5`, with its key from the environment.
///
/// | name begins with | key | base URL, if set |
/// |---|---|---|
/// | `anthropic/` | `ANTHROPIC_API_KEY` | `ANTHROPIC_BASE_URL` |
///
/// ```
/// let error = harness_providers::from_env("acme/m-1").err().unwrap();
/// assert_eq!(
///     error.to_string(),
///     "unknown provider `acme` of the model `acme/m-1` (use `anthropic/..`)",
/// );
/// ```
///
/// # Errors
///
/// The provider is unknown, or its key is not set.
pub fn from_env(name: &str) -> Result<Arc<dyn Llm>, EnvError> {
    let unknown = |provider: &str| EnvError::UnknownProvider {
        provider: provider.to_owned(),
        name: name.to_owned(),
    };
    let Some((provider, model)) = name.split_once('/') else { return Err(unknown(name)) };
    match provider {
        #[cfg(feature = "anthropic")]
        "anthropic" => Ok(Arc::new(crate::Anthropic::from_env(model)?)),
        _ => {
            let _ = model;
            Err(unknown(provider))
        }
    }
}

/// The key of a provider.
pub(crate) fn key(variable: &'static str) -> Result<Secret, EnvError> {
    match std::env::var(variable) {
        Ok(key) if !key.trim().is_empty() => Ok(Secret::new(key.trim())),
        _ => Err(EnvError::NoKey { variable }),
    }
}

/// The base URL of a provider, if it is set.
pub(crate) fn base_url(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|url| !url.trim().is_empty())
}

/// Why a model cannot be made from the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EnvError {
    /// No adapter has this provider.
    UnknownProvider {
        /// The provider.
        provider: String,
        /// The name of the model.
        name: String,
    },
    /// The key is not set.
    NoKey {
        /// The environment variable.
        variable: &'static str,
    },
}

impl std::fmt::Display for EnvError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::UnknownProvider { provider, name } => write!(
                f,
                "unknown provider `{provider}` of the model `{name}` (use `anthropic/..`)"
            ),
            Self::NoKey { variable } => {
                write!(f, "the environment variable `{variable}` is not set (set it to a key)")
            }
        }
    }
}

impl std::error::Error for EnvError {}
