//! How often a call waits for the server, counted on the way there.

use tokio_postgres::config::Host;

use crate::place::{Place, append, claim};
use crate::proxy::Proxy;
use crate::support::id;

#[tokio::test]
async fn an_append_is_one_round_trip() {
    const APPENDS: u64 = 20;
    let place = Place::new("trips").await;
    let config: tokio_postgres::Config = place.url.parse().unwrap();
    let (Host::Tcp(host), port) = (&config.get_hosts()[0], config.get_ports()[0]) else { panic!() };
    let server = tokio::net::lookup_host((&**host, port)).await.unwrap().next().unwrap();
    let proxy = Proxy::new(server).await;
    let url = place.url.replace(&format!("{host}:{port}"), &proxy.address.to_string());
    let store = place.options().max_connections(1).connect(&url).await.unwrap();
    let lease = claim(&store, &id("x")).await;
    // The connection prepares the statement for it.
    append(&store, &lease, 0, b"first").await.unwrap();
    let before = proxy.trips();
    for after in 1..=APPENDS {
        append(&store, &lease, after, b"more").await.unwrap();
    }
    assert_eq!(proxy.trips() - before, APPENDS);
}
