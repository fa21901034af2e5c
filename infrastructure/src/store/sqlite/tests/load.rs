//! Figures, printed on demand: `cargo test -p tidemark-infrastructure --lib -- --ignored --nocapture sqlite::tests::load`.
#![allow(clippy::print_stdout)]

use std::time::Instant;

use tidemark_application::ports::learning::{IndexCommit, LearningRepository};
use tidemark_application::ports::memories::{ChangePosition, MemoryRepository};
use tidemark_application::ports::sessions::{ImportedMessage, NewImport};
use tidemark_domain::memory::index::OwnerIndex;

use super::learned::chunk;

use super::*;

const CLIENTS: usize = 64;
const TURNS: usize = 20;
const MESSAGES: usize = 1_000;

async fn client(fixture: std::sync::Arc<Fixture>) {
    let session = fixture.session().await;
    for _ in 0..TURNS {
        let started = fixture.started(session).await;
        let committed = fixture.store.commit_turn(started.key, fixture.commit());
        committed.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures"]
async fn turns_of_many_clients() {
    let fixture = std::sync::Arc::new(Fixture::new().await);
    let begun = Instant::now();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| tokio::spawn(client(fixture.clone())))
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    let turns = CLIENTS * TURNS;
    let rate = turns as f64 / begun.elapsed().as_secs_f64();
    println!("{turns} turns of {CLIENTS} clients: {rate:.0} turns/s");
}

fn imported(fixture: &Fixture, number: usize) -> ImportedMessage {
    ImportedMessage {
        id: fixture.ids.message(),
        role: Role::User,
        content: format!(
            "Message {number}: on Tuesday we met with the customer in room {} and agreed that the budget of project \
             {} rises to {} thousand, that Kim writes the minutes and that delivery moves to week {}.",
            number % 17,
            number % 101,
            number * 3,
            number % 52
        ),
        name: None,
        learnable: true,
        created_at: fixture.now,
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures"]
async fn import_and_index_of_a_thousand_messages() {
    let fixture = Fixture::new().await;
    for round in 0..5 {
        let session = fixture.session().await;
        let messages = (0..MESSAGES).map(|n| imported(&fixture, n)).collect();
        let jobs = fixture.commit().jobs;
        let import = NewImport {
            messages,
            jobs,
            change: fixture.ids.change(),
            now: fixture.now,
        };
        let begun = Instant::now();
        let messages = fixture
            .store
            .import_messages(fixture.owner, session, import, None)
            .await
            .unwrap()
            .value;
        println!("round {round}: import {:?}", begun.elapsed());
        let claim = fixture.store.claim_job(LEASE).await.unwrap().unwrap();
        let commit = IndexCommit {
            erase_epoch: 0,
            from_seq: 0,
            to_seq: MESSAGES as i64,
            memories: messages.iter().map(chunk).collect(),
            change: fixture.ids.change(),
            jobs: Vec::new(),
            now: fixture.now,
        };
        let begun = Instant::now();
        fixture.store.commit_index(&claim, commit).await.unwrap();
        println!("round {round}: index {:?}", begun.elapsed());
        let begun = Instant::now();
        let delta = fixture
            .store
            .index_delta(fixture.owner, ChangePosition::START, u32::MAX, &[])
            .await
            .unwrap();
        println!("round {round}: read for an index in {:?}", begun.elapsed());
        let begun = Instant::now();
        let mut index = OwnerIndex::default();
        index.apply(delta.delta);
        println!(
            "round {round}: an index of {} memories in {} bytes made in {:?}",
            index.len(),
            index.bytes(),
            begun.elapsed()
        );
        let begun = Instant::now();
        if round == 4 {
            fixture
                .store
                .delete_session(fixture.owner, session, true)
                .await
                .unwrap();
            println!(
                "a session of {MESSAGES} messages deleted in {:?}",
                begun.elapsed()
            );
        }
    }
}
