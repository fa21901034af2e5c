//! A server of raw TCP for tests of adapters: it says exactly the bytes it is told, when it is told.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// A step of an answer.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// These bytes.
    Bytes(Vec<u8>),
    /// Nothing for so long.
    Pause(Duration),
    /// Waits until the client hangs up, and remembers that it did.
    UntilHangUp,
    /// Ends the connection at once with a reset.
    Reset,
}

/// An answer with this status line, these header lines, and a body that ends with the connection.
pub(crate) fn answer(status: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Vec<Step> {
    let mut head = format!("HTTP/1.1 {status}\r\nconnection: close\r\n");
    for header in headers {
        head.push_str(header);
        head.push_str("\r\n");
    }
    head.push_str("\r\n");
    vec![
        Step::Bytes(head.into_bytes()),
        Step::Bytes(body.as_ref().to_vec()),
    ]
}

/// A good answer of an event stream.
pub(crate) fn events(body: impl AsRef<[u8]>) -> Vec<Step> {
    answer("200 OK", &["content-type: text/event-stream"], body)
}

#[derive(Debug, Default)]
struct Seen {
    requests: Vec<String>,
    hang_ups: usize,
}

/// The running server; it stops when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) base_url: String,
    seen: Arc<Mutex<Seen>>,
    serving: JoinHandle<()>,
}

impl Server {
    /// Gives one answer to each connection, the last one again and again.
    pub(crate) async fn start(answers: impl IntoIterator<Item = Vec<Step>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Seen::default()));
        let mut answers: VecDeque<Vec<Step>> = answers.into_iter().collect();
        let serving = tokio::spawn({
            let seen = Arc::clone(&seen);
            async move {
                loop {
                    let (connection, _) = listener.accept().await.unwrap();
                    let steps = if answers.len() > 1 {
                        answers.pop_front().unwrap()
                    } else {
                        answers[0].clone()
                    };
                    tokio::spawn(serve(connection, steps, Arc::clone(&seen)));
                }
            }
        });
        Self {
            base_url,
            seen,
            serving,
        }
    }

    /// The requests so far: head and body.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.seen.lock().unwrap().requests.clone()
    }

    /// How often a client hung up while the server waited for it.
    pub(crate) fn hang_ups(&self) -> usize {
        self.seen.lock().unwrap().hang_ups
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(mut connection: TcpStream, steps: Vec<Step>, seen: Arc<Mutex<Seen>>) {
    connection.set_nodelay(true).unwrap();
    let request = read_request(&mut connection).await;
    seen.lock().unwrap().requests.push(request);
    for step in steps {
        match step {
            Step::Bytes(bytes) => {
                if connection.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            Step::Pause(time) => sleep(time).await,
            Step::UntilHangUp => {
                let mut rest = [0; 64];
                while matches!(connection.read(&mut rest).await, Ok(n) if n > 0) {}
                seen.lock().unwrap().hang_ups += 1;
                return;
            }
            Step::Reset => {
                connection.set_zero_linger().unwrap();
                return;
            }
        }
    }
    let _ = connection.shutdown().await;
}

async fn read_request(connection: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let mut piece = [0; 4096];
        let count = connection.read(&mut piece).await.unwrap_or(0);
        bytes.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| {
                    line.to_ascii_lowercase()
                        .strip_prefix("content-length: ")?
                        .parse::<usize>()
                        .ok()
                })
                .unwrap_or(0);
            if body.len() >= length {
                return text.into_owned();
            }
        }
        if count == 0 {
            return text.into_owned();
        }
    }
}
