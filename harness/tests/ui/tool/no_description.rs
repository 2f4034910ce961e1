//@ names: `find`
//@ remedy: add a doc comment: the model reads it

use harness::llm::ToolError;

#[harness::llm::tool(read)]
async fn find(query: String) -> Result<String, ToolError> {
    Ok(query)
}

fn main() {}
