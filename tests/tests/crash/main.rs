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
mod load;

use std::sync::Arc;
use std::time::Duration;

use tidemark_tests::database::Store;
use tidemark_tests::model::Model;
use tidemark_tests::random::Random;
use tidemark_tests::server::Setup;

use load::{Line, Place, TurnSeen};

/// Clients at once; the last two share a session, so that turns also wait for each other.
const CLIENTS: usize = 5;

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
        .with("TIDEMARK_LEARNING__LEASE_SECONDS", "2")
        .with("TIDEMARK_LEARNING__THRESHOLD", "8");
    let mut server = setup.start().await;
    let line = Arc::new(Line::to(server.client()));
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
        let moment = Duration::from_micros(random.between(1_000, 1_500_000));
        tokio::time::sleep(moment).await;
        line.hang_up();
        server.kill().await;
        server.start_again().await;
        line.connect(server.client());
        let mut seen = Vec::new();
        for worker in workers {
            seen.extend(worker.await.expect("a client found a broken promise"));
        }
        println!(
            "round {round}: killed after {moment:?}, {} turns seen",
            seen.len()
        );
        checks::after_restart(&line, &places, &seen).await;
        model.assert_every_transcript_was_valid();
        all_seen.extend(seen);
    }
    checks::at_the_end(&line, &all_seen).await;
    let completed = all_seen
        .iter()
        .filter(|turn| turn.status() == "completed")
        .count();
    println!(
        "{store:?}: {} turns, {completed} completed, {} model requests",
        all_seen.len(),
        model.requests().len()
    );
    assert!(completed > 0, "the load did something");
    assert!(
        model.requests().iter().any(|request| request
            .messages()
            .iter()
            .any(|message| message["role"] == "tool")),
        "no tool round was run"
    );
}

async fn make_places(line: &Line, round: usize) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for number in 0..CLIENTS {
        let client = line
            .client()
            .as_user(&format!("user-{}", number.min(CLIENTS - 2)));
        let session = match places.last() {
            Some(last) if number == CLIENTS - 1 => last.session.clone(),
            _ => client.create_session().await,
        };
        places.push(Place {
            user: format!("user-{}", number.min(CLIENTS - 2)),
            session,
        });
    }
    println!("round {round}: {} sessions", CLIENTS - 1);
    places
}
