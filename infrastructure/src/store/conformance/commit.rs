//! The commit boundary (A3, A7, A8, A10): what a turn stores on its way, and the one transaction that completes it.

use std::sync::Arc;

use tidemark_application::ports::jobs::{JobKind, JobState};
use tidemark_application::ports::store::Store;
use tidemark_application::ports::turns::{CommitTurn, NewMessage, Started, TurnWriteError};
use tidemark_domain::session::{Message, Role};
use tidemark_domain::turn::{Turn, TurnStatus, terminal_seq_after};

use super::world::{HARD_TEXTS, LONG, World, shown};

/// A turn after a tool round.
async fn after_a_tool_round(w: &World, started: &Started) {
    for messages in [vec![w.calling(&["a"])], vec![w.result("a")]] {
        w.store
            .append_step(started.key, messages, w.now())
            .await
            .unwrap();
    }
}

pub async fn a_tool_round_is_stored_in_protocol_order_before_the_next_step(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let started = w.started(session).await;
    let calls = w.calling(&["a", "b"]);
    let now = w.now();
    let stored = w
        .store
        .append_step(started.key, vec![calls.clone()], now)
        .await
        .unwrap();
    let expected = Message {
        id: calls.id,
        session_id: session,
        turn_id: Some(started.turn.id),
        seq: 2,
        role: Role::Assistant,
        content: String::new(),
        name: None,
        tool_calls: calls.tool_calls,
        tool_call_id: None,
        partial: false,
        learnable: false,
        created_at: now,
    };
    assert_eq!(stored, [expected]);
    let results = vec![w.result("b"), w.result("a")];
    let more = w
        .store
        .append_step(started.key, results, w.now())
        .await
        .unwrap();
    let answered: Vec<_> = more
        .iter()
        .map(|m| (m.seq, m.tool_call_id.as_deref()))
        .collect();
    assert_eq!(answered, [(3, Some("b")), (4, Some("a"))]);
    assert_eq!(w.history(session).await[1..], [stored, more].concat());
    w.store.commit_turn(started.key, w.commit()).await.unwrap();
    w.check_transcript(session).await;
}

pub async fn a_commit_stores_answer_state_usage_and_jobs_together(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let memory = w.remembered(w.memory("The budget is 400k")).await;
    let started = w.started(session).await;
    after_a_tool_round(&w, &started).await;
    let commit = CommitTurn {
        recalled: vec![shown(&memory)],
        events_used: 17,
        jobs: vec![w.new_job(JobKind::Index), w.new_job(JobKind::CountUse)],
        ..w.commit()
    };

    let turn = w
        .store
        .commit_turn(started.key, commit.clone())
        .await
        .unwrap();

    let expected = Turn {
        status: TurnStatus::Completed,
        terminal_seq: Some(terminal_seq_after(17)),
        text: Some(commit.answer.content.clone()),
        message_id: Some(commit.answer.id),
        finish_reason: Some(commit.finish_reason),
        usage: Some(commit.usage),
        recalled: commit.recalled,
        ended_at: Some(commit.now),
        ..started.turn.clone()
    };
    assert_eq!(turn, expected);
    assert_eq!(w.turn_row(&turn).await, expected);
    let answer = w.history(session).await.pop().unwrap();
    assert_eq!(answer.id, commit.answer.id);
    assert_eq!(answer.turn_id, Some(turn.id));
    assert_eq!(answer.role, Role::Assistant);
    assert_eq!(answer.content, commit.answer.content);
    assert!(answer.learnable);
    assert_eq!(answer.created_at, commit.now);
    let jobs = w.jobs().await;
    assert_eq!(jobs.len(), 2);
    for new in commit.jobs {
        let job = jobs.iter().find(|j| j.id == new.id).unwrap();
        assert_eq!(job.owner, w.owner);
        assert_eq!(job.session_id, Some(session));
        assert_eq!(job.kind, new.kind);
        assert_eq!(job.state, JobState::Pending);
        assert_eq!(job.attempts, 0);
        assert_eq!(job.last_error, None);
        assert_eq!(job.created_at, commit.now);
    }
    assert_eq!(w.session_row(session).await.active_turn, None);
    w.check_transcript(session).await;
}

/// Nothing of the turn has changed since it was started, and it can still be completed.
async fn still_runs(w: &World, started: &Started) {
    assert_eq!(w.turn_row(&started.turn).await, started.turn);
    assert_eq!(
        w.history(started.session.id).await,
        std::slice::from_ref(&started.message)
    );
    assert!(w.jobs().await.iter().all(|job| job.kind != JobKind::Index));
    let done = w.store.commit_turn(started.key, w.commit()).await;
    assert_eq!(done.unwrap().status, TurnStatus::Completed);
    w.check_transcript(started.session.id).await;
}

pub async fn a_commit_whose_answer_cannot_be_stored_changes_nothing(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let taken = w.said(w.session().await, "I was here first.").await;
    let started = w.started(session).await;
    let commit = CommitTurn {
        answer: NewMessage {
            id: taken.id,
            ..w.answer("Mine.")
        },
        jobs: vec![w.new_job(JobKind::Index)],
        ..w.commit()
    };
    let refused = w.store.commit_turn(started.key, commit).await;
    assert!(
        matches!(refused, Err(TurnWriteError::Store(_))),
        "{refused:?}"
    );
    still_runs(&w, &started).await;
}

pub async fn a_commit_whose_job_cannot_be_enqueued_changes_nothing(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let taken = w.enqueued(w.session().await, JobKind::Consolidate).await;
    let started = w.started(session).await;
    let mut job = w.new_job(JobKind::Index);
    job.id = taken.id;
    let commit = CommitTurn {
        jobs: vec![job],
        ..w.commit()
    };
    let refused = w.store.commit_turn(started.key, commit).await;
    assert!(
        matches!(refused, Err(TurnWriteError::Store(_))),
        "{refused:?}"
    );
    still_runs(&w, &started).await;
}

pub async fn after_a_commit_nothing_else_may_write_to_the_turn(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let started = w.started(session).await;
    let key = started.key;
    let done = w.store.commit_turn(key, w.commit()).await.unwrap();
    let history = w.history(session).await;
    let again = CommitTurn {
        jobs: vec![w.new_job(JobKind::Index)],
        ..w.commit()
    };
    let mut close = w.close_with(TurnStatus::Failed, vec![w.partial("It")]);
    close.jobs = vec![w.new_job(JobKind::Index)];
    let outcomes = [
        w.store.commit_turn(key, again).await.map(drop),
        w.store.close_turn(key, close).await.map(drop),
        w.store
            .close_turn(key, w.interrupt(1, Vec::new()))
            .await
            .map(drop),
        w.store
            .append_step(key, vec![w.calling(&["a"])], w.now())
            .await
            .map(drop),
        w.store.reserve_events(key, 1_000).await,
        w.store.renew_turn(key, LONG).await.map(drop),
    ];
    for outcome in outcomes {
        assert!(matches!(outcome, Err(TurnWriteError::Fenced)));
    }
    assert_eq!(w.turn_row(&done).await, done);
    assert_eq!(w.history(session).await, history);
    assert!(w.jobs().await.is_empty());
}

pub async fn jobs_of_a_refused_commit_are_not_enqueued(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let started = w.started(session).await;
    let mut stale = started.key;
    stale.fence += 1;
    let commit = CommitTurn {
        jobs: vec![w.new_job(JobKind::Index)],
        ..w.commit()
    };
    let refused = w.store.commit_turn(stale, commit).await;
    assert!(matches!(refused, Err(TurnWriteError::Fenced)));
    still_runs(&w, &started).await;
}

pub async fn a_runner_whose_lease_lapsed_unnoticed_still_commits(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let started = w.lapsed(session).await;
    after_a_tool_round(&w, &started).await;
    let done = w.store.commit_turn(started.key, w.commit()).await.unwrap();
    assert_eq!(done.status, TurnStatus::Completed);
    assert!(w.store.lapsed_turns(10).await.unwrap().is_empty());
    w.check_transcript(session).await;
}

pub async fn of_a_commit_and_a_close_at_once_one_happens(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    for _ in 0..12 {
        let session = w.session().await;
        let started = w.started(session).await;
        let close = w.close_with(TurnStatus::Cancelled, vec![w.partial("It is")]);
        let (committed, closed) = tokio::join!(
            w.store.commit_turn(started.key, w.commit()),
            w.store.close_turn(started.key, close)
        );
        let (winner, loser) = match (committed, closed) {
            (Ok(turn), Err(error)) | (Err(error), Ok(turn)) => (turn, error),
            both => panic!("{both:?}"),
        };
        assert!(matches!(loser, TurnWriteError::Fenced), "{loser:?}");
        assert_eq!(w.turn_row(&winner).await, winner);
        let history = w.history(session).await;
        assert_eq!(history.len(), 2);
        assert_eq!(Some(history[1].id), winner.message_id);
    }
}

pub async fn what_a_turn_keeps_survives_whatever_it_holds(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    for text in HARD_TEXTS {
        let started = w.started(session).await;
        let mut calls = w.calling(&[text]);
        text.clone_into(&mut calls.tool_calls[0].arguments);
        text.clone_into(&mut calls.tool_calls[0].name);
        let result = NewMessage {
            content: text.to_owned(),
            ..w.result(text)
        };
        let sent = vec![calls.clone(), result];
        w.store
            .append_step(started.key, sent, w.now())
            .await
            .unwrap();
        let commit = CommitTurn {
            answer: w.answer(text),
            recalled: vec![shown(&w.memory(text))],
            ..w.commit()
        };
        let recalled = commit.recalled.clone();
        let turn = w.store.commit_turn(started.key, commit).await.unwrap();
        assert_eq!(w.turn_row(&turn).await.recalled, recalled);
        assert_eq!(turn.text.as_deref(), Some(text));
        let history = w.history(session).await;
        let [.., stored, result, answer] = &history[..] else {
            panic!("three messages")
        };
        assert_eq!(stored.tool_calls, calls.tool_calls);
        assert_eq!(result.tool_call_id.as_deref(), Some(text));
        assert_eq!(result.content, text);
        assert_eq!(answer.content, text);
    }
    w.check_transcript(session).await;
}
