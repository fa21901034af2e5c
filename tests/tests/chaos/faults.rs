//! What is done to the replicas and to what they need: which, when and for how long follows from the seed alone.

use std::sync::Arc;
use std::time::Duration;

use tidemark_tests::random::Random;
use tokio::task::JoinSet;

use super::LEASE;
use super::cluster::{Cluster, REPLICAS};
use super::history::{History, What};

/// How long a drain may take until it counts as hanging; the checker is stricter.
const DRAIN_LIMIT: Duration = Duration::from_mins(1);

/// The kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// SIGKILL, and a start after a while.
    KillReplica,
    /// SIGTERM, and a start.
    DrainReplica,
    /// SIGSTOP for longer than a lease lasts, then SIGCONT.
    PauseReplica,
    /// `PostgreSQL` ends as if it had crashed, and recovers.
    CrashPostgres,
    /// `PostgreSQL` ends in order, and starts.
    RestartPostgres,
    /// Redis is killed, and starts empty.
    KillRedis,
    /// Redis answers nobody for a while.
    PauseRedis,
    /// A replica's connections to `PostgreSQL` are cut.
    CutPostgres,
    /// They carry nothing for a while.
    StallPostgres,
    /// Those of all replicas carry nothing for a while.
    PausePostgres,
    /// They carry what is asked and no answer, and are cut then: what was committed is not told.
    MutePostgres,
    /// A replica's connections to Redis are cut.
    CutRedis,
    /// They carry nothing for a while.
    StallRedis,
    /// A replica's clock jumps, and back.
    JumpClock,
    /// The clock of `PostgreSQL` jumps forward, and back.
    JumpDatabaseClock,
}

impl Kind {
    /// Every kind; what replicas suffer most is there more often.
    const DECK: [Self; 17] = [
        Self::KillReplica,
        Self::KillReplica,
        Self::DrainReplica,
        Self::PauseReplica,
        Self::PauseReplica,
        Self::CrashPostgres,
        Self::RestartPostgres,
        Self::KillRedis,
        Self::PauseRedis,
        Self::CutPostgres,
        Self::StallPostgres,
        Self::PausePostgres,
        Self::MutePostgres,
        Self::CutRedis,
        Self::StallRedis,
        Self::JumpClock,
        Self::JumpDatabaseClock,
    ];
}

/// One fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    /// When, from the begin.
    pub at: Duration,
    pub kind: Kind,
    /// Whom it concerns, where it concerns one.
    pub replica: usize,
    /// How long what is down or held stays so.
    pub lasts: Duration,
    /// By how many seconds a clock jumps.
    pub offset: i64,
}

/// The faults of so long a time. No kind comes again before each has come.
pub(crate) fn plan(seed: u64, length: Duration) -> Vec<Fault> {
    let mut random = Random::from_seed(seed);
    let mut deck = Vec::new();
    let mut faults = Vec::new();
    let mut at = Duration::from_secs(1);
    while at < length {
        if deck.is_empty() {
            deck = Kind::DECK.to_vec();
        }
        let kind = deck.swap_remove(random.between(0, deck.len() as u64) as usize);
        let lease = LEASE.as_millis() as u64;
        let (low, high) = match kind {
            // Longer than a lease, or it would not be missed.
            Kind::PauseReplica => (lease + 500, lease + 3_000),
            Kind::KillReplica | Kind::KillRedis => (100, 2_500),
            Kind::CrashPostgres | Kind::RestartPostgres => (50, 1_500),
            Kind::JumpClock | Kind::JumpDatabaseClock => (2_000, 5_000),
            _ => (200, 4_000),
        };
        let hours = random.between(0, 4 * 3_600) as i64 - 2 * 3_600;
        faults.push(Fault {
            at,
            kind,
            replica: random.between(0, REPLICAS as u64) as usize,
            lasts: Duration::from_millis(random.between(low, high)),
            // What is leased while the database's clock is ahead stays leased so much longer when it is right again.
            offset: match kind {
                Kind::JumpDatabaseClock => hours.rem_euclid(20) + 1,
                _ => hours,
            },
        });
        at += Duration::from_millis(random.between(1_000, 2_600));
    }
    faults
}

/// Does all of it, each at its time, and waits until everything is whole again.
pub(crate) async fn inject(cluster: Arc<Cluster>, history: Arc<History>, faults: Vec<Fault>) {
    let begun = tokio::time::Instant::now();
    let mut running = JoinSet::new();
    for fault in faults {
        tokio::time::sleep_until(begun + fault.at).await;
        running.spawn(suffer(Arc::clone(&cluster), Arc::clone(&history), fault));
        while let Some(ended) = running.try_join_next() {
            ended.expect("a fault is whole again");
        }
    }
    while let Some(ended) = running.join_next().await {
        ended.expect("a fault is whole again");
    }
}

async fn suffer(cluster: Arc<Cluster>, history: Arc<History>, fault: Fault) {
    let Fault { kind, lasts, .. } = fault;
    match kind {
        Kind::KillReplica | Kind::DrainReplica | Kind::PauseReplica => {
            at_replica(&cluster, &history, fault).await;
        }
        Kind::CrashPostgres | Kind::RestartPostgres => {
            let mut postgres = cluster.postgres.lock().await;
            history.fault(format!("{kind:?} for {lasts:?}"));
            if kind == Kind::CrashPostgres {
                postgres.crash().await;
            } else {
                postgres.stop().await;
            }
            tokio::time::sleep(lasts).await;
            postgres.start_again().await;
        }
        Kind::PausePostgres => {
            let mut ways = Vec::new();
            for replica in &cluster.replicas {
                ways.push(replica.to_postgres.lock().await);
            }
            history.fault(format!("{kind:?} for {lasts:?}"));
            for way in &ways {
                way.stall();
            }
            tokio::time::sleep(lasts).await;
            for way in &ways {
                way.go_on();
            }
        }
        Kind::JumpDatabaseClock => {
            let postgres = cluster.postgres.lock().await;
            history.fault(format!("{kind:?} by {} s for {lasts:?}", fault.offset));
            postgres.clock().set(fault.offset);
            tokio::time::sleep(lasts).await;
            postgres.clock().set(0);
        }
        Kind::KillRedis => {
            let mut redis = cluster.redis.lock().await;
            history.fault(format!("{kind:?} for {lasts:?}"));
            redis.kill().await;
            tokio::time::sleep(lasts).await;
            redis.start_again().await;
        }
        Kind::PauseRedis => {
            let redis = cluster.redis.lock().await;
            history.fault(format!("{kind:?} for {lasts:?}"));
            redis.pause();
            tokio::time::sleep(lasts).await;
            redis.go_on();
        }
        _ => between(&cluster, &history, fault).await,
    }
    history.fault(format!("{kind:?} is over"));
}

async fn at_replica(cluster: &Cluster, history: &History, fault: Fault) {
    let Fault { kind, lasts, .. } = fault;
    let replica = &cluster.replicas[fault.replica];
    let mut server = replica.server.lock().await;
    history.fault(format!("{kind:?} {} for {lasts:?}", fault.replica));
    match kind {
        Kind::PauseReplica => {
            server.pause();
            tokio::time::sleep(lasts).await;
            server.go_on();
            return;
        }
        Kind::DrainReplica => {
            let (status, took) = server.terminate(DRAIN_LIMIT).await;
            history.add(What::Drained {
                replica: fault.replica,
                took_ms: took.as_millis() as u64,
                status: status.to_string(),
            });
        }
        _ => {
            server.kill().await;
            tokio::time::sleep(lasts).await;
        }
    }
    replica.start_again(&mut server).await;
}

/// What happens to a replica from outside.
async fn between(cluster: &Cluster, history: &History, fault: Fault) {
    let Fault { kind, lasts, .. } = fault;
    let replica = &cluster.replicas[fault.replica];
    if kind == Kind::JumpClock {
        let clock = replica.clock.lock().await;
        history.fault(format!(
            "{kind:?} {} by {} s for {lasts:?}",
            fault.replica, fault.offset
        ));
        clock.set(fault.offset);
        tokio::time::sleep(lasts).await;
        clock.set(0);
        return;
    }
    let way = match kind {
        Kind::CutRedis | Kind::StallRedis => &replica.to_redis,
        _ => &replica.to_postgres,
    };
    let way = way.lock().await;
    history.fault(format!("{kind:?} {} for {lasts:?}", fault.replica));
    match kind {
        Kind::CutPostgres | Kind::CutRedis => way.cut(),
        Kind::MutePostgres => {
            way.mute();
            tokio::time::sleep(lasts).await;
            way.cut();
            way.go_on();
        }
        _ => {
            way.stall();
            tokio::time::sleep(lasts).await;
            way.go_on();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_plan_follows_from_its_seed_and_soon_holds_every_kind() {
        let length = Duration::from_secs(40);
        assert_eq!(plan(7, length), plan(7, length));
        assert_ne!(plan(7, length), plan(8, length));
        let all: BTreeSet<Kind> = Kind::DECK.into_iter().collect();
        for seed in 0..50 {
            let kinds: BTreeSet<Kind> = plan(seed, length).iter().map(|fault| fault.kind).collect();
            assert_eq!(kinds, all, "seed {seed}");
        }
    }

    #[test]
    fn a_pause_outlasts_a_lease_and_the_databases_clock_never_jumps_back_first() {
        for fault in plan(3, Duration::from_mins(30)) {
            match fault.kind {
                Kind::PauseReplica => assert!(fault.lasts > LEASE, "{fault:?}"),
                Kind::JumpDatabaseClock => assert!(fault.offset > 0, "{fault:?}"),
                _ => {}
            }
        }
    }
}
