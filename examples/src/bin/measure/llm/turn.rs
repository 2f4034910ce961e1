//! The time of a turn without a store, above that of the same bytes sent and read by a bare client on
//! one connection that is kept.

use std::time::{Duration, Instant};

use harness::llm::user;
use harness_providers::reqwest::Client;

use super::super::{Figure, block_on, failed, is_once, median};
use super::server::{Http, Server};
use super::{Agent, Chat, Ctx, agent};

/// The number of turns. The median counts.
const TURNS: usize = 500;
/// The most microseconds that a turn may take above the bare exchange.
const MOST: f64 = 1_000.0;

async fn turn(agent: &Agent<Ctx, Chat>) -> Option<usize> {
    let outcome = agent.run(Chat::update().talk([user("hi")]), ()).await.ok()?;
    Some(outcome.state()?.talk.last_text()?.len())
}

async fn bare(client: &Client, url: &str, body: Vec<u8>) -> Option<usize> {
    let request = client.post(format!("{url}/v1/messages"));
    let request = request.header("content-type", "application/json").body(body);
    let bytes = request.send().await.ok()?.bytes().await.ok()?;
    Some(bytes.len())
}

fn measured(case: &str, streamed: bool) -> Option<Figure> {
    let server = Server::start(Http::One, 1).ok()?;
    let agent = agent(&server, Http::One, streamed).ok()?;
    let client = Client::builder().no_proxy().build().ok()?;
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    // The first exchange connects, and shows which bytes are sent.
    block_on(turn(&agent))?;
    let body = server.last_body();
    block_on(bare(&client, server.url(), body.clone()))?;
    for _ in 0..if is_once() { 1 } else { TURNS } {
        let started = Instant::now();
        let said = block_on(turn(&agent));
        ours.push(started.elapsed());
        assert_eq!(said, Some(2_000), "a turn has another reply");
        let body = body.clone();
        let started = Instant::now();
        block_on(bare(&client, server.url(), body))?;
        floor.push(started.elapsed());
    }
    let micros = |times: Vec<Duration>| median(times.iter().map(|time| time.as_secs_f64() * 1e6));
    let above = micros(ours) - micros(floor);
    let unit = "us above bare : limit";
    Some(Figure { case: case.to_owned(), ours: above, floor: MOST, unit, ratio: above / MOST })
}

/// A reply in one piece, and the same as a stream of 100 parts.
pub(in super::super) fn turns() -> Vec<Figure> {
    [("llm-turn", false), ("llm-turn-streamed", true)]
        .map(|(case, streamed)| measured(case, streamed).unwrap_or_else(|| failed(case)))
        .into()
}
