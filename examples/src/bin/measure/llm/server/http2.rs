//! One connection of HTTP/2, with all streams of a round.

use std::sync::Arc;

use h2::server::{self, SendResponse};
use h2::{Error, RecvStream};
use http::{Request, Response};
use tokio::net::TcpStream;

use super::{Shared, reply};

/// Room for the small frames of all requests of a round, which arrive before the first is read.
const FRAMES: usize = 1 << 20;

pub(super) async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let handshake = server::Builder::new().data_frame_budget(FRAMES).handshake(stream);
    let Ok(mut connection) = handshake.await else { return };
    while let Some(Ok((request, respond))) = connection.accept().await {
        tokio::spawn(exchange(request, respond, Arc::clone(&shared)));
    }
}

async fn exchange(
    mut request: Request<RecvStream>,
    mut respond: SendResponse<bytes::Bytes>,
    shared: Arc<Shared>,
) -> Result<(), Error> {
    let body = request.body_mut();
    while let Some(part) = body.data().await {
        let read = part?.len();
        body.flow_control().release_capacity(read)?;
    }
    let mut response = Response::new(());
    let events = http::HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(http::header::CONTENT_TYPE, events);
    let mut stream = respond.send_response(response, false)?;
    let [first, rest] = reply::halves().map(|events| events.concat());
    stream.send_data(first.into(), false)?;
    shared.half_way.wait().await;
    stream.send_data(rest.into(), true)
}
