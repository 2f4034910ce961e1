//@ names: `reads`
//@ remedy: `read`, `write`, `external`, `destructive`

use harness::llm::ToolError;

/// Finds.
#[harness::llm::tool(reads)]
async fn find(query: String) -> Result<String, ToolError> {
    Ok(query)
}

fn main() {}
