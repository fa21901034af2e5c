//! The task that writes: it copies what the local log holds to Redis, behind the last number that Redis has, and never makes anybody wait.
//!
//! After each new connection it asks how far Redis has each open turn, since Redis may have come back empty, or somebody else may have
//! the turn by now.

use std::collections::HashMap;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Pipeline, RedisError, RedisResult, Value};
use tidemark_application::ports::events::{EventLog as _, LogRead};
use tidemark_domain::event::TurnEvent;
use tidemark_domain::ids::TurnId;
use tokio::time::{Instant, sleep, timeout};

use super::Shared;
use super::link::{PAUSES, RESPONSE, Side};
use super::outbox::{End, Outbox, REFUSED, Role, Work, age};
use super::reply;
use super::wire::{EntryId, GONE};

/// For so long Redis has to take everything, after it has refused something, before it counts as there again: one whose memory is just full
/// takes some commands and not others. Ours.
const PROBATION: Duration = Duration::from_secs(5);

/// More events gather meanwhile, so that they go together. It delays nothing but what other replicas tell.
const LINGER: Duration = Duration::from_millis(4);

/// How often is asked whether Redis is there, while nothing is to be written, and how often what is kept is looked through.
const IDLE: Duration = Duration::from_secs(1);

/// Turns in one request, and events of one turn in it.
const TURNS: usize = 256;
const EVENTS: usize = 128;

/// Refusals in a row after which a turn is given up: its followers elsewhere read the stored turn.
const MOST_REFUSALS: u8 = 3;

/// Writes for as long as the process lives.
pub(super) async fn run(shared: &Shared) {
    let mut pause = PAUSES.0;
    let mut probation = Duration::ZERO;
    loop {
        let error = match shared.connect(RESPONSE).await {
            Ok(connection) => {
                let mut session = Session::new(shared, connection, probation);
                let error = session.run().await;
                if session.works {
                    pause = PAUSES.0;
                    probation = Duration::ZERO;
                }
                error
            }
            Err(error) => error,
        };
        // It answers, and does not take what it is given: it is out of memory, or a replica of another one, or its disk is full.
        if error.code().is_some() {
            probation = PROBATION;
        }
        shared.link.broke(Side::Writing, &error);
        tidy(shared);
        sleep(pause).await;
        pause = (pause * 2).min(PAUSES.1);
    }
}

fn tidy(shared: &Shared) {
    let retention = shared.options.memory.retention;
    let holds = |turn| shared.local.holds(turn);
    for turn in shared.outbox.tidy(holds, retention) {
        let drop_open = || shared.local.drop_open(turn);
        shared.outbox.unless_ours(turn, drop_open);
    }
}

/// How far Redis has a turn.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    /// The last number it has; none before it was asked.
    acked: Option<i64>,
    /// When its time has to be prolonged; none if it was not set over this connection.
    due: Option<Instant>,
    refusals: u8,
    /// Nothing more is tried over this connection.
    given_up: bool,
}

/// What a request holds of a turn.
struct Batch {
    turn: TurnId,
    /// Numbers of the events, in order.
    seqs: Vec<i64>,
    /// The last one is the end.
    ends: bool,
    /// Its time is set behind the events.
    timed: bool,
    /// In a transaction.
    whole: bool,
}

impl Batch {
    fn replies(&self) -> usize {
        let commands = self.seqs.len() + usize::from(self.timed);
        commands + if self.whole { 2 } else { 0 }
    }
}

/// One connection's life.
struct Session<'a> {
    shared: &'a Shared,
    connection: MultiplexedConnection,
    sent: HashMap<TurnId, Sent>,
    looked_through: Instant,
    /// When it counts as working, if nothing is refused until then.
    proven: Instant,
    /// It does.
    works: bool,
}

impl<'a> Session<'a> {
    fn new(shared: &'a Shared, connection: MultiplexedConnection, probation: Duration) -> Self {
        let now = Instant::now();
        Self {
            shared,
            connection,
            sent: HashMap::new(),
            looked_through: now,
            proven: now + probation,
            works: false,
        }
    }

    fn outbox(&self) -> &'a Outbox {
        &self.shared.outbox
    }

    /// Until the connection breaks.
    async fn run(&mut self) -> RedisError {
        self.outbox().all_again();
        loop {
            if let Err(error) = self.step().await {
                return error;
            }
            self.outbox().written();
            if Instant::now() >= self.proven {
                self.works = true;
                self.shared.link.works(Side::Writing);
            }
            if self.looked_through.elapsed() >= IDLE {
                self.look_through();
            }
            if self.outbox().has_work() || timeout(IDLE, self.outbox().more()).await.is_ok() {
                sleep(LINGER).await;
            }
        }
    }

    /// Prolongs the time of silent turns, and lets go of what the local log has let go.
    fn look_through(&mut self) {
        let now = Instant::now();
        self.looked_through = now;
        tidy(self.shared);
        for (turn, sent) in &self.sent {
            let runs = matches!(self.outbox().role(*turn), Some(Role::Runs { .. }));
            if runs && sent.due.is_some_and(|due| due <= now) {
                self.outbox().again(*turn);
            }
        }
        let outbox = self.outbox();
        self.sent.retain(|turn, _| outbox.role(*turn).is_some());
    }

    async fn step(&mut self) -> RedisResult<()> {
        let work = self.outbox().take(TURNS);
        if work.is_empty() {
            return self.ask_whether_it_is_there().await;
        }
        let Work {
            turns,
            ends,
            gone,
            hints,
            wake,
        } = work;
        let outcome = self.write(&turns, &ends, &gone, &hints, wake).await;
        if outcome.is_err() {
            self.outbox().give_back(ends);
        }
        outcome
    }

    /// As long as it is not proven that it takes what it is given, by giving it something.
    async fn ask_whether_it_is_there(&mut self) -> RedisResult<()> {
        if self.works {
            return redis::cmd("PING").exec_async(&mut self.connection).await;
        }
        let mut pipeline = Pipeline::new();
        self.shared.add_wake(&mut pipeline);
        let replies = self.send(&pipeline).await?;
        replies.into_iter().try_for_each(reply::taken)
    }

    async fn write(
        &mut self,
        turns: &[(TurnId, Role)],
        ends: &[End],
        gone: &[TurnId],
        hints: &[TurnId],
        wake: bool,
    ) -> RedisResult<()> {
        if !gone.is_empty() {
            self.erase(gone).await?;
        }
        let mut pipeline = Pipeline::new();
        if wake {
            self.shared.add_wake(&mut pipeline);
        }
        for turn in hints {
            self.shared
                .add_hint(&mut pipeline, "hint", &turn.to_string());
        }
        for end in ends {
            self.shared.add_end(&mut pipeline, end)?;
        }
        self.ask_places(turns).await?;
        let mut batches = Vec::new();
        for (turn, role) in turns {
            batches.extend(self.batch(*turn, *role, &mut pipeline).await);
        }
        if pipeline.is_empty() {
            return Ok(());
        }
        let replies = self.send(&pipeline).await?;
        let before = replies.len() - batches.iter().map(Batch::replies).sum::<usize>();
        let mut replies = replies.into_iter();
        for reply in replies.by_ref().take(before) {
            reply::taken(reply)?;
        }
        for batch in batches {
            let mine = replies.by_ref().take(batch.replies()).collect();
            self.settle(&batch, mine)?;
        }
        Ok(())
    }

    async fn send(&mut self, pipeline: &Pipeline) -> RedisResult<Vec<Value>> {
        self.connection
            .send_packed_commands(pipeline, 0, pipeline.len())
            .await
    }

    /// Asks where Redis stands with turns that were not written over this connection.
    async fn ask_places(&mut self, turns: &[(TurnId, Role)]) -> RedisResult<()> {
        let unknown: Vec<(TurnId, Role)> = turns
            .iter()
            .filter(|(turn, _)| {
                let sent = self.sent.get(turn);
                sent.is_none_or(|sent| sent.acked.is_none() && !sent.given_up)
            })
            .copied()
            .collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let mut pipeline = Pipeline::new();
        for (turn, _) in &unknown {
            let key = self.shared.key(*turn);
            pipeline.cmd("XREVRANGE").arg(key).arg("+").arg("-");
            pipeline.arg("COUNT").arg(1);
        }
        let replies = self.send(&pipeline).await?;
        for ((turn, role), reply) in unknown.into_iter().zip(replies) {
            if reply::is_wrong_type(&reply) {
                self.give_up(turn, "its key holds something else");
                continue;
            }
            let last = reply::entries(reply.extract_error()?);
            self.place(turn, role, last.last().map(|(id, _)| *id));
        }
        Ok(())
    }

    fn place(&mut self, turn: TurnId, role: Role, last: Option<EntryId>) {
        let fence = match role {
            Role::Accepted => 0,
            Role::Runs { fence } => fence.max(0) as u64,
        };
        let acked = match last {
            // Its start has expired: it was accepted so long ago that it runs elsewhere.
            None if role == Role::Accepted && self.is_old(turn) => 1,
            None => 0,
            Some(id) if id.fence <= fence => id.seq as i64,
            // Whoever runs it has told its start too.
            Some(id) if role == Role::Accepted && id != EntryId::LAST => 1,
            Some(_) => {
                self.lose(turn);
                return;
            }
        };
        self.sent.entry(turn).or_default().acked = Some(acked);
    }

    fn is_old(&self, turn: TurnId) -> bool {
        age(turn).is_some_and(|age| age > self.shared.options.memory.retention)
    }

    /// Adds what Redis has not of the turn.
    async fn batch(&mut self, turn: TurnId, role: Role, pipeline: &mut Pipeline) -> Option<Batch> {
        let sent = *self.sent.get(&turn)?;
        let acked = sent.acked.filter(|_| !sent.given_up)?;
        let (fence, most) = match role {
            Role::Accepted => (0, usize::from(acked == 0)),
            Role::Runs { fence } => (fence, EVENTS),
        };
        let events = match most {
            0 => Vec::new(),
            _ => match self
                .shared
                .local
                .read(turn, acked, most, Duration::ZERO)
                .await
            {
                Ok(LogRead::Events(events)) => events,
                Ok(LogRead::Quiet) => Vec::new(),
                _ => {
                    self.sent.remove(&turn);
                    self.outbox().leave(turn, || {});
                    return None;
                }
            },
        };
        let ends = events
            .last()
            .is_some_and(|event| matches!(event.event, TurnEvent::Done(_)));
        let runs = matches!(role, Role::Runs { .. });
        let makes = acked == 0;
        let due = makes || sent.due.is_none_or(|due| due <= Instant::now());
        let timed = if events.is_empty() {
            runs && due
        } else {
            ends || due
        };
        if events.is_empty() && (makes || !timed) {
            return None;
        }
        if events.len() == EVENTS && !ends {
            self.outbox().again(turn);
        }
        let key = self.shared.key(turn);
        let whole = makes || ends;
        if whole {
            pipeline.cmd("MULTI");
        }
        let mut seqs = Vec::with_capacity(events.len());
        for logged in &events {
            let added = self.shared.add(pipeline, &key, fence, logged, makes);
            if added.is_err() {
                break;
            }
            seqs.push(logged.seq);
        }
        if timed {
            self.shared.keep(pipeline, &key);
        }
        if whole {
            pipeline.cmd("EXEC");
        }
        Some(Batch {
            turn,
            seqs,
            ends,
            timed,
            whole,
        })
    }

    /// Notes what Redis has taken.
    fn settle(&mut self, batch: &Batch, replies: Vec<Value>) -> RedisResult<()> {
        let mut replies = if batch.whole {
            match replies.into_iter().last() {
                Some(Value::Array(replies)) => replies,
                Some(other) => return other.extract_error().map(|_| ()),
                None => return Ok(()),
            }
        } else {
            replies
        };
        let vanished = batch.timed && replies.pop() == Some(Value::Int(0));
        let mut sent = self.sent.get(&batch.turn).copied().unwrap_or_default();
        if batch.timed {
            let third = self.shared.options.memory.retention / 3;
            sent.due = Some(Instant::now() + third);
        }
        for (seq, reply) in batch.seqs.iter().zip(replies) {
            if reply::is_wrong_type(&reply) {
                self.give_up(batch.turn, "its key holds something else");
                return Ok(());
            }
            if reply::is_refusal(&reply) {
                sent.refusals += 1;
                sent.acked = None;
                break;
            }
            if reply.extract_error()? == Value::Nil {
                // Somebody has removed the key.
                sent.acked = None;
                break;
            }
            sent.acked = Some(*seq);
            sent.refusals = 0;
        }
        if vanished {
            sent.acked = None;
        }
        self.sent.insert(batch.turn, sent);
        if sent.refusals >= MOST_REFUSALS {
            self.give_up(batch.turn, "Redis refuses its events");
        } else if sent.acked.is_none() {
            self.outbox().again(batch.turn);
        } else if batch.ends {
            self.sent.remove(&batch.turn);
            self.outbox().leave(batch.turn, || {});
        }
        Ok(())
    }

    /// Somebody else has the turn, or it is gone: what the local log holds of it is not to be told any more.
    fn lose(&mut self, turn: TurnId) {
        tracing::info!(%turn, "another replica has taken the turn; its events here are dropped");
        self.sent.remove(&turn);
        self.shared.drop_turn(turn);
        // Its runner, if it still runs here, is to find out.
        let _ = self.shared.hints.send(turn);
    }

    fn give_up(&mut self, turn: TurnId, why: &str) {
        tracing::warn!(%turn, why, "a turn's events do not reach other replicas");
        self.sent.entry(turn).or_default().given_up = true;
    }

    /// Removes what Redis has of turns that are gone. In place of each that is there, or may still be on its way, stands for a while that it is
    /// gone: no writer can add to it.
    async fn erase(&mut self, gone: &[TurnId]) -> RedisResult<()> {
        let mut pipeline = Pipeline::new();
        for turn in gone {
            self.sent.remove(turn);
            pipeline.cmd("EXISTS").arg(self.shared.key(*turn));
        }
        let there = self.send(&pipeline).await?;
        let (mut pipeline, mut buried) = (Pipeline::new(), Vec::new());
        for (turn, there) in gone.iter().zip(there) {
            let is_new = age(*turn).is_none_or(|age| age < REFUSED);
            if there.extract_error()? != Value::Int(0) || is_new {
                self.shared.bury(&mut pipeline, *turn);
                buried.push(turn.to_string());
            }
        }
        if !buried.is_empty() {
            self.shared.add_hint(&mut pipeline, GONE, &buried.join(" "));
        }
        if pipeline.is_empty() {
            self.outbox().erased(gone);
            return Ok(());
        }
        // A Redis without memory takes nothing in their place; but it removes them.
        let keys: Vec<String> = gone.iter().map(|turn| self.shared.key(*turn)).collect();
        redis::cmd("DEL")
            .arg(keys)
            .exec_async(&mut self.connection)
            .await?;
        for reply in self.send(&pipeline).await? {
            reply::taken(reply)?;
        }
        self.outbox().erased(gone);
        Ok(())
    }
}
