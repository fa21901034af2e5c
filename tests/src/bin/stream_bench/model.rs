//! A scripted model in `OpenAI`'s form: stamped tokens at a rate, to thousands of streams on a fraction of a processor.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};
use tidemark_tests::embeddings;
use tokio::io::{self, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until};

use crate::http::{LAST_CHUNK, end_of_head, field, put_chunk};
use crate::{clock, process, token};

/// In a prompt: this answer comes at once, whatever the rate is.
pub(crate) const AT_ONCE: &str = "[[at once]]";

/// The largest request that is read.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// Numbers of a vector, as those of small models of sentences.
const DIMENSION: usize = 384;

#[derive(Deserialize)]
struct Embeddings {
    input: Vec<String>,
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct ModelArgs {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Tokens of an answer
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    tokens: u16,
    /// Tokens a second; 0 sends all at once
    #[arg(long, value_name = "N", default_value_t = 20.0)]
    rate: f64,
    /// How long the first token takes
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 200)]
    delay_ms: u64,
}

/// Answers until the process ends.
pub(crate) async fn serve(args: ModelArgs) {
    let listener = process::listen(args.listen);
    loop {
        let (stream, _) = listener.accept().await.expect("a connection");
        // A client that has gone is no failure of the model.
        tokio::spawn(async move { drop(answer_all(stream, args).await) });
    }
}

async fn answer_all(mut stream: TcpStream, args: ModelArgs) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut received = Vec::new();
    loop {
        let Some((path, body)) = next_request(&mut stream, &mut received).await? else {
            return Ok(());
        };
        let arrived = clock::now();
        if path.ends_with("/embeddings") {
            stream.write_all(embedded(&body)?.as_bytes()).await?;
        } else if !contains(&body, "\"stream\":true") {
            stream.write_all(whole().as_bytes()).await?;
        } else if args.rate == 0.0 || contains(&body, AT_ONCE) {
            at_once(&mut stream, args.tokens.into(), arrived).await?;
        } else {
            paced(&mut stream, args, arrived).await?;
        }
    }
}

/// The path and the body of the next request; none when the client is done.
async fn next_request(
    stream: &mut TcpStream,
    received: &mut Vec<u8>,
) -> io::Result<Option<(String, Vec<u8>)>> {
    loop {
        if let Some(end) = end_of_head(received) {
            let head = String::from_utf8_lossy(&received[..end]);
            let length = field(&head, "content-length").map_or(Ok(0), str::parse::<usize>);
            let length = length.map_err(io::Error::other)?;
            if received.len() >= end + length {
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                let body = received[end..end + length].to_vec();
                received.drain(..end + length);
                return Ok(Some((path, body)));
            }
        }
        if received.len() > MOST_BYTES || stream.read_buf(received).await? == 0 {
            return Ok(None);
        }
    }
}

fn contains(body: &[u8], text: &str) -> bool {
    body.windows(text.len()).any(|w| w == text.as_bytes())
}

async fn paced(stream: &mut TcpStream, args: ModelArgs, arrived: u64) -> io::Result<()> {
    stream.write_all(HEAD.as_bytes()).await?;
    let first = Instant::now() + Duration::from_millis(args.delay_ms);
    let tokens = usize::from(args.tokens);
    let mut out = Vec::new();
    for number in 0..tokens {
        sleep_until(first + Duration::from_secs_f64(number as f64 / args.rate)).await;
        out.clear();
        put_token(&mut out, number, arrived);
        if number + 1 == tokens {
            put_end(&mut out, tokens);
        }
        stream.write_all(&out).await?;
    }
    Ok(())
}

async fn at_once(stream: &mut TcpStream, tokens: usize, arrived: u64) -> io::Result<()> {
    let mut out = HEAD.as_bytes().to_vec();
    (0..tokens).for_each(|number| put_token(&mut out, number, arrived));
    put_end(&mut out, tokens);
    stream.write_all(&out).await
}

const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// What precedes the choices in each event.
const EVENT: &str = "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":0,\"model\":\"scripted\",";

fn put_token(out: &mut Vec<u8>, number: usize, arrived: u64) {
    let text = token::text(number, clock::now(), arrived);
    let role = if number == 0 {
        "\"role\":\"assistant\","
    } else {
        ""
    };
    let delta = format!(
        "{EVENT}\"choices\":[{{\"index\":0,\"delta\":{{{role}\"content\":\"{text}\"}},\"finish_reason\":null}}]}}\n\n"
    );
    put_chunk(out, &delta);
}

fn put_end(out: &mut Vec<u8>, tokens: usize) {
    let finish = format!(
        "{EVENT}\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"stop\"}}]}}\n\n{EVENT}\"choices\":[],{}}}\n\ndata: [DONE]\n\n",
        usage(tokens)
    );
    put_chunk(out, &finish);
    out.extend_from_slice(LAST_CHUNK);
}

fn usage(tokens: usize) -> String {
    format!(
        "\"usage\":{{\"prompt_tokens\":20,\"completion_tokens\":{tokens},\"total_tokens\":{}}}",
        tokens + 20
    )
}

/// What is asked for as a whole is the extraction of facts; there are none.
fn whole() -> String {
    let body = format!(
        "{{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion\",\"created\":0,\"model\":\"scripted\",\"choices\":[{{\"index\":0,\"message\":{{\"role\":\"assistant\",\"content\":\"{{\\\"facts\\\":[]}}\"}},\"finish_reason\":\"stop\"}}],{}}}",
        usage(5)
    );
    in_json(&body)
}

/// Vectors that are near for texts that share words.
fn embedded(body: &[u8]) -> io::Result<String> {
    let asked: Embeddings = serde_json::from_slice(body)?;
    let data: Vec<Value> = asked
        .input
        .iter()
        .enumerate()
        .map(|(index, text)| {
            let embedding = embeddings::vector(text, DIMENSION);
            json!({"object": "embedding", "index": index, "embedding": embedding})
        })
        .collect();
    let body = json!({"object": "list", "data": data, "model": "scripted"});
    Ok(in_json(&body.to_string()))
}

fn in_json(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}
