//! Tools from async functions.

use super::{EffectClass, Tool, ToolCall, ToolCx, ToolError, ToolSpec};
use crate::llm::schema::schema_of;
use crate::llm::{Content, ToolName};
use async_trait::async_trait;
use futures_util::future::{BoxFuture, FutureExt, ready};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt;
use std::time::Duration;

/// A tool that calls an async function, created by [`tool`].
pub struct FnTool {
    spec: ToolSpec,
    run: Run,
}

type Run = Box<dyn Fn(&ToolCall) -> BoxFuture<'static, Result<Content, ToolError>> + Send + Sync>;

/// Creates a tool from an async function with typed arguments.
///
/// The argument type defines the input schema. It must be a struct or a map, because models send
/// objects; `serde_json::Value` accepts any object. The result is anything that converts into
/// [`Content`], and the error is any error, by `?`.
///
/// ```
/// use harness::llm::{ToolCall, ToolSet, tool};
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Add { a: i64, b: i64 }
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let add = tool("add", "Adds two numbers", |args: Add| async move {
///     let sum = args.a.checked_add(args.b);
///     Ok(sum.map_or("too big".to_owned(), |sum| sum.to_string()))
/// });
/// let tools = ToolSet::builder().with(add).build()?;
///
/// let outcome = tools.call(&ToolCall::new("c", "add", r#"{"a": 1, "b": 2}"#)).await;
/// assert_eq!(outcome.content().text().as_deref(), Some("3"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn tool<A, O, F, Fut>(
    name: impl Into<ToolName>,
    description: impl Into<String>,
    function: F,
) -> FnTool
where
    A: DeserializeOwned + JsonSchema,
    O: Into<Content>,
    F: Fn(A) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, ToolError>> + Send + 'static,
{
    FnTool {
        spec: ToolSpec::new(name, description, schema::<A>()),
        run: Box::new(move |call| match call.args::<A>() {
            Ok(args) => function(args).map(|done| done.map(Into::into)).boxed(),
            Err(error) => ready(Err(error.into())).boxed(),
        }),
    }
}

impl FnTool {
    /// Sets what a call does to the world. The default is [`EffectClass::External`].
    #[must_use]
    pub fn effect(mut self, effect: EffectClass) -> Self {
        self.spec.effect = effect;
        self
    }

    /// Bounds how long a call may take.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.spec.timeout = Some(limit);
        self
    }
}

/// The input schema of arguments of type `A`.
pub(crate) fn schema<A: JsonSchema>() -> Value {
    match schema_of::<A>() {
        // Any value is accepted, but models send objects.
        Value::Bool(true) => json!({"type": "object"}),
        Value::Object(mut any) if any.keys().all(|key| key == "title" || key == "description") => {
            any.insert("type".to_owned(), json!("object"));
            Value::Object(any)
        }
        schema => schema,
    }
}

#[async_trait]
impl Tool for FnTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    async fn call(&self, call: &ToolCall, _cx: &ToolCx) -> Result<Content, ToolError> {
        (self.run)(call).await
    }
}

impl fmt::Debug for FnTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FnTool").field("name", &self.spec.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Deserialize, JsonSchema)]
    struct Search {
        /// What to look for.
        query: String,
        page: Option<Page>,
    }

    #[derive(Deserialize, JsonSchema)]
    struct Page {
        number: u8,
    }

    #[tokio::test]
    async fn the_argument_type_defines_schema_and_arguments() {
        let search = tool("search", "Searches", |args: Search| async move {
            let page = args.page.map_or(0, |page| page.number);
            Ok(format!("{} {page}", args.query))
        });
        let schema = search.spec().input_schema;
        insta::assert_snapshot!(schema, @r#"{"properties":{"page":{"properties":{"number":{"format":"uint8","maximum":255,"minimum":0,"type":"integer"}},"required":["number"],"type":["object","null"]},"query":{"description":"What to look for.","type":"string"}},"required":["query"],"title":"Search","type":"object"}"#);
        let call = ToolCall::new("c", "search", r#"{"query":"a","page":{"number":2}}"#);
        assert_eq!(search.call(&call, &ToolCx::new()).await.unwrap(), "a 2".into());
    }

    #[tokio::test]
    async fn results_may_be_text_json_parts_or_nothing() {
        let call = ToolCall::new("c", "t", "{}");
        let answers = [
            tool("t", "", |_: Value| async { Ok("a") }),
            tool("t", "", |_: Value| async { Ok(json!({"n": 1})) }),
            tool("t", "", |_: Value| async { Ok(vec!["a".into()]) }),
            tool("t", "", |_: Value| async { Ok(()) }),
        ];
        let mut said = Vec::new();
        for answer in answers {
            said.push(answer.call(&call, &ToolCx::new()).await.unwrap().into_parts());
        }
        let a = || vec!["a".into()];
        assert_eq!(said, [a(), vec![json!({"n": 1}).into()], a(), vec![]]);
    }

    #[test]
    fn any_value_has_the_schema_of_an_object() {
        let any = tool("t", "", |_: Value| async { Ok(()) });
        assert_eq!(any.spec().input_schema["type"], "object");
    }

    #[tokio::test]
    async fn other_errors_convert() {
        let parse = tool("t", "", |_: Value| async { Ok("x".parse::<u8>()?.to_string()) });
        let error = parse.call(&ToolCall::new("c", "t", "{}"), &ToolCx::new()).await.unwrap_err();
        assert_eq!(error.to_string(), "invalid digit found in string");
    }
}
