//! Clients that do what a good client does when its server dies: they come back with their key and their cursor.

use std::sync::Mutex;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tidemark_tests::client::Client;
use tidemark_tests::events::Reading;
use tidemark_tests::paths::{events_of, turns_of};
use tidemark_tests::random::Random;
use tidemark_tests::sse::{Arrived, EventStream, Frame};
use tokio::sync::{Notify, watch};

/// How long a client waits for a server to come back, or for its turn to end after that.
const PATIENCE: Duration = Duration::from_secs(90);

/// Behaviour of a turn of 11 messages: it makes its session due.
pub(crate) const ONE_DUE_TURN: &str = "[[tokens=4 tool=search_memory tool_rounds=3 tool_calls=2]]";

/// Where a client talks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// Its user.
    pub user: String,
    /// Its session.
    pub session: String,
}

/// The connection to a server that dies now and then.
#[derive(Debug)]
pub(crate) struct Line {
    client: Mutex<Client>,
    /// Number of the process that may be asked; `None` while it is down or about to be killed.
    up: watch::Sender<Option<u64>>,
    starts: Mutex<u64>,
}

impl Line {
    /// A line to a server that is up.
    pub(crate) fn to(client: Client) -> Self {
        Self {
            client: Mutex::new(client),
            up: watch::Sender::new(Some(0)),
            starts: Mutex::new(0),
        }
    }

    /// The server as it is now.
    pub(crate) fn client(&self) -> Client {
        self.client.lock().unwrap().clone()
    }

    /// Tells the clients that this process ends: the turn they are at is their last of the round.
    pub(crate) fn hang_up(&self) {
        self.up.send_replace(None);
    }

    /// Tells the clients where the next process is.
    pub(crate) fn connect(&self, client: Client) {
        *self.client.lock().unwrap() = client;
        let mut starts = self.starts.lock().unwrap();
        *starts += 1;
        self.up.send_replace(Some(*starts));
    }

    async fn wait_until_up(&self) {
        let mut up = self.up.subscribe();
        let waiting = up.wait_for(Option::is_some);
        tidemark_tests::wait::within("the server to come back", PATIENCE, waiting)
            .await
            .expect("the line is kept");
    }

    /// The process that may be asked.
    fn process(&self) -> Option<u64> {
        *self.up.borrow()
    }
}

/// What a client saw of one turn.
#[derive(Debug)]
pub(crate) struct TurnSeen {
    pub place: Place,
    pub turn: String,
    /// A word that only this turn's message holds.
    pub marker: String,
    /// Data of its terminal event.
    pub done: Value,
}

impl TurnSeen {
    /// Its final status.
    pub(crate) fn status(&self) -> &str {
        self.done["status"].as_str().unwrap_or_default()
    }

    /// Whether this message of a session is the one that it asked.
    pub(crate) fn asked(&self, message: &Value) -> bool {
        message["role"] == "user"
            && message["content"]
                .as_str()
                .is_some_and(|text| text.contains(&format!("{} ", self.marker)))
    }
}

/// Runs turns one after the other until the server is killed, and sees the last of them to its end after the restart.
pub(crate) async fn work(
    line: std::sync::Arc<Line>,
    place: Place,
    name: String,
    mut random: Random,
) -> Vec<TurnSeen> {
    let mut seen = Vec::new();
    let process = line.process();
    // Not merely while there is one: the next may be up before this client has looked.
    while process.is_some() && line.process() == process {
        let marker = format!("crate{name}n{}", seen.len());
        let tool = if random.one_in(2) {
            format!(
                " tool=search_memory tool_rounds={} tool_calls=2 before_tool=2",
                random.between(1, 3)
            )
        } else {
            String::new()
        };
        let behaviour = format!(
            "tokens={} delay_ms={}{tool}",
            random.between(1, 25),
            random.between(0, 15)
        );
        let message = format!(
            "The {marker} stands in hall {} beside the loading gate. [[{behaviour}]]",
            random.between(1, 99)
        );
        seen.push(one_turn(&line, &place, marker, &message).await);
        if seen.len() > 200 {
            break;
        }
    }
    seen
}

/// Asks once in a session of its own, to which nothing is added until the checks are done: only there does nothing make up for derived
/// work that was lost. The turn alone makes its session due. Tells `told` when it has ended before the server was killed.
pub(crate) async fn ask_once(
    line: std::sync::Arc<Line>,
    place: Place,
    marker: String,
    mut random: Random,
    told: std::sync::Arc<Notify>,
) -> Option<TurnSeen> {
    let process = line.process();
    tokio::time::sleep(Duration::from_millis(random.between(0, 800))).await;
    if process.is_none() || line.process() != process {
        return None;
    }
    let message = format!(
        "The {marker} stands in hall {} beside the loading gate. {ONE_DUE_TURN}",
        random.between(1, 99)
    );
    let seen = one_turn(&line, &place, marker, &message).await;
    if line.process() == process {
        told.notify_one();
    }
    Some(seen)
}

pub(crate) async fn one_turn(
    line: &Line,
    place: &Place,
    marker: String,
    message: &str,
) -> TurnSeen {
    let turn = accepted(line, place, &marker, message).await;
    let frames = tidemark_tests::wait::within(
        "a turn to end for its client",
        PATIENCE,
        read(line, place, &turn),
    )
    .await;
    let reading = Reading::of(&frames);
    reading.assert_gapless_from(1);
    let done = reading.assert_one_done_last();
    if done.data["status"] == "completed" {
        assert_eq!(
            reading.text(),
            done.data["text"].as_str().unwrap_or_default(),
            "tokens and text of {turn}"
        );
    }
    TurnSeen {
        place: place.clone(),
        turn: turn.clone(),
        marker,
        done: done.data.clone(),
    }
}

/// Posts the turn under one key until an answer arrives; it must be the same turn however often it was posted.
async fn accepted(line: &Line, place: &Place, key: &str, message: &str) -> String {
    let body = json!({"message": message});
    loop {
        let client = line.client().as_user(&place.user);
        let request = client
            .request(Method::POST, &turns_of(&place.session))
            .header("idempotency-key", key)
            .json(&body);
        match client.try_send(request).await {
            Some(answer) if answer.status == 409 || answer.status == 503 => {}
            Some(answer) => {
                assert!(
                    matches!(answer.status, 200 | 202),
                    "{} {}",
                    answer.status,
                    answer.text
                );
                return answer.body["turn_id"]
                    .as_str()
                    .or(answer.body["id"].as_str())
                    .expect("a turn id")
                    .to_owned();
            }
            None => line.wait_until_up().await,
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Reads a turn's events over as many connections as it takes.
async fn read(line: &Line, place: &Place, turn: &str) -> Vec<Arrived> {
    let mut frames: Vec<Arrived> = Vec::new();
    let mut last: Option<String> = None;
    loop {
        let client = line.client().as_user(&place.user);
        let mut request = client.request(Method::GET, &events_of(turn));
        if let Some(id) = &last {
            request = request.header("last-event-id", id);
        }
        match request.send().await {
            Ok(response) if response.status() == 200 => {
                let mut stream = EventStream::new(response, std::time::Instant::now());
                while let Some(arrived) = stream.next().await {
                    if let Frame::Event(event) = &arrived.frame {
                        last = event.id.clone().or(last);
                    }
                    let ended = tidemark_tests::paths::is_event(&arrived.frame, "done");
                    frames.push(arrived);
                    if ended {
                        frames.extend(after_done(&mut stream).await);
                        return frames;
                    }
                }
            }
            Ok(response) if response.status() == 503 => {}
            Ok(response) => {
                let status = response.status();
                panic!(
                    "reconnecting to {turn} after {last:?}: {status} {}",
                    response.text().await.unwrap_or_default()
                );
            }
            Err(_) => line.wait_until_up().await,
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// What a stream still says after its end: nothing, or the promise is broken and the checks find it.
async fn after_done(stream: &mut EventStream) -> Vec<Arrived> {
    let more = async {
        let mut more = Vec::new();
        while let Some(arrived) = stream.next().await {
            more.push(arrived);
        }
        more
    };
    tokio::time::timeout(Duration::from_secs(5), more)
        .await
        .unwrap_or_default()
}
