//@ names: `find`
//@ remedy: write `async fn find`

use harness::llm::ToolError;

/// Finds.
#[harness::llm::tool]
fn find(query: String) -> Result<String, ToolError> {
    Ok(query)
}

fn main() {}
