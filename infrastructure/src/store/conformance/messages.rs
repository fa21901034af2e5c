//! Messages: their numbers, their pages, and those of the past.

use std::sync::Arc;

use tidemark_application::ports::jobs::JobKind;
use tidemark_application::ports::sessions::{ImportError, ImportedMessage};
use tidemark_application::ports::store::Store;
use tidemark_domain::ids::SessionId;
use tidemark_domain::session::Role;

use super::world::{HARD_TEXTS, World, key, message_ids, unknown};

pub async fn imported_messages_are_read_as_they_were_given(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    w.said(session, "First.").await;
    let past = vec![
        w.past(Role::System, "Be brief."),
        ImportedMessage {
            name: Some("Ann".to_owned()),
            learnable: false,
            ..w.past(Role::User, "What is the budget?")
        },
        w.past(Role::Assistant, "It is 300k."),
    ];
    let stored = w.import(session, past.clone()).await;
    for (position, (message, given)) in stored.iter().zip(&past).enumerate() {
        assert_eq!(message.id, given.id);
        assert_eq!(message.session_id, session);
        assert_eq!(message.turn_id, None);
        assert_eq!(message.seq, position as i64 + 2);
        assert_eq!(message.role, given.role);
        assert_eq!(message.content, given.content);
        assert_eq!(message.name, given.name);
        assert!(message.tool_calls.is_empty());
        assert_eq!(message.tool_call_id, None);
        assert!(!message.partial);
        assert_eq!(message.learnable, given.learnable);
        assert_eq!(message.created_at, given.created_at);
    }
    assert_eq!(stored.len(), past.len());
    assert_eq!(w.history(session).await[1..], stored);
    w.check_transcript(session).await;
}

pub async fn an_import_into_nothing_or_into_a_strangers_session_is_refused(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let mut tries = vec![(w.owner, SessionId(unknown()))];
    tries.extend(w.strangers().await.into_iter().map(|s| (s, session)));
    for (owner, id) in tries {
        let past = vec![w.past(Role::User, "Let me in.")];
        let jobs = vec![w.new_job(JobKind::Index)];
        let refused = w
            .store
            .import_messages(owner, id, w.importing(past, jobs), Some(key("k", 1)))
            .await;
        assert!(
            matches!(refused, Err(ImportError::SessionNotFound)),
            "{refused:?}"
        );
    }
    assert!(w.history(session).await.is_empty());
    assert_eq!(w.store.count_jobs().await.unwrap(), []);
}

pub async fn an_import_never_falls_into_a_running_turn(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let running = w.started(session).await;
    let past = vec![w.past(Role::User, "In between.")];
    let jobs = vec![w.new_job(JobKind::Index)];
    let refused = w
        .store
        .import_messages(w.owner, session, w.importing(past.clone(), jobs), None)
        .await;
    assert!(
        matches!(refused, Err(ImportError::SessionBusy)),
        "{refused:?}"
    );
    assert!(w.jobs().await.is_empty());
    w.store.commit_turn(running.key, w.commit()).await.unwrap();
    w.import(session, past).await;
    assert_eq!(w.history(session).await.len(), 3);
    w.check_transcript(session).await;
}

pub async fn an_import_enqueues_its_jobs(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let past = vec![w.past(Role::User, "The budget is 400k.")];
    let new = [w.new_job(JobKind::Index), w.new_job(JobKind::Consolidate)];
    w.store
        .import_messages(w.owner, session, w.importing(past, new.to_vec()), None)
        .await
        .unwrap();
    let jobs = w.jobs().await;
    assert_eq!(jobs.len(), 2);
    for new in new {
        assert!(jobs.iter().any(|j| (j.id, j.kind) == (new.id, new.kind)));
    }
}

pub async fn messages_are_paged_upwards_from_a_number(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let past = (0..5)
        .map(|n| w.past(Role::User, &format!("{n}")))
        .collect();
    let all = w.import(session, past).await;
    for (after, limit, range, more) in [
        (0, 2, 0..2, true),
        (2, 2, 2..4, true),
        (4, 2, 4..5, false),
        (5, 2, 5..5, false),
        (3, 2, 3..5, false),
        (-1, 9, 0..5, false),
    ] {
        let page = w.store.messages(w.owner, session, after, limit).await;
        let page = page.unwrap().unwrap();
        assert_eq!(message_ids(&page.items), message_ids(&all[range]));
        assert_eq!(page.more, more);
    }
    let empty = w.session().await;
    let page = w.store.messages(w.owner, empty, 0, 5).await.unwrap();
    assert!(page.is_some_and(|page| page.items.is_empty() && !page.more));
}

pub async fn history_is_the_newest_before_a_number_in_ascending_order(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let past = (0..5)
        .map(|n| w.past(Role::User, &format!("{n}")))
        .collect();
    let all = w.import(session, past).await;
    for (before, limit, range) in [
        (None, 2, 3..5),
        (None, 9, 0..5),
        (Some(5), 2, 2..4),
        (Some(2), 9, 0..1),
        (Some(1), 9, 0..0),
    ] {
        let history = w.store.history(w.owner, session, before, limit).await;
        assert_eq!(history.unwrap(), all[range]);
    }
}

pub async fn sessions_number_their_messages_apart(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let (a, b) = (w.session().await, w.session().await);
    for _ in 0..3 {
        w.completed(a).await;
        w.said(b, "Elsewhere.").await;
    }
    assert_eq!(w.history(a).await.len(), 6);
    assert_eq!(w.history(b).await.len(), 3);
    w.check_transcript(a).await;
    w.check_transcript(b).await;
}

pub async fn numbers_have_no_gap_under_writers_at_once(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    futures::future::join_all((0..16).map(|n| {
        let past = (0..=n % 3)
            .map(|_| w.past(Role::User, "At once."))
            .collect();
        w.import(session, past)
    }))
    .await;
    w.check_transcript(session).await;
}

pub async fn texts_survive_whatever_they_hold(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    for text in HARD_TEXTS {
        let named = ImportedMessage {
            name: Some(text.to_owned()),
            ..w.past(Role::User, text)
        };
        let stored = w.import(session, vec![named]).await;
        assert_eq!(stored[0].content, text);
        let read = w.history(session).await.pop().unwrap();
        assert_eq!(read.content, text);
        assert_eq!(read.name.as_deref(), Some(text));
    }
}

pub async fn texts_of_a_hundred_thousand_characters_survive(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let long: String = "预算 is 400k 😀 \"ok\"\n"
        .chars()
        .cycle()
        .take(100_000)
        .collect();
    w.said(session, &long).await;
    let mut turn = w.turn(session);
    turn.input.clone_from(&long);
    w.store.accept_turn(turn).await.unwrap();
    let started = w.start(session).await.unwrap();
    let mut commit = w.commit();
    commit.answer.content.clone_from(&long);
    let turn = w.store.commit_turn(started.key, commit).await.unwrap();
    assert_eq!(turn.text.as_ref(), Some(&long));
    assert_eq!(w.turn_row(&turn).await.input, long);
    assert_eq!(w.contents(session).await, [&*long, &*long, &*long]);
}
