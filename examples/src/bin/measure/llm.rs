//! What an adapter costs, against a server in this process that replies at once with fixed bytes.

mod server;
mod streams;
mod turn;

pub(super) use streams::streams;
pub(super) use turn::turns;

use std::sync::Arc;

use harness::llm::{Llm, ToolSet, Transcript};
use harness::prelude::*;
use harness::{BuildError, Harness};
use harness_providers::reqwest::Client;
use harness_providers::{Anthropic, Secret};

use server::{Http, Server};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat {
    #[state(reduce = transcript)]
    talk: Transcript,
}

#[derive(Context)]
struct Ctx {
    model: Arc<dyn Llm>,
    tools: ToolSet,
    streamed: bool,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Think,
}

async fn think(chat: View<Chat>, cx: Cx<Ctx>) -> StepResult<Chat> {
    let model = cx.llm(&cx.model);
    let model = if cx.streamed { model.streamed() } else { model };
    let reply = model.complete(&chat.talk, &cx.tools).await?;
    Ok(Chat::update().talk([reply.into()]))
}

/// A conversation with the model of this server. Each run is one turn.
fn agent(server: &Server, http: Http, streamed: bool) -> Result<Agent<Ctx, Chat>, BuildError> {
    let model = Anthropic::new("claude-x", Secret::new("key")).base_url(server.url());
    // Over TLS the two sides agree on HTTP/2 by themselves.
    let client = || Client::builder().no_proxy().http2_prior_knowledge().build().ok();
    let model = match http {
        Http::One => model,
        Http::Two => client().into_iter().fold(model, |model, client| model.client(client)),
    };
    let fixed = Ctx::fixed().model(Arc::new(model)).tools(ToolSet::default()).streamed(streamed);
    let harness = Harness::<Ctx, Chat>::builder("llm")
        .provide(fixed.build())
        .start(Step::Think)
        .steps(|define, step| match step {
            Step::Think => define.run(think).end(),
        })
        .build()?;
    Ok(harness.agent("llm", ()))
}
