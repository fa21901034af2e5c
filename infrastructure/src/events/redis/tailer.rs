//! The task that reads: it waits for entries of the turns that are followed here and puts them into the local log, from where followers read
//! them like any other.
//!
//! Numbers have to follow each other. Where they do not (entries were trimmed, or a turn was closed after its runner had died), the turn's
//! events here are dropped, and its followers read the stored turn.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisError, RedisResult, Value};
use tidemark_application::ports::events::{EventLog as _, LoggedEvent};
use tidemark_domain::event::TurnEvent;
use tidemark_domain::ids::TurnId;
use tokio::time::{Instant, sleep};

use super::Shared;
use super::follows::Phase;
use super::link::{PAUSES, RESPONSE, Side};
use super::reply;
use super::wire::{Content, EntryId, GONE};

/// How long a read waits for something. A wake that got lost is made up for then.
const BLOCK: Duration = Duration::from_secs(1);

/// Entries of one turn in an answer.
const ENTRIES: usize = 512;

/// What is waited after something came, so that more comes with the next read: at least, and for each turn that is read.
const PACE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_micros(10));

/// How often is looked for turns that nobody follows any more.
const TIDY: Duration = Duration::from_secs(1);

/// Reads for as long as the process lives.
pub(super) async fn run(shared: &Shared) {
    let mut pause = PAUSES.0;
    let mut session = Session {
        shared,
        woken: EntryId::default(),
        hinted: None,
        tidied: Instant::now(),
    };
    loop {
        let error = match shared.connect(BLOCK + RESPONSE).await {
            Ok(connection) => {
                let (error, read) = session.run(connection).await;
                if read {
                    pause = PAUSES.0;
                }
                error
            }
            Err(error) => error,
        };
        shared.link.broke(Side::Reading, &error);
        shared.follows.give_up_looking();
        session.tidy();
        sleep(pause).await;
        pause = (pause * 2).min(PAUSES.1);
    }
}

struct Session<'a> {
    shared: &'a Shared,
    /// The last wake that was heard.
    woken: EntryId,
    /// The last hint that was heard; none before the first connection.
    hinted: Option<EntryId>,
    tidied: Instant,
}

impl Session<'_> {
    /// Until the connection breaks; whether it ever worked.
    async fn run(&mut self, mut connection: MultiplexedConnection) -> (RedisError, bool) {
        if let Err(error) = self.begin(&mut connection).await {
            return (error, false);
        }
        self.shared.link.works(Side::Reading);
        loop {
            if let Err(error) = self.step(&mut connection).await {
                if reply::is_of_wrong_type(&error) {
                    // One of the keys is somebody else's. It does not say which; each is looked at anew.
                    self.shared.follows.look_again();
                }
                return (error, true);
            }
        }
    }

    /// Asks where hints stand: those of the past are nobody's business. So it is also known that Redis answers.
    async fn begin(&mut self, connection: &mut MultiplexedConnection) -> RedisResult<()> {
        let mut last = Cmd::new();
        last.arg("XREVRANGE").arg(self.shared.hints_key());
        last.arg("+").arg("-").arg("COUNT").arg(1);
        let last = reply::messages(last.query_async(connection).await?);
        let last = last.first().map(|(id, _)| *id).unwrap_or_default();
        self.hinted.get_or_insert(last);
        Ok(())
    }

    async fn step(&mut self, connection: &mut MultiplexedConnection) -> RedisResult<()> {
        self.look(connection).await?;
        let known = self.shared.follows.known();
        let mut keys = vec![self.shared.wake_key(), self.shared.hints_key()];
        let mut ids = vec![
            self.woken.to_string(),
            self.hinted.unwrap_or_default().to_string(),
        ];
        for (turn, last) in &known {
            keys.push(self.shared.key(*turn));
            ids.push(last.to_string());
        }
        let mut read = Cmd::new();
        read.arg("XREAD").arg("COUNT").arg(ENTRIES);
        read.arg("BLOCK").arg(BLOCK.as_millis() as u64);
        read.arg("STREAMS").arg(&keys).arg(&ids);
        let came = reply::streams(read.query_async(connection).await?);
        let any = !came.is_empty();
        for (key, entries) in came {
            self.take(&key, entries).await;
        }
        if self.tidied.elapsed() >= TIDY {
            self.tidy();
        }
        if any {
            sleep(PACE.0 + PACE.1 * known.len() as u32).await;
        }
        Ok(())
    }

    /// Reads what there is of the turns that are followed newly, to the end, before anybody is told that they are here.
    async fn look(&self, connection: &mut MultiplexedConnection) -> RedisResult<()> {
        for (turn, mut last) in self.shared.follows.looking() {
            loop {
                let mut range = Cmd::new();
                range.arg("XRANGE").arg(self.shared.key(turn));
                range.arg(format!("({last}")).arg("+");
                range.arg("COUNT").arg(ENTRIES);
                let reply: RedisResult<Value> = range.query_async(connection).await;
                let entries = match reply {
                    Ok(reply) => reply::entries(reply),
                    Err(error) if reply::is_of_wrong_type(&error) => {
                        self.shared.follows.set(turn, Phase::Foreign);
                        break;
                    }
                    Err(error) => return Err(error),
                };
                let Some((id, _)) = entries.last() else {
                    break;
                };
                last = *id;
                let more = entries.len() == ENTRIES;
                self.put(turn, entries).await;
                if !more {
                    break;
                }
            }
            if self.shared.follows.phase(turn) == Some(Phase::Looking) {
                let phase = if last == EntryId::default() {
                    Phase::Absent
                } else {
                    Phase::Here
                };
                self.shared.follows.set(turn, phase);
            }
        }
        Ok(())
    }

    async fn take(&mut self, key: &str, entries: Value) {
        if key == self.shared.wake_key() {
            if let Some((id, _)) = reply::messages(entries).last() {
                self.woken = *id;
            }
        } else if key == self.shared.hints_key() {
            for (id, said) in reply::messages(entries) {
                self.hinted = Some(id);
                if let Some((what, value)) = said {
                    self.heed(&what, &value);
                }
            }
        } else if let Some(turn) = self.shared.turn_of(key) {
            let entries = reply::entries(entries);
            if !entries.is_empty() {
                self.put(turn, entries).await;
            }
            if self.shared.follows.phase(turn) == Some(Phase::Absent) {
                self.shared.follows.set(turn, Phase::Here);
            }
        }
    }

    fn heed(&self, what: &str, value: &str) {
        for turn in value.split(' ').filter_map(|id| id.parse().ok()) {
            if what == GONE {
                let Shared { outbox, local, .. } = self.shared;
                // Something may have been on its way to Redis when the turn was removed there, or was written there since.
                if outbox.role(turn).is_some() || local.holds(turn) {
                    outbox.forget(&[turn]);
                } else {
                    outbox.refuse(&[turn]);
                }
                self.shared.drop_turn(turn);
            }
            let _ = self.shared.hints.send(turn); // nobody listens: nobody runs anything here
        }
    }

    /// Puts entries into the local log, as far as they follow.
    async fn put(&self, turn: TurnId, entries: Vec<(EntryId, Content)>) {
        let follows = &self.shared.follows;
        if let Some((last, _)) = entries.last() {
            follows.advance(turn, *last);
        }
        let ended = entries.iter().any(|(_, content)| {
            matches!(content, Content::Gone | Content::Event(TurnEvent::Done(_)))
        });
        let was_broken = follows.phase(turn) == Some(Phase::Broken);
        if !was_broken && self.append(turn, entries).await {
            if ended {
                self.shared.outbox.leave(turn, || {});
                follows.leave(turn);
            }
            return;
        }
        if !was_broken {
            self.shared.drop_turn(turn);
        }
        if ended || !was_broken {
            // The followers are told to read the stored turn, also where they know of the gap.
            follows.set(turn, Phase::Broken);
        }
        if ended {
            follows.leave(turn);
        }
    }

    /// False where something is missing.
    async fn append(&self, turn: TurnId, entries: Vec<(EntryId, Content)>) -> bool {
        let local = &self.shared.local;
        let mut events: Vec<LoggedEvent> = Vec::with_capacity(entries.len());
        let mut fence = 0;
        for (id, content) in entries {
            let Content::Event(event) = content else {
                return false;
            };
            let seq = id.seq as i64;
            if seq == 1 && !local.holds(turn) {
                if local.open(turn, event).await.is_err() {
                    return false;
                }
                continue;
            }
            if id.fence as i64 != fence {
                if !self.flush(turn, fence, std::mem::take(&mut events)).await {
                    return false;
                }
                fence = id.fence as i64;
            }
            events.push(LoggedEvent { seq, event });
        }
        self.flush(turn, fence, events).await
    }

    async fn flush(&self, turn: TurnId, fence: i64, events: Vec<LoggedEvent>) -> bool {
        let local = &self.shared.local;
        let taken = events.is_empty() || local.append(turn, fence, events).await.is_ok();
        taken && local.holds(turn)
    }

    /// Lets go of turns that nobody follows any more. What is written here stays.
    fn tidy(&mut self) {
        self.tidied = Instant::now();
        for turn in self.shared.follows.drop_idle() {
            let local = &self.shared.local;
            self.shared
                .outbox
                .unless_ours(turn, || local.drop_open(turn));
        }
    }
}
