//! Large sessions, and lists whose pages cost the same however many sessions there are.

use harness::store::{Filter, Phase, SessionStore as _};
use harness_store::RedisStore;

use crate::place::Place;
use crate::server::{SAFE, Server};
use crate::shared_size;
use crate::support::summary;

#[tokio::test]
async fn a_state_of_50_mb_is_kept_and_read_back() {
    shared_size::large_state(Place::new("size_state").open().await).await;
}

#[tokio::test]
async fn a_log_of_100_000_entries_is_read_and_pruned() {
    shared_size::long_log(Place::new("size_log").open().await).await;
}

#[tokio::test]
async fn ten_thousand_open_interrupts_are_listed_by_page_and_answered_at_once() {
    shared_size::many_interrupts(Place::new("size_open").open().await).await;
}

fn agent_id(text: &str) -> harness::id::AgentId {
    serde_json::from_value(text.into()).unwrap()
}

/// How many commands a server has done since it was asked to count them.
fn commands(server: &Server) -> u64 {
    let info: String = redis::cmd("INFO").arg("commandstats").query(&mut server.raw()).unwrap();
    let calls = info.lines().filter_map(|line| {
        let (_, rest) = line.split_once(":calls=")?;
        rest.split(',').next()?.parse::<u64>().ok()
    });
    calls.sum()
}

#[tokio::test]
async fn pages_in_the_middle_of_100_000_sessions_that_wait() {
    // No other test has its commands counted there.
    let server = Server::start(SAFE);
    let store = RedisStore::connect(&server.url()).await.unwrap();
    let summary = serde_json::to_string(&summary(Phase::Interrupted)).unwrap();
    // As the store has them, which the pages below read.
    let make = redis::Script::new(
        "local p = KEYS[1]
         for n = tonumber(ARGV[2]), tonumber(ARGV[3]) do
            local id = string.format('s%06d', n)
            redis.call('HSET', p .. 'session:' .. id, 'head', 1, 'first', 1, 'created', 1,
                'updated', 2, 'summary', ARGV[1], 'fence', 1, 'listed', id, 'open', 1)
            redis.call('HSET', p .. 'open:' .. id, 'q', '5:')
            redis.call('ZADD', p .. 'ids:' .. id, 0, 'q')
            local agent = 'a' .. n % 3
            for _, base in ipairs({'all', 'open'}) do
                for _, name in ipairs({'', ':agent:' .. agent, ':phase:2',
                        ':both:2:' .. agent}) do
                    redis.call('ZADD', p .. base .. name, 0, id)
                end
            end
         end",
    );
    for begin in (1..100_000).step_by(1_000) {
        make.key("{harness}:")
            .arg(&summary)
            .arg(begin)
            .arg(begin + 999)
            .invoke::<()>(&mut server.raw())
            .unwrap();
    }
    for filter in [
        Filter::sessions(),
        Filter::sessions().agent(agent_id("a1")),
        Filter::sessions().phase(Phase::Interrupted),
        Filter::sessions().agent(agent_id("a1")).phase(Phase::Interrupted),
        Filter::interrupts(),
        Filter::interrupts().agent(agent_id("a1")),
        Filter::interrupts().agent(agent_id("a1")).phase(Phase::Interrupted),
    ] {
        let before = commands(&server);
        let listing = store.list(&filter, Some(b"s090000"), 100).await.unwrap();
        assert_eq!(listing.rows.len(), 100, "{filter:?}");
        assert!(listing.next.is_some());
        // The key of a session comes before those of its interrupts.
        let first = listing.rows[0].session.as_str();
        assert!(first > "s090000" || filter.interrupts && first == "s090000", "{first}");
        // At most three for each row, and a few that are not about rows.
        let done = commands(&server) - before;
        assert!(done < 350, "{filter:?}: {done} commands");
    }
}
