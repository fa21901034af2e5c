#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tidemark_domain::turn::FinishReason;
use tidemark_domain::window::EstimateCounter;
use tokio::time::advance;

use super::*;
use crate::model::testing::asked;

/// What the scripted model does with a request.
enum Act {
    Answer,
    Fail(ModelError),
    /// Tells one word, then this.
    FailLater(ModelError),
    /// Tells one word and never ends.
    Hang,
}

#[derive(Default)]
struct Scripted {
    acts: Mutex<VecDeque<Act>>,
    asked: AtomicUsize,
}

#[async_trait]
impl ChatModel for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn teaches(&self) -> bool {
        true
    }

    fn counter(&self) -> &dyn TokenCounter {
        &EstimateCounter
    }

    async fn answer(&self, _: ModelRequest) -> Result<ModelStream, ModelError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let act = self.acts.lock().unwrap().pop_front().unwrap_or(Act::Answer);
        let word = Ok(ModelEvent::Text("word".into()));
        let end = Ok(ModelEvent::Finished {
            reason: FinishReason::Stop,
            usage: None,
        });
        Ok(match act {
            Act::Fail(error) => return Err(error),
            Act::Answer => futures::stream::iter([word, end]).boxed(),
            Act::FailLater(error) => futures::stream::iter([word, Err(error)]).boxed(),
            Act::Hang => futures::stream::iter([word])
                .chain(futures::stream::pending())
                .boxed(),
        })
    }
}

const OPTIONS: GatewayOptions = GatewayOptions {
    max_concurrent: 2,
    queue_wait: Duration::from_secs(30),
    failures_to_open: 3,
    open_for: Duration::from_secs(15),
};

fn gateway(acts: impl IntoIterator<Item = Act>) -> (Arc<Scripted>, Arc<Gateway>) {
    let model = Arc::new(Scripted::default());
    model.acts.lock().unwrap().extend(acts);
    let gateway = Gateway::new(Arc::clone(&model) as Arc<dyn ChatModel>, OPTIONS);
    (model, Arc::new(gateway))
}

fn down() -> ModelError {
    ModelError::Unavailable("status 503".into())
}

fn silent() -> ModelError {
    ModelError::Silent(Duration::from_mins(1))
}

/// The whole answer, or its error.
async fn ask(gateway: &Gateway) -> Result<usize, ModelError> {
    let mut answer = gateway.answer(asked("hi")).await?;
    let mut events = 0;
    while let Some(event) = answer.next().await {
        event?;
        events += 1;
    }
    Ok(events)
}

fn times_asked(model: &Scripted) -> usize {
    model.asked.load(Ordering::SeqCst)
}

#[tokio::test(start_paused = true)]
async fn after_failures_in_a_row_nothing_is_asked_until_the_pause_is_over() {
    let (model, gateway) = gateway([
        Act::Fail(down()),
        Act::FailLater(silent()),
        Act::Fail(silent()),
    ]);
    for _ in 0..3 {
        ask(&gateway).await.unwrap_err();
    }
    assert_eq!(times_asked(&model), 3);
    advance(Duration::from_millis(14_999)).await;
    assert_eq!(ask(&gateway).await, Err(paused()));
    assert_eq!(times_asked(&model), 3);
    advance(Duration::from_millis(1)).await;
    assert_eq!(ask(&gateway).await, Ok(2));
    assert_eq!(ask(&gateway).await, Ok(2));
}

#[tokio::test(start_paused = true)]
async fn a_success_or_a_refusal_between_failures_keeps_the_circuit_closed() {
    let refused = || Act::Fail(ModelError::Refused { status: 400 });
    let fail = || Act::Fail(down());
    let (model, gateway) = gateway([
        fail(),
        fail(),
        Act::Answer,
        fail(),
        fail(),
        refused(),
        fail(),
        fail(),
        Act::FailLater(ModelError::Truncated),
        Act::Answer,
    ]);
    for _ in 0..10 {
        let _ = ask(&gateway).await;
    }
    assert_eq!(times_asked(&model), 10);
}

#[tokio::test(start_paused = true)]
async fn half_open_means_one_trial_and_its_failure_is_another_pause() {
    let (model, gateway) = gateway([
        Act::Fail(down()),
        Act::Fail(down()),
        Act::Fail(down()),
        Act::FailLater(down()),
    ]);
    for _ in 0..3 {
        ask(&gateway).await.unwrap_err();
    }
    advance(OPTIONS.open_for).await;
    let mut trial = gateway.answer(asked("hi")).await.unwrap();
    assert_eq!(ask(&gateway).await, Err(paused()), "while the trial runs");
    trial.next().await.unwrap().unwrap();
    trial.next().await.unwrap().unwrap_err();
    assert_eq!(ask(&gateway).await, Err(paused()), "after it failed");
    advance(OPTIONS.open_for).await;
    assert_eq!(ask(&gateway).await, Ok(2));
    assert_eq!(times_asked(&model), 5);
}

#[tokio::test(start_paused = true)]
async fn a_trial_that_is_given_up_does_not_keep_the_circuit_shut() {
    let (_, gateway) = gateway([
        Act::Fail(down()),
        Act::Fail(down()),
        Act::Fail(down()),
        Act::Hang,
    ]);
    for _ in 0..3 {
        ask(&gateway).await.unwrap_err();
    }
    advance(OPTIONS.open_for).await;
    let trial = gateway.answer(asked("hi")).await.unwrap();
    drop(trial);
    assert_eq!(ask(&gateway).await, Ok(2));
}

#[tokio::test(start_paused = true)]
async fn an_answer_from_before_the_circuit_opened_does_not_close_it() {
    let (_, gateway) = gateway([
        Act::Answer,
        Act::Fail(down()),
        Act::Fail(down()),
        Act::Fail(down()),
    ]);
    let early = gateway.answer(asked("hi")).await.unwrap();
    for _ in 0..3 {
        ask(&gateway).await.unwrap_err();
    }
    assert_eq!(early.count().await, 2);
    assert_eq!(ask(&gateway).await, Err(paused()));
}

#[tokio::test(start_paused = true)]
async fn a_place_is_held_until_the_answer_ends_and_given_to_who_waits() {
    let (model, gateway) = gateway([Act::Hang, Act::Hang]);
    let first = gateway.answer(asked("hi")).await.unwrap();
    let _second = gateway.answer(asked("hi")).await.unwrap();
    let waiting = tokio::spawn({
        let gateway = Arc::clone(&gateway);
        async move { ask(&gateway).await }
    });
    advance(Duration::from_secs(29)).await;
    assert_eq!(times_asked(&model), 2);
    drop(first);
    assert_eq!(waiting.await.unwrap(), Ok(2));
}

#[tokio::test(start_paused = true)]
async fn who_waits_too_long_for_a_place_is_refused_for_load() {
    let (model, gateway) = gateway([Act::Hang, Act::Hang]);
    let _first = gateway.answer(asked("hi")).await.unwrap();
    let _second = gateway.answer(asked("hi")).await.unwrap();
    let began = Instant::now();
    assert_eq!(
        ask(&gateway).await,
        Err(ModelError::RateLimited { retry_after: None })
    );
    assert_eq!(began.elapsed(), OPTIONS.queue_wait);
    assert_eq!(times_asked(&model), 2);
}
