//! Models by name, with keys from the environment.

use crate::Secret;
use harness::llm::Llm;
use std::sync::Arc;

/// How the models of a provider are made.
struct Provider {
    /// What the names of its models begin with, before the `/`.
    name: &'static str,
    /// The Cargo feature that has its adapter.
    feature: &'static str,
    /// `None` without that feature.
    make: Option<fn(&str) -> Result<Arc<dyn Llm>, EnvError>>,
}

macro_rules! providers {
    ($($name:literal, $feature:literal => $make:path;)+) => {
        /// One line for each provider.
        const PROVIDERS: &[Provider] = &[$(
            Provider {
                name: $name,
                feature: $feature,
                #[cfg(feature = $feature)]
                make: Some(|model| Ok(Arc::new($make(model)?))),
                #[cfg(not(feature = $feature))]
                make: None,
            },
        )+];
    };
}

providers! {
    "anthropic", "anthropic" => crate::Anthropic::from_env;
    "gemini", "gemini" => crate::Gemini::from_env;
    "ollama", "ollama" => crate::Ollama::from_env;
    "openai", "openai-responses" => crate::OpenAiResponses::from_env;
    "openai-chat", "openai-chat" => crate::OpenAiChat::from_env;
    "openai-compatible", "openai-chat" => crate::OpenAiChat::compatible_from_env;
}

/// The model of a name such as `anthropic/claude-sonnet-4-5`, with its key from the environment.
///
/// | name begins with | key | base URL, if set |
/// |---|---|---|
/// | `anthropic/` | `ANTHROPIC_API_KEY` | `ANTHROPIC_BASE_URL` |
/// | `gemini/` | `GEMINI_API_KEY` | `GEMINI_BASE_URL` |
/// | `ollama/` | `OLLAMA_API_KEY`, if set | `OLLAMA_HOST` |
/// | `openai/` | `OPENAI_API_KEY` | `OPENAI_BASE_URL` |
/// | `openai-chat/` | `OPENAI_API_KEY` | `OPENAI_BASE_URL` |
/// | `openai-compatible/` | `OPENAI_COMPATIBLE_API_KEY`, if set | `OPENAI_COMPATIBLE_BASE_URL`, which must be set |
///
/// `openai/` speaks the Responses API and not Chat Completions, because only there the reasoning of the
/// model goes back to it between the calls of a turn. `openai-chat/` is for requests with a seed or stop
/// sequences, which the Responses API does not have. Other servers that speak Chat Completions are
/// `openai-compatible/`.
///
/// ```
/// let error = harness_providers::from_env("acme/m-1").err().unwrap();
/// assert!(error.to_string().starts_with("unknown provider `acme` of the model `acme/m-1` (use "));
/// ```
///
/// # Errors
///
/// The provider is unknown or its feature is off, or a variable that it needs is not set.
pub fn from_env(name: &str) -> Result<Arc<dyn Llm>, EnvError> {
    let (provider, model) = name.split_once('/').unwrap_or((name, ""));
    let known = PROVIDERS.iter().find(|known| known.name == provider && !model.is_empty());
    let Some(known) = known else {
        return Err(EnvError::UnknownProvider {
            provider: provider.to_owned(),
            name: name.to_owned(),
        });
    };
    match known.make {
        Some(make) => make(model),
        None => Err(EnvError::FeatureOff { provider: known.name, feature: known.feature }),
    }
}

/// The key of a provider.
pub(crate) fn key(variable: &'static str) -> Result<Secret, EnvError> {
    match std::env::var(variable) {
        Ok(key) if !key.trim().is_empty() => Ok(Secret::new(key.trim())),
        _ => Err(EnvError::NoKey { variable }),
    }
}

/// The key of a provider that may need none, if it is set.
#[cfg(any(feature = "ollama", feature = "openai-chat"))]
pub(crate) fn optional_key(variable: &str) -> Option<Secret> {
    let key = std::env::var(variable).ok()?;
    (!key.trim().is_empty()).then(|| Secret::new(key.trim()))
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
    /// The base URL is not set, and the provider has none of its own.
    NoBaseUrl {
        /// The environment variable.
        variable: &'static str,
    },
    /// The adapter of the provider is not built.
    FeatureOff {
        /// The provider.
        provider: &'static str,
        /// The Cargo feature that has it.
        feature: &'static str,
    },
}

impl std::fmt::Display for EnvError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::UnknownProvider { provider, name } => {
                write!(f, "unknown provider `{provider}` of the model `{name}` (use ")?;
                for (place, known) in PROVIDERS.iter().enumerate() {
                    let comma = if place == 0 { "" } else { ", " };
                    write!(f, "{comma}`{}/..`", known.name)?;
                }
                f.write_str(")")
            }
            Self::NoKey { variable } => {
                write!(f, "the environment variable `{variable}` is not set (set it to a key)")
            }
            Self::NoBaseUrl { variable } => write!(
                f,
                "the environment variable `{variable}` is not set (set it to the URL of the server)"
            ),
            Self::FeatureOff { provider, feature } => write!(
                f,
                "the adapter of `{provider}` is not built (enable the feature `{feature}` of \
                 `harness-providers`)"
            ),
        }
    }
}

impl std::error::Error for EnvError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(name: &str) -> EnvError {
        from_env(name).err().unwrap()
    }

    #[cfg(feature = "ollama")]
    #[test]
    fn a_server_on_this_machine_needs_no_key() {
        let model = from_env("ollama/library/qwen3:8b").ok().unwrap();
        assert_eq!(model.id().to_string(), "ollama/library/qwen3:8b");
    }

    #[test]
    fn names_without_provider_or_model_are_unknown() {
        for name in ["", "m-1", "acme/m-1", "anthropic", "anthropic/"] {
            let error = error(name);
            assert!(matches!(error, EnvError::UnknownProvider { .. }), "{error}");
            assert!(error.to_string().contains("`anthropic/..`"), "{error}");
        }
    }

    #[test]
    fn providers_have_names_of_their_own() {
        let mut names: Vec<_> = PROVIDERS.iter().map(|known| known.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PROVIDERS.len());
    }
}
