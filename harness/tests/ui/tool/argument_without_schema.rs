//@ names: `Query`
//@ remedy: the trait `JsonSchema` is not implemented for `Query`

use harness::llm::ToolError;

#[derive(serde::Deserialize)]
struct Query(String);

/// Finds.
#[harness::llm::tool]
async fn find(query: Query) -> Result<String, ToolError> {
    Ok(query.0)
}

fn main() {}
