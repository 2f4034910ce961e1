//@ names: `find`
//@ remedy: write `-> Result<String, ToolError>`

/// Finds.
#[harness::llm::tool]
async fn find(query: String) -> String {
    query
}

fn main() {}
