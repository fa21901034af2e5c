//! The response stage (A3, A4, A6, A8, A9, A10).

use std::sync::Arc;

use tidemark_domain::event::{RecalledMemory, TurnEvent, Via};
use tidemark_domain::ids::MemoryId;
use tidemark_domain::memory::{Kind, Scope};
use tidemark_domain::turn::{FinishReason, Usage};
use uuid::Uuid;

use super::fakes::{CommitFate, CountingIds, Diary, FakeLog, FakeTurns, FixedClock, key};
use crate::chat::inference::{InferenceResult, ReviewSignals};
use crate::chat::publisher::Publisher;
use crate::chat::response::{ProcessResult, ResponseContext, ResponseError, finalize};
use crate::ports::jobs::JobKind;
use crate::ports::turns::TurnWriteError;

struct Scene {
    diary: Diary,
    turns: Arc<FakeTurns>,
    log: Arc<FakeLog>,
    context: ResponseContext,
}

impl Scene {
    fn new() -> Self {
        Self::with(|_| {}, |_| {})
    }

    fn with(turns: impl FnOnce(&mut FakeTurns), log: impl FnOnce(&mut FakeLog)) -> Self {
        let diary = Diary::default();
        let mut fake_turns = FakeTurns::new(&diary);
        turns(&mut fake_turns);
        let mut fake_log = FakeLog::new(&diary);
        fake_log.work = Some(Arc::clone(&fake_turns.work));
        log(&mut fake_log);
        let turns = Arc::new(fake_turns);
        let context = ResponseContext {
            key: key(),
            store: turns.clone(),
            ids: Arc::new(CountingIds::default()),
            clock: Arc::new(FixedClock),
            work: Arc::clone(&turns.work),
            intro: None,
            recalled: Vec::new(),
            answer_teaches: true,
            turn_teaches: true,
            last_consolidated: 0,
            threshold: 20,
            counts_tokens: false,
            messages_before: 1,
        };
        Self {
            diary,
            turns,
            log: Arc::new(fake_log),
            context,
        }
    }

    fn publisher(&self) -> Publisher {
        Publisher::new(self.log.clone(), self.turns.clone(), key(), 64, 64)
    }

    async fn finalize(&self, raw_text: &str) -> Result<ProcessResult, ResponseError> {
        finalize(&self.context, result(raw_text), &mut self.publisher()).await
    }

    fn jobs(&self) -> Vec<JobKind> {
        let committed = self.turns.committed.lock().unwrap();
        committed
            .as_ref()
            .unwrap()
            .jobs
            .iter()
            .map(|j| j.kind)
            .collect()
    }
}

fn result(raw_text: &str) -> InferenceResult {
    InferenceResult {
        raw_text: raw_text.to_owned(),
        finish_reason: FinishReason::Stop,
        usage: Usage::default(),
        total_tool_calls: 0,
        signals: ReviewSignals::default(),
    }
}

#[tokio::test]
async fn the_answer_is_saved_with_its_derived_work_before_anything_is_published() {
    let scene = Scene::new();
    let result = scene.finalize("four").await.unwrap();
    assert!(result.outbound_sent);
    assert_eq!(
        scene.diary.entries(),
        [
            "commit with jobs [index]",
            "workers are awake",
            "publish done 2: four"
        ]
    );
}

#[tokio::test]
async fn derived_work_begins_only_after_the_answer_is_saved() {
    let scene = Scene::new();
    scene.finalize("four").await.unwrap();
    assert!(!scene.diary.entries().iter().any(|e| e.contains("woken")));
    tokio::time::timeout(std::time::Duration::ZERO, scene.turns.work.notified())
        .await
        .expect("and then the workers are woken");
}

#[tokio::test]
async fn what_is_saved_is_clean_and_begins_with_the_intro() {
    let mut scene = Scene::new();
    scene.context.intro = Some("I am Tidemark.".to_owned());
    scene.finalize("<think>hm</think>four").await.unwrap();
    let committed = scene.turns.committed.lock().unwrap().clone().unwrap();
    assert_eq!(committed.answer.content, "I am Tidemark.\n\nfour");
}

#[tokio::test]
async fn an_answer_of_reasoning_alone_is_never_saved_even_with_an_intro() {
    let mut scene = Scene::new();
    scene.context.intro = Some("I am Tidemark.".to_owned());
    let error = scene.finalize("<think>hm").await.unwrap_err();
    assert!(matches!(error, ResponseError::EmptyAnswer));
    assert!(scene.diary.entries().is_empty());
}

#[tokio::test]
async fn the_terminal_event_is_rendered_from_the_stored_row() {
    let scene = Scene::with(|t| t.stored_text = Some("as stored".to_owned()), |_| {});
    scene.finalize("four").await.unwrap();
    let events = scene.log.events.lock().unwrap();
    let TurnEvent::Done(end) = &events[0].event else {
        panic!("not the end: {events:?}");
    };
    assert_eq!(end.text, "as stored");
}

#[tokio::test]
async fn nothing_is_published_when_the_answer_could_not_be_saved() {
    for fate in [CommitFate::Broken, CommitFate::Fenced] {
        let scene = Scene::new();
        scene.turns.fates.lock().unwrap().push_back(fate);
        scene.finalize("four").await.unwrap_err();
        assert!(scene.log.events.lock().unwrap().is_empty(), "{fate:?}");
        let woken = tokio::time::timeout(std::time::Duration::ZERO, scene.turns.work.notified());
        assert!(
            woken.await.is_err(),
            "no derived work begins either: {fate:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_commit_whose_outcome_is_unknown_is_read_again_and_not_repeated() {
    let scene = Scene::new();
    scene
        .turns
        .fates
        .lock()
        .unwrap()
        .push_back(CommitFate::DoneUntold);
    scene.finalize("four").await.unwrap();
    assert_eq!(
        scene.diary.entries(),
        [
            "commit with jobs [index]",
            "read the turn",
            "workers are awake",
            "publish done 2: four"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_for_a_moment_costs_no_answer() {
    let scene = Scene::new();
    scene
        .turns
        .fates
        .lock()
        .unwrap()
        .extend([CommitFate::Unavailable, CommitFate::Unavailable]);
    scene.finalize("four").await.unwrap();
    let entries = scene.diary.entries();
    assert_eq!(
        entries.iter().filter(|e| e.starts_with("commit")).count(),
        3
    );
    assert_eq!(
        entries.iter().filter(|e| e.starts_with("publish")).count(),
        1
    );
    assert_eq!(entries.last().unwrap(), "publish done 2: four");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_stays_away_ends_without_a_terminal_event() {
    let scene = Scene::new();
    scene
        .turns
        .fates
        .lock()
        .unwrap()
        .extend([CommitFate::Unavailable; 9]);
    let error = scene.finalize("four").await.unwrap_err();
    assert!(matches!(
        error,
        ResponseError::Write(TurnWriteError::Store(_))
    ));
    assert!(scene.log.events.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_log_that_is_down_costs_the_event_and_not_the_answer() {
    let scene = Scene::with(|_| {}, |log| log.down = true);
    let result = scene.finalize("four").await.unwrap();
    assert!(!result.outbound_sent);
    assert_eq!(result.turn.text.as_deref(), Some("four"));
}

#[tokio::test]
async fn a_session_is_consolidated_when_the_answer_makes_it_due() {
    let mut scene = Scene::new();
    scene.context.messages_before = 18;
    scene.finalize("four").await.unwrap();
    assert_eq!(scene.jobs(), [JobKind::Index]);
    scene.context.messages_before = 19;
    scene.finalize("four").await.unwrap();
    assert_eq!(scene.jobs(), [JobKind::Index, JobKind::Consolidate]);
}

#[tokio::test]
async fn a_turn_of_many_tool_calls_is_reviewed_and_one_without_tools_is_not() {
    let scene = Scene::new();
    let review = |total_tool_calls| InferenceResult {
        total_tool_calls,
        signals: ReviewSignals {
            review_memory: true,
        },
        ..result("four")
    };
    finalize(&scene.context, review(10), &mut scene.publisher())
        .await
        .unwrap();
    assert_eq!(scene.jobs(), [JobKind::Index, JobKind::ReviewMemory]);
    finalize(&scene.context, review(0), &mut scene.publisher())
        .await
        .unwrap();
    assert_eq!(scene.jobs(), [JobKind::Index]);
}

#[tokio::test]
async fn nothing_is_learned_from_a_temporary_chat_but_use_is_counted() {
    let mut scene = Scene::new();
    scene.context.turn_teaches = false;
    scene.context.messages_before = 100;
    scene.context.recalled = vec![RecalledMemory {
        id: MemoryId(Uuid::nil()),
        scope: Scope::ProjectContext,
        kind: Kind::Fact,
        content: "the budget is 400k".to_owned(),
        speaker: None,
        trust: None,
        since: None,
        score: 0.5,
        via: Via::Relevance,
    }];
    scene.finalize("four").await.unwrap();
    assert_eq!(scene.jobs(), [JobKind::CountUse]);
    let committed = scene.turns.committed.lock().unwrap().clone().unwrap();
    assert!(!committed.answer.learnable);
}
