//@ names: `find`
//@ remedy: has two classes (remove one of them)

use harness::llm::ToolError;

/// Finds.
#[harness::llm::tool(read, destructive)]
async fn find(query: String) -> Result<String, ToolError> {
    Ok(query)
}

fn main() {}
