//! The reference: relays the model's stream in the product's wire form, and does nothing else.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::SocketAddr;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::serve::ListenerExt as _;
use clap::Args;
use futures::StreamExt as _;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::process;

#[derive(Clone, Debug, Args)]
pub(crate) struct RelayArgs {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// The model, ending in /v1
    #[arg(long, value_name = "URL")]
    model: String,
}

#[derive(Clone, Debug)]
struct Relay {
    http: reqwest::Client,
    url: String,
}

/// Relays until the process ends.
pub(crate) async fn serve(args: RelayArgs) {
    // reqwest asks for a provider even where only plain HTTP is spoken.
    drop(rustls::crypto::ring::default_provider().install_default());
    let relay = Relay {
        http: reqwest::Client::builder()
            .no_proxy()
            .build()
            .expect("a client"),
        url: format!("{}/chat/completions", args.model),
    };
    let listener = process::listen(args.listen).tap_io(|stream| drop(stream.set_nodelay(true)));
    let router = Router::new()
        .route("/v1/chat/stream", get(relayed))
        .with_state(relay);
    axum::serve(listener, router).await.expect("to serve");
}

async fn relayed(
    State(relay): State<Relay>,
    Query(parameters): Query<HashMap<String, String>>,
) -> Response {
    let query = parameters.get("query");
    let body = json!({"model": "scripted", "stream": true, "messages": [{"role": "user", "content": query}]});
    let answer = relay.http.post(&relay.url).json(&body).send().await;
    let mut answer = match answer {
        Ok(answer) => answer.bytes_stream(),
        Err(error) => return (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    };
    let events = async_stream::stream! {
        let mut rest = Vec::new();
        while let Some(bytes) = answer.next().await {
            let bytes = bytes?;
            rest.extend_from_slice(&bytes);
            let out = translated(&mut rest);
            if !out.is_empty() {
                yield Ok::<_, reqwest::Error>(Bytes::from(out));
            }
        }
    };
    let headers = [
        ("content-type", "text/event-stream"),
        ("cache-control", "no-cache"),
    ];
    (headers, Body::from_stream(events)).into_response()
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Delta<'a>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Option<Cow<'a, str>>,
}

#[derive(Serialize)]
struct Message<'a> {
    r#type: &'static str,
    token: &'a str,
}

/// The events that the whole lines in `rest` become; what is no whole line stays there.
fn translated(rest: &mut Vec<u8>) -> String {
    let mut out = String::new();
    let Some(end) = rest.iter().rposition(|byte| *byte == b'\n') else {
        return out;
    };
    let lines = std::str::from_utf8(&rest[..end]).expect("UTF-8");
    for data in lines.lines().filter_map(|line| line.strip_prefix("data: ")) {
        if data == "[DONE]" {
            out.push_str("event: done\ndata: {\"type\":\"done\",\"status\":\"completed\"}\n\n");
            continue;
        }
        let chunk: Chunk<'_> = serde_json::from_str(data).expect("a chunk");
        for token in chunk.choices.into_iter().filter_map(|c| c.delta.content) {
            let message = Message {
                r#type: "message",
                token: &token,
            };
            let data = serde_json::to_string(&message).expect("JSON");
            let _ = write!(out, "event: message\ndata: {data}\n\n");
        }
    }
    rest.drain(..=end);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_become_events_however_they_were_cut() {
        let sent = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"a\\n\"}}]}\n\n\
            data: {\"choices\":[{\"delta\":{}}]}\n\ndata: {\"choices\":[]}\n\ndata: [DONE]\n\n";
        let expected = "event: message\ndata: {\"type\":\"message\",\"token\":\"a\\n\"}\n\nevent: done\ndata: {\"type\":\"done\",\"status\":\"completed\"}\n\n";
        for piece in [1, 13, sent.len()] {
            let mut rest = Vec::new();
            let mut out = String::new();
            for bytes in sent.as_bytes().chunks(piece) {
                rest.extend_from_slice(bytes);
                out.push_str(&translated(&mut rest));
            }
            assert_eq!(out, expected);
        }
    }
}
