//! What a caller gives to the tools that it calls.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Values that a caller gives to its tools: one of each type, such as a database client. A step gives
/// its own [`Cx`](crate::Cx) too, see [`Cx::call_tools`](crate::Cx::call_tools).
///
/// ```
/// use harness::llm::ToolCx;
///
/// #[derive(Clone)]
/// struct Prices(u32);
///
/// let cx = ToolCx::new().with(Prices(7));
/// assert_eq!(cx.get::<Prices>()?.0, 7);
/// assert!(cx.get::<String>().is_err());
/// # Ok::<(), harness::llm::MissingValue>(())
/// ```
#[derive(Clone, Default)]
pub struct ToolCx {
    values: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
}

/// A tool needs a value that its caller did not give.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the tool needs a `{needed}`, which its caller did not give (add `.with(value)` where the tools are called)"
)]
pub struct MissingValue {
    needed: &'static str,
}

impl ToolCx {
    /// Creates a context without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a value. A later value of the same type replaces it.
    #[must_use]
    pub fn with<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.values.insert(TypeId::of::<T>(), Arc::new(value));
        self
    }

    /// The value of a type.
    ///
    /// # Errors
    ///
    /// Fails if the caller did not give one.
    pub fn get<T: Send + Sync + 'static>(&self) -> Result<&T, MissingValue> {
        let value = self.values.get(&TypeId::of::<T>()).and_then(|value| value.downcast_ref());
        value.ok_or(MissingValue { needed: type_name::<T>() })
    }
}

impl fmt::Debug for ToolCx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolCx").field("values", &self.values.len()).finish()
    }
}
