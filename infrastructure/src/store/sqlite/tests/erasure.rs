//! Erasure, down to the bytes of the file.

use tidemark_application::ports::sessions::SessionChange;
use tidemark_application::ports::users::UserRepository;
use tidemark_domain::ids::UserName;

use super::*;

/// Whoever adds a table says what an erasure does to it.
#[tokio::test]
async fn every_table_that_belongs_to_owners_is_erased_or_kept_for_a_reason() {
    let fixture = Fixture::new().await;
    let tables: Vec<String> = sqlx::query_scalar(
        "SELECT DISTINCT t.name FROM sqlite_schema t, pragma_table_info(t.name) c \
         WHERE t.type = 'table' AND c.name = 'owner_id' ORDER BY t.name",
    )
    .fetch_all(&fixture.store.readers)
    .await
    .unwrap();
    let mut named: Vec<&str> = users::DELETIONS.iter().map(|(table, _)| *table).collect();
    named.push("turns");
    named.extend(users::KEPT);
    named.sort_unstable();
    assert_eq!(tables, named);
}

/// How often the file and its log hold a word, whatever its case.
fn occurrences(fixture: &Fixture, word: &str) -> usize {
    ["", "-wal", "-shm"]
        .iter()
        .filter_map(|suffix| {
            let mut name = path(fixture.directory.path()).into_os_string();
            name.push(suffix);
            std::fs::read(name).ok()
        })
        .map(|bytes| {
            let bytes = bytes.to_ascii_lowercase();
            bytes
                .windows(word.len())
                .filter(|w| *w == word.as_bytes())
                .count()
        })
        .sum()
}

/// Rows of two owners between one another, of many sizes, changed and removed, so that pages are split and filled up again.
async fn fill(fixture: &Fixture, owners: &[(Owner, &str)]) {
    for n in 0..150_usize {
        let (owner, word) = owners[n % owners.len()];
        let session = NewSession {
            id: fixture.ids.session(),
            title: Some(format!("{word} {n} ").repeat(1 + n % 7 * (n % 11))),
            labels: vec![format!("{word}{n}")],
            channel: "api".to_owned(),
            memory: MemoryMode::On,
            now: fixture.now,
        };
        let id = session.id;
        let store = &fixture.store;
        store.create_session(owner, session, None).await.unwrap();
        let mut turn = fixture.turn(id);
        turn.owner = owner;
        turn.input = format!("{word} question {n} ").repeat(1 + n % 13 * (n % 5));
        store.accept_turn(turn).await.unwrap();
        let message = fixture.ids.message();
        let started = store
            .start_turn(owner, id, message, LEASE, EVENT_BLOCK, fixture.now)
            .await
            .unwrap()
            .unwrap();
        let mut commit = fixture.commit();
        commit.answer.content = format!("{word} answer {n} ").repeat(1 + n % 17 * (n % 4));
        store.commit_turn(started.key, commit).await.unwrap();
        let title = format!("{word} renamed {n} ").repeat(1 + n % 5 * (n % 9));
        let change = SessionChange {
            title: Some(Some(title)),
            ..SessionChange::default()
        };
        store
            .update_session(owner, id, None, change, fixture.now)
            .await
            .unwrap();
        if n % 3 == 0 {
            store.delete_session(owner, id, true).await.unwrap();
        }
    }
}

async fn run(fixture: &Fixture, statement: &'static str) {
    let done = fixture.store.writer.write(move |c| {
        Box::pin(async move {
            sqlx::query(statement)
                .execute(c)
                .await
                .map_err(errors::store_error)?;
            Ok::<(), StoreError>(())
        })
    });
    done.await.unwrap();
}

#[tokio::test]
async fn neither_the_file_nor_its_log_holds_a_byte_of_an_erased_owner() {
    let fixture = Fixture::new().await;
    let name: UserName = "umbrella-keeper".parse().unwrap();
    let other = fixture.store.resolve_owner(TenantId::DEFAULT, &name).await;
    let other = other.unwrap();
    // What moved pages leave behind, made certain: what is deleted stays where it was.
    run(&fixture, "PRAGMA secure_delete = OFF").await;
    fill(
        &fixture,
        &[(other, "xylophone"), (fixture.owner, "zeppelin")],
    )
    .await;
    run(&fixture, "PRAGMA secure_delete = ON").await;
    assert!(occurrences(&fixture, "xylophone") > 0);
    let kept = occurrences(&fixture, "zeppelin");
    let erased = fixture.store.erase(other, fixture.ids.uuid(), fixture.now);
    let erased = erased.await.unwrap().unwrap();
    assert_eq!(erased.receipt.removed["turns"], erased.turns.len() as u64);
    // Under the name there may be somebody new before the file is rewritten.
    let anew = fixture.store.resolve_owner(TenantId::DEFAULT, &name).await;
    let anew = anew.unwrap();
    let made = fixture.store.erase(anew, fixture.ids.uuid(), fixture.now);
    assert!(made.await.unwrap().is_some());
    fixture.store.overwrite_erased().await.unwrap();
    assert_eq!(occurrences(&fixture, "xylophone"), 0);
    assert_eq!(occurrences(&fixture, "umbrella-keeper"), 0);
    assert!(kept > 0 && occurrences(&fixture, "zeppelin") > 0);
    let again = fixture.store.erase(other, fixture.ids.uuid(), fixture.now);
    assert_eq!(again.await.unwrap(), None);
}

#[tokio::test]
async fn an_erasure_that_was_cut_is_finished_at_the_next_start() {
    let mut fixture = Fixture::new().await;
    let name: UserName = "somebody".parse().unwrap();
    let other = fixture.store.resolve_owner(TenantId::DEFAULT, &name).await;
    let other = other.unwrap();
    fill(
        &fixture,
        &[(other, "xylophone"), (fixture.owner, "zeppelin")],
    )
    .await;
    fixture
        .store
        .erase(other, fixture.ids.uuid(), fixture.now)
        .await
        .unwrap();
    // The process ends before the file is rewritten.
    let left = users::is_unfinished(&fixture.store.readers).await.unwrap();
    assert!(left);
    fixture.reopen().await;
    let left = users::is_unfinished(&fixture.store.readers).await.unwrap();
    assert!(!left);
    assert_eq!(occurrences(&fixture, "xylophone"), 0);
}

#[tokio::test]
async fn the_number_of_an_erased_owner_is_never_given_again() {
    let fixture = Fixture::new().await;
    let name: UserName = "somebody".parse().unwrap();
    let first = fixture.store.resolve_owner(TenantId::DEFAULT, &name).await;
    let first = first.unwrap();
    let erased = fixture.store.erase(first, fixture.ids.uuid(), fixture.now);
    assert!(erased.await.unwrap().is_some());
    let again = fixture.store.resolve_owner(TenantId::DEFAULT, &name).await;
    assert!(again.unwrap().id > first.id);
}
