//@ names: `query`, `find`
//@ remedy: a tool owns what it is given

use harness::llm::ToolError;

/// Finds.
#[harness::llm::tool]
async fn find(query: &str) -> Result<String, ToolError> {
    Ok(query.to_owned())
}

fn main() {}
