//! A turn whose task dies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use tidemark_application::ports::model::{ChatModel, ModelError, ModelRequest, ModelStream};
use tidemark_domain::turn::TurnStatus;
use tidemark_domain::window::TokenCounter;
use tidemark_infrastructure::model::offline::OfflineModel;

use super::world::World;

/// Dies at the first question, then answers.
struct Dying {
    died: AtomicBool,
    model: OfflineModel,
}

#[async_trait]
impl ChatModel for Dying {
    fn name(&self) -> &'static str {
        "dying"
    }

    fn teaches(&self) -> bool {
        false
    }

    fn counter(&self) -> &dyn TokenCounter {
        self.model.counter()
    }

    async fn answer(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        assert!(self.died.swap(true, Ordering::SeqCst), "a defect");
        self.model.answer(request).await
    }
}

#[tokio::test]
async fn a_turn_that_dies_of_a_defect_ends_and_its_session_goes_on() {
    let world = World::with(Arc::new(Dying {
        died: AtomicBool::new(false),
        model: OfflineModel::default(),
    }))
    .await;
    let dead = world.say(None, "What is the budget?").await;
    assert_eq!(dead.status, TurnStatus::Interrupted);
    assert!(dead.terminal_seq.unwrap() > dead.events_reserved + 1);
    let next = world.say(Some(dead.session_id), "And now?").await;
    assert_eq!(next.status, TurnStatus::Completed);
}
