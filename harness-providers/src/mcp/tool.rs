//! The tools of servers, for models.

use super::error::{McpError, McpErrorKind};
use super::name::Names;
use super::remote::Remote;
use super::{effect, schema};
use async_trait::async_trait;
use harness::llm::{Content, Tool, ToolCall, ToolCx, ToolError, ToolSet, ToolSpec};
use rmcp::model::{JsonObject, Tool as Listed};
use std::fmt;
use std::sync::{Arc, Weak};

/// The longest description that every vendor accepts.
const LONGEST: usize = 1024;

/// A tool of an MCP server. It is called under [`name`](Self::name) at the server, and under the name of
/// its [`spec`](Tool::spec) by models.
#[derive(Clone)]
pub struct RemoteTool {
    spec: ToolSpec,
    name: String,
    server: String,
    /// Weak, so that a set of tools does not keep processes.
    remote: Weak<Remote>,
}

impl RemoteTool {
    /// The name of the server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The name of the tool at the server.
    pub fn name(&self) -> &str {
        &self.name
    }
}

#[async_trait]
impl Tool for RemoteTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    async fn call(&self, call: &ToolCall, _: &ToolCx) -> Result<Content, ToolError> {
        let arguments: JsonObject = call.args()?;
        let Some(remote) = self.remote.upgrade() else {
            return Err(McpError::new(&self.server, McpErrorKind::Closed).into());
        };
        remote.call(&self.name, arguments, self.spec.effect, &call.id).await
    }
}

impl fmt::Debug for RemoteTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteTool")
            .field("server", &self.server)
            .field("name", &self.name)
            .field("spec", &self.spec)
            .finish_non_exhaustive()
    }
}

/// A tool that a server lists and no model can be given.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skipped {
    /// The name of the server.
    pub server: String,
    /// The name of the tool at the server.
    pub tool: String,
    /// Why no model can be given it.
    pub why: String,
}

/// The tools of all servers at one time.
#[derive(Default)]
pub(super) struct Listing {
    pub(super) set: ToolSet,
    pub(super) tools: Vec<RemoteTool>,
    pub(super) skipped: Vec<Skipped>,
}

impl Listing {
    /// The listing of what the servers list, in the order of the servers.
    pub(super) fn of<'a>(
        servers: impl IntoIterator<Item = (&'a Arc<Remote>, &'a [Listed])>,
    ) -> Self {
        let mut listing = Self::default();
        let mut names = Names::default();
        for (remote, tools) in servers {
            for tool in tools {
                match offered(remote, tool, &mut names) {
                    Ok(tool) => listing.tools.push(tool),
                    Err(why) => listing.skipped.push(Skipped {
                        server: remote.server.name.clone(),
                        tool: tool.name.to_string(),
                        why: why.to_owned(),
                    }),
                }
            }
        }
        // Names are legal and given once, and every schema is an object: a set accepts all of them.
        listing.set =
            ToolSet::builder().with_all(listing.tools.iter().cloned()).build().unwrap_or_default();
        listing
    }
}

fn offered(
    remote: &Arc<Remote>,
    tool: &Listed,
    names: &mut Names,
) -> Result<RemoteTool, &'static str> {
    let server = &remote.server;
    let schema = schema::clean(&tool.input_schema)?;
    let name = names.give(&server.name, &tool.name).ok_or("its server lists it twice")?;
    let known = server.effects.get(tool.name.as_ref()).copied();
    let effect = known.unwrap_or_else(|| effect::class(tool.annotations.as_ref(), server.trusted));
    let about = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
    let about = match about.char_indices().nth(LONGEST) {
        None => about.to_owned(),
        Some(_) => about.chars().take(LONGEST - 2).chain("..".chars()).collect(),
    };
    Ok(RemoteTool {
        spec: ToolSpec::new(name, about, schema).effect(effect),
        name: tool.name.to_string(),
        server: server.name.clone(),
        remote: Arc::downgrade(remote),
    })
}
