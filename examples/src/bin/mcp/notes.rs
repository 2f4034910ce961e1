//! A small MCP server: it keeps notes for as long as it runs.

use std::error::Error;
use std::sync::{Mutex, PoisonError};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorCode, ErrorData,
    JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value, json};

/// Serves over standard input and output until the input ends.
pub(crate) async fn serve() -> Result<(), Box<dyn Error>> {
    Notes::default().serve(rmcp::transport::stdio()).await?.waiting().await?;
    Ok(())
}

#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl ServerHandler for Notes {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let text = json!({
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
        });
        let nothing = json!({"type": "object", "properties": {}});
        Ok(ListToolsResult::with_all_items(vec![
            Tool::new("add", "Adds a note.", object(text)),
            Tool::new("list", "Lists the notes.", object(nothing)),
        ]))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = call.arguments.unwrap_or_default();
        let text = arguments.get("text").and_then(Value::as_str);
        let mut notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let said = match (&*call.name, text) {
            ("add", Some(text)) => {
                notes.push(text.to_owned());
                format!("{} notes", notes.len())
            }
            ("list", _) => notes.join(", "),
            (name, _) => {
                let text = format!("there is no tool `{name}` with these arguments");
                return Err(ErrorData::new(ErrorCode::INVALID_PARAMS, text, None));
            }
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(said)]).into())
    }
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}
