#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::collections::VecDeque;
use std::sync::Mutex;

use async_trait::async_trait;
use serde_json::{Value, json};
use tidemark_domain::ids::{MessageId, SessionId};
use tidemark_domain::turn::FinishReason;
use tidemark_domain::window::{EstimateCounter, TokenCounter};
use uuid::Uuid;

use super::*;
use crate::ports::model::ModelStream;

/// What the model says next: a text, silence for ever, or an error.
enum Reply {
    Text(String),
    Silence,
    Error(ModelError),
}

#[derive(Default)]
struct Scripted {
    replies: Mutex<VecDeque<Reply>>,
    asked: Mutex<Vec<ModelRequest>>,
    forgetful: bool,
}

#[async_trait]
impl ChatModel for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn teaches(&self) -> bool {
        !self.forgetful
    }

    fn counter(&self) -> &dyn TokenCounter {
        &EstimateCounter
    }

    async fn answer(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        self.asked.lock().unwrap().push(request);
        let reply = self.replies.lock().unwrap().pop_front();
        match reply.expect("nobody is asked so often") {
            Reply::Text(text) => {
                let (head, tail) = text.split_at(text.floor_char_boundary(text.len() / 2));
                let events = [
                    ModelEvent::Text(head.to_owned()),
                    ModelEvent::Text(tail.to_owned()),
                    ModelEvent::Finished {
                        reason: FinishReason::Stop,
                        usage: None,
                    },
                ];
                Ok(futures::stream::iter(events.map(Ok)).boxed())
            }
            Reply::Silence => Ok(futures::stream::pending().boxed()),
            Reply::Error(error) => Err(error),
        }
    }
}

fn model(replies: impl IntoIterator<Item = Reply>) -> Arc<Scripted> {
    Arc::new(Scripted {
        replies: Mutex::new(replies.into_iter().collect()),
        ..Scripted::default()
    })
}

fn message(seq: i64, role: Role, content: &str) -> Message {
    Message {
        id: MessageId(Uuid::from_u128(seq as u128)),
        session_id: SessionId(Uuid::nil()),
        turn_id: None,
        seq,
        role,
        content: content.to_owned(),
        name: None,
        tool_calls: Vec::new(),
        tool_call_id: None,
        partial: false,
        learnable: true,
        created_at: now(),
    }
}

fn now() -> Timestamp {
    Timestamp::from_timestamp_micros(1_700_000_000_000_000).unwrap()
}

fn said_by_everybody() -> Vec<Message> {
    vec![
        message(
            1,
            Role::User,
            "The budget is 300k and the office moves to Oslo.",
        ),
        message(2, Role::Assistant, "Noted."),
    ]
}

fn fact(content: &str, evidence: i64) -> Value {
    json!({ "content": content, "kind": "fact", "scope": "project_context", "importance": 3, "evidence": [evidence] })
}

fn facts(all: &[Value]) -> Reply {
    Reply::Text(json!({ "facts": all }).to_string())
}

async fn run(model: &Arc<Scripted>) -> Extraction {
    run_with(model, ExtractionSettings::default(), &said_by_everybody()).await
}

async fn run_with(
    model: &Arc<Scripted>,
    settings: ExtractionSettings,
    messages: &[Message],
) -> Extraction {
    let extractor = Extractor::by(Arc::clone(model) as Arc<dyn ChatModel>, settings).unwrap();
    let keys = ["budget".to_owned(), "name".to_owned()];
    extractor.extract(messages, &keys, now()).await
}

fn contents(extraction: &Extraction) -> Vec<&str> {
    extraction
        .facts
        .iter()
        .map(|f| f.content.as_str())
        .collect()
}

#[tokio::test]
async fn a_faultless_answer_takes_one_call() {
    let model = model([facts(&[fact("The budget is 300k", 1)])]);
    let extraction = run(&model).await;
    assert_eq!(contents(&extraction), ["The budget is 300k"]);
    assert_eq!(extraction.failure, None);
    let asked = model.asked.lock().unwrap();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].temperature, Some(0.0));
    let format = asked[0].format.as_ref().unwrap();
    assert_eq!(format.schema["required"], json!(["facts"]));
    let question = &asked[0].messages[1].content;
    assert!(
        question.starts_with("known keys: budget, name\nmessages:\n{"),
        "{question}"
    );
    assert!(asked[0].tools.is_empty());
}

#[tokio::test]
async fn a_fault_is_shown_to_the_model_once_and_what_held_holds() {
    let good = fact("The budget is 300k", 1);
    for (second, kept, failed) in [
        (
            facts(&[fact("The office moves to Oslo", 1)]),
            vec!["The office moves to Oslo", "The budget is 300k"],
            false,
        ),
        (
            facts(std::slice::from_ref(&good)),
            vec!["The budget is 300k"],
            false,
        ),
        (facts(&[]), vec!["The budget is 300k"], false),
        (
            Reply::Text("sorry".to_owned()),
            vec!["The budget is 300k"],
            true,
        ),
        (
            Reply::Error(ModelError::Truncated),
            vec!["The budget is 300k"],
            true,
        ),
    ] {
        let mut bad = fact("The office moves to Oslo", 1);
        bad["kind"] = "rumour".into();
        let model = model([facts(&[good.clone(), bad]), second]);
        let extraction = run(&model).await;
        assert_eq!(contents(&extraction), kept);
        assert_eq!(extraction.failure.is_some(), failed, "{kept:?}");
        let asked = model.asked.lock().unwrap();
        assert_eq!(asked.len(), 2);
        assert_eq!(asked[1].messages.len(), 4);
        assert_eq!(asked[1].messages[..2], asked[0].messages);
        let objection = &asked[1].messages[3].content;
        assert!(
            objection.contains("facts[1]: the field kind must be"),
            "{objection}"
        );
    }
}

#[tokio::test]
async fn what_was_made_up_is_left_out_and_leaves_nothing_to_be_asked_again() {
    let bad = fact("The budget is 900k", 1);
    let model = model([facts(std::slice::from_ref(&bad)), facts(&[bad])]);
    let extraction = run(&model).await;
    assert_eq!(extraction, Extraction::default());
}

#[tokio::test]
async fn a_model_that_cannot_be_reached_is_not_asked_to_mend_anything() {
    let gone = ModelError::Unavailable("no connection".to_owned());
    let model = model([Reply::Error(gone.clone())]);
    let extraction = run(&model).await;
    assert_eq!(extraction.failure, Some(ExtractionError::Model(gone)));
    assert!(extraction.facts.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_silent_model_is_waited_for_no_longer_than_is_set() {
    let model = model([Reply::Silence]);
    let extraction = run(&model).await;
    let limit = ExtractionSettings::default().timeout;
    assert_eq!(extraction.failure, Some(ExtractionError::TimedOut(limit)));
}

#[tokio::test]
async fn an_answer_without_end_is_not_read_to_its_end() {
    let model = model([Reply::Text("[".repeat(LONGEST_ANSWER * 3))]);
    assert_eq!(run(&model).await.failure, Some(ExtractionError::TooLong));
}

#[tokio::test]
async fn small_talk_is_not_worth_a_call() {
    let model = model([]);
    let small = [
        message(1, Role::User, "Thank you!"),
        message(2, Role::Assistant, "You are welcome, the budget is 300k."),
    ];
    let extraction = run_with(&model, ExtractionSettings::default(), &small).await;
    assert_eq!(extraction, Extraction::default());
}

#[tokio::test]
async fn no_call_takes_more_than_the_input_it_may_have() {
    let long: Vec<Message> = (1..=40)
        .map(|seq| {
            message(
                seq,
                Role::User,
                &format!("Note {seq}: {}", "预算是30万，会议在奥斯陆。".repeat(30)),
            )
        })
        .collect();
    for max_input_tokens in [4_000, 12_000] {
        let settings = ExtractionSettings {
            max_input_tokens,
            ..ExtractionSettings::default()
        };
        let wordy = "x".repeat(20_000);
        let model = model([Reply::Text(wordy.clone()), Reply::Text(wordy)]);
        let extractor =
            Extractor::by(Arc::clone(&model) as Arc<dyn ChatModel>, settings.clone()).unwrap();
        let reach = extractor.reach(&long, 40);
        assert!((1..40).contains(&reach), "{reach}");
        let batch = &long[..reach as usize];
        let many: Vec<String> = (0..5_000).map(|n| format!("key_number_{n}")).collect();
        extractor.extract(batch, &many, now()).await;
        let asked = model.asked.lock().unwrap();
        assert_eq!(asked.len(), 2);
        for request in asked.iter() {
            let tokens = request.tokens(&EstimateCounter);
            assert!(tokens <= max_input_tokens, "{tokens} of {max_input_tokens}");
        }
        assert!(
            asked[0].tokens(&EstimateCounter) > max_input_tokens / 3,
            "the room is used"
        );
    }
}

#[test]
fn a_model_that_must_not_teach_or_has_no_room_extracts_nothing() {
    let offline = Arc::new(Scripted {
        forgetful: true,
        ..Scripted::default()
    });
    assert!(Extractor::by(offline, ExtractionSettings::default()).is_none());
    let tiny = ExtractionSettings {
        max_input_tokens: 1_500,
        ..ExtractionSettings::default()
    };
    assert!(Extractor::by(model([]), tiny).is_none());
}

#[tokio::test]
async fn a_chinese_conversation_is_read_with_the_chinese_prompt() {
    let model = model([facts(&[])]);
    let said = [message(1, Role::User, "项目预算是30万，办公室搬到奥斯陆。")];
    run_with(&model, ExtractionSettings::default(), &said).await;
    let asked = model.asked.lock().unwrap();
    assert_eq!(
        asked[0].messages[0].content,
        ExtractionSettings::default().prompt_zh
    );
    assert_eq!(asked[0].language, Language::Chinese);
}
