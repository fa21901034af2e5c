//! Killing the server at random moments under load (A8, A9, A10): whoever saw `done` finds the answer, no turn has two answers
//! or two ends, every session goes on, every transcript is valid, and nothing that was to be learned is lost.
//!
//! `TIDEMARK_TEST_KILLS` is the number of kills a store (20), `TIDEMARK_TEST_SEED` repeats a run.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests"
)]

mod checks;
mod derived;
mod load;
mod lost_work;

use std::sync::Arc;
use std::time::Duration;

use tidemark_tests::database::Store;
use tidemark_tests::model::Model;
use tidemark_tests::random::Random;
use tidemark_tests::server::Setup;

use derived::Uses;
use load::{Line, Place, TurnSeen};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// New messages that make a session due for consolidation.
const THRESHOLD: i64 = 8;

/// Clients at once; the last two share a session, so that turns also wait for each other.
const CLIENTS: usize = 5;

/// How long the first turn of a round may take.
const LONGEST_ROUND: Duration = Duration::from_mins(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_keeps_its_promises_through_kills_at_random_moments() {
    kills(Store::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_keeps_its_promises_through_kills_at_random_moments() {
    kills(Store::PostgresDurable).await;
}

fn kills_wanted() -> usize {
    std::env::var("TIDEMARK_TEST_KILLS").map_or(20, |given| {
        given.parse().expect("TIDEMARK_TEST_KILLS is a number")
    })
}

async fn kills(store: Store) {
    let given = Random::seed_of_this_run();
    println!("{store:?}: TIDEMARK_TEST_SEED={given}");
    let mut random = Random::from_seed(given);
    let model = Model::start().await;
    let setup = Setup::on(store)
        .model(&model)
        .with("TIDEMARK_TURN__LEASE_SECONDS", "2");
    let setup = setup
        .with("TIDEMARK_LEARNING__LEASE_SECONDS", "5")
        .with("TIDEMARK_LEARNING__THRESHOLD", &THRESHOLD.to_string());
    let mut server = setup.start().await;
    let line = Arc::new(Line::to(server.client()));
    let mut uses = Uses::default();
    for number in 0..CLIENTS - 1 {
        uses.give_preference(&line.client(), &user(number)).await;
    }
    let mut kills_with_waiting_work = 0;
    let mut places = Vec::new();
    let mut all_seen: Vec<TurnSeen> = Vec::new();
    for round in 0..kills_wanted() {
        if round % 10 == 0 {
            places = make_places(&line, round).await;
        }
        let workers: Vec<_> = places
            .iter()
            .enumerate()
            .map(|(number, place)| {
                let random = Random::from_seed(random.bits());
                tokio::spawn(load::work(
                    Arc::clone(&line),
                    place.clone(),
                    format!("r{round}c{number}"),
                    random,
                ))
            })
            .collect();
        let told = Arc::new(Notify::new());
        let askers = ask_once_each(&line, round, &mut random, &told).await;
        let moment = moment_of_the_kill(round, &mut random, &told).await;
        line.hang_up();
        server.kill().await;
        let waiting = lost_work::open_jobs(store, server.store_url()).await;
        kills_with_waiting_work += usize::from(waiting > 0);
        server.start_again().await;
        line.connect(server.client());
        let mut seen = Vec::new();
        for worker in workers {
            seen.extend(worker.await.expect("a client found a broken promise"));
        }
        for asker in askers {
            seen.extend(asker.await.expect("a client found a broken promise"));
        }
        println!(
            "round {round}: killed {moment} with {waiting} jobs open, {} turns seen",
            seen.len()
        );
        checks::after_restart(&line, &places, &seen, &mut uses).await;
        model.assert_every_transcript_was_valid();
        all_seen.extend(seen);
    }
    checks::at_the_end(&line, &all_seen).await;
    let completed = all_seen
        .iter()
        .filter(|turn| turn.status() == "completed")
        .count();
    println!(
        "{store:?}: {} turns, {completed} completed, {} model requests, {kills_with_waiting_work} kills with open jobs",
        all_seen.len(),
        model.requests().len()
    );
    assert!(completed > 0, "the load did something");
    assert!(uses.of_preferences() > 0, "no turn was shown a preference");
    assert!(
        model.requests().iter().any(|request| request
            .messages()
            .iter()
            .any(|message| message["role"] == "tool")),
        "no tool round was run"
    );
}

fn user(number: usize) -> String {
    format!("user-{}", number.min(CLIENTS - 2))
}

/// Starts a client of each user that asks once, in a new session.
async fn ask_once_each(
    line: &Arc<Line>,
    round: usize,
    random: &mut Random,
    told: &Arc<Notify>,
) -> Vec<JoinHandle<Option<TurnSeen>>> {
    let mut askers = Vec::new();
    for number in 0..CLIENTS - 1 {
        let user = user(number);
        let session = line.client().as_user(&user).create_session().await;
        askers.push(tokio::spawn(load::ask_once(
            Arc::clone(line),
            Place { user, session },
            format!("crater{round}s{number}"),
            Random::from_seed(random.bits()),
            Arc::clone(told),
        )));
    }
    askers
}

/// Waits until the server is to be killed: at any moment in every other round, else when the end of a turn that nothing follows has just
/// been told, while the work derived from it is pending or running.
async fn moment_of_the_kill(round: usize, random: &mut Random, told: &Notify) -> String {
    if round.is_multiple_of(2) {
        let moment = Duration::from_micros(random.between(1_000, 1_500_000));
        tokio::time::sleep(moment).await;
        return format!("after {moment:?}");
    }
    tidemark_tests::wait::within("a turn to end", LONGEST_ROUND, told.notified()).await;
    let moment = Duration::from_micros(random.between(0, 15_000));
    tokio::time::sleep(moment).await;
    format!("{moment:?} after the end of a turn")
}

async fn make_places(line: &Line, round: usize) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for number in 0..CLIENTS {
        let client = line.client().as_user(&user(number));
        let session = match places.last() {
            Some(last) if number == CLIENTS - 1 => last.session.clone(),
            _ => client.create_session().await,
        };
        places.push(Place {
            user: user(number),
            session,
        });
    }
    println!("round {round}: {} sessions", CLIENTS - 1);
    places
}
