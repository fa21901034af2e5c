//! The inference stage (A1, A4, A7): what is stored before what, and what a client is shown.

use std::sync::Arc;

use tidemark_domain::memory::prompt::Language;
use tidemark_domain::tool::ToolCall;
use tidemark_domain::turn::FinishReason;

use super::fakes::{
    CountingIds, Diary, EchoTool, FakeLog, FakeModel, FakeTurns, FixedClock, key, tool_context,
};
use crate::chat::inference::{Inference, InferenceError, InferenceResult, Progress};
use crate::chat::publisher::Publisher;
use crate::chat::stop::{self, StopReason};
use crate::ports::ids::Ids;
use crate::ports::model::{ChatModel, ModelError, ModelEvent, ModelRequest};
use crate::settings::TurnSettings;
use crate::tools::Toolbox;

type Answer = Vec<Result<ModelEvent, ModelError>>;

fn says(pieces: &[&str]) -> Answer {
    let mut events: Answer = pieces
        .iter()
        .map(|p| Ok(ModelEvent::Text((*p).to_owned())))
        .collect();
    events.push(Ok(finished(FinishReason::Stop)));
    events
}

fn calls(text: &str, ids: &[&str]) -> Answer {
    let mut events: Answer = Vec::new();
    if !text.is_empty() {
        events.push(Ok(ModelEvent::Text(text.to_owned())));
    }
    for id in ids {
        events.push(Ok(ModelEvent::ToolCall(ToolCall {
            id: (*id).to_owned(),
            name: "echo".to_owned(),
            arguments: "{}".to_owned(),
        })));
    }
    events.push(Ok(finished(FinishReason::ToolCalls)));
    events
}

fn finished(reason: FinishReason) -> ModelEvent {
    ModelEvent::Finished {
        reason,
        usage: None,
    }
}

struct Played {
    diary: Vec<String>,
    shown: String,
    progress: Progress,
    requests: Vec<ModelRequest>,
    outcome: Result<InferenceResult, InferenceError>,
}

async fn play(answers: Vec<Answer>, intro: Option<&str>, stop_first: bool) -> Played {
    let diary = Diary::default();
    let model = FakeModel::new(&diary, answers);
    let turns = Arc::new(FakeTurns::new(&diary));
    let log = Arc::new(FakeLog::new(&diary));
    let ids: Arc<dyn Ids> = Arc::new(CountingIds::default());
    let tools = Toolbox::new(vec![Arc::new(EchoTool(diary.clone()))]);
    let settings = TurnSettings {
        max_rounds: 3,
        ..TurnSettings::default()
    };
    let stage = Inference {
        key: key(),
        model: &model as &dyn ChatModel,
        turns: turns.as_ref(),
        ids: &ids,
        clock: &FixedClock,
        tools: &tools,
        tool_context: tool_context(),
        settings: &settings,
        intro,
    };
    let (stopper, mut heard) = stop::channel();
    if stop_first {
        stopper.stop(StopReason::Cancelled);
    }
    let mut publisher = Publisher::new(log.clone(), turns.clone(), key(), 64, 64);
    let mut progress = Progress::default();
    let request = ModelRequest {
        messages: Vec::new(),
        tools: tools.specs(&tool_context()),
        max_output_tokens: 100,
        max_input_tokens: 400,
        recalled: Vec::new(),
        language: Language::English,
        format: None,
        temperature: None,
    };
    let outcome = stage
        .run(request, &mut publisher, &mut progress, &mut heard)
        .await;
    let requests = model.requests.lock().unwrap().clone();
    Played {
        diary: diary.entries(),
        shown: log.shown(),
        progress,
        requests,
        outcome,
    }
}

#[tokio::test]
async fn each_step_of_a_tool_round_is_stored_before_the_next_begins() {
    let played = play(vec![calls("", &["a", "b"]), says(&["done"])], None, false).await;
    played.outcome.unwrap();
    let steps: Vec<_> = played
        .diary
        .iter()
        .filter(|e| !e.starts_with("publish"))
        .collect();
    assert_eq!(
        steps,
        [
            "ask the model",
            "store 2 calls",
            "call the tool",
            "store result of a",
            "call the tool",
            "store result of b",
            "ask the model",
        ]
    );
}

#[tokio::test]
async fn the_next_question_holds_the_calls_and_their_results_in_order() {
    let played = play(vec![calls("", &["a", "b"]), says(&["done"])], None, false).await;
    let asked = &played.requests[1].messages;
    assert_eq!(asked.len(), 3);
    assert_eq!(asked[0].tool_calls.len(), 2);
    assert_eq!(asked[1].tool_call_id.as_deref(), Some("a"));
    assert_eq!(asked[2].tool_call_id.as_deref(), Some("b"));
}

#[tokio::test]
async fn what_a_client_has_shown_in_the_end_is_the_text() {
    let answers = vec![
        calls("let me look", &["a"]),
        says(&["<thi", "nk>hm</think>", "it is ", "four"]),
    ];
    let played = play(answers, Some("Hello."), false).await;
    let result = played.outcome.unwrap();
    let text = crate::chat::response::merge_intro(
        Some("Hello."),
        tidemark_domain::reasoning::clean(&result.raw_text),
    );
    assert_eq!(played.shown, text);
    assert_eq!(text, "Hello.\n\nit is four");
    assert!(played.diary.contains(&"publish reset".to_owned()));
    assert!(played.diary.contains(&"reasoning hm".to_owned()));
}

#[tokio::test]
async fn reasoning_that_the_prompt_opened_is_taken_back_when_the_answer_comes() {
    let answers = vec![says(&["let me see", "\n</think>\n\n", "it is ", "four"])];
    let played = play(answers, Some("Hello."), false).await;
    let result = played.outcome.unwrap();
    let text = crate::chat::response::merge_intro(
        Some("Hello."),
        tidemark_domain::reasoning::clean(&result.raw_text),
    );
    assert_eq!(played.shown, text);
    assert_eq!(played.progress.shown, text);
    assert_eq!(text, "Hello.\n\nit is four");
    assert!(played.diary.contains(&"publish reset".to_owned()));
}

#[tokio::test]
async fn an_answer_that_is_cut_off_is_no_answer_but_what_was_shown_is_known() {
    let mut cut = says(&["it is four, o"]);
    cut.pop();
    let played = play(vec![cut], None, false).await;
    assert!(matches!(
        played.outcome,
        Err(InferenceError::Model(ModelError::Truncated))
    ));
    assert_eq!(played.progress.shown, "it is four, o");
    assert_eq!(played.shown, "it is four, o");
}

#[tokio::test]
async fn an_answer_that_is_cut_off_costs_what_was_asked_and_said() {
    let mut cut = says(&["it is four, o"]);
    cut.pop();
    let cost = async |answers| play(answers, None, false).await.progress.usage;
    let whole = cost(vec![says(&["it is four, o"])]).await;
    assert!(whole.completion_tokens > 0);
    assert_eq!(cost(vec![cut.clone()]).await, whole);
    let both = cost(vec![calls("", &["a"]), cut]).await;
    assert!(both.prompt_tokens > whole.prompt_tokens);
    assert_eq!(both.completion_tokens, whole.completion_tokens);
}

#[tokio::test]
async fn after_the_last_round_the_model_is_asked_without_tools() {
    let answers = vec![
        calls("", &["a"]),
        calls("", &["b"]),
        calls("", &["c"]),
        says(&["enough"]),
    ];
    let played = play(answers, None, false).await;
    assert_eq!(played.outcome.unwrap().total_tool_calls, 3);
    assert!(!played.requests[2].tools.is_empty());
    assert!(played.requests[3].tools.is_empty());
}

#[tokio::test]
async fn a_model_that_never_stops_calling_tools_fails() {
    let answers = ["a", "b", "c", "d"].map(|id| calls("", &[id])).to_vec();
    let played = play(answers, None, false).await;
    assert!(matches!(played.outcome, Err(InferenceError::TooManyRounds)));
    assert_eq!(
        played
            .diary
            .iter()
            .filter(|e| *e == "store 1 calls")
            .count(),
        3,
        "the last calls are not stored, since nobody would answer them"
    );
}

#[tokio::test]
async fn arguments_that_are_no_object_are_answered_and_not_kept() {
    for bad in ["{\"query\": \"bud", "[1]", "", "null"] {
        let call = ToolCall {
            id: "a".to_owned(),
            name: "echo".to_owned(),
            arguments: bad.to_owned(),
        };
        let answer = vec![
            Ok(ModelEvent::ToolCall(call)),
            Ok(finished(FinishReason::ToolCalls)),
        ];
        let played = play(vec![answer, says(&["done"])], None, false).await;
        played.outcome.unwrap();
        let asked = &played.requests[1].messages;
        assert_eq!(asked[0].tool_calls[0].arguments, "{}");
        assert!(asked[1].content.starts_with("error: "), "{bad}");
        assert!(!played.diary.contains(&"call the tool".to_owned()));
    }
}

#[tokio::test]
async fn a_character_that_no_store_keeps_is_neither_shown_nor_stored() {
    let played = play(vec![says(&["four\0 five"])], None, false).await;
    assert_eq!(played.outcome.unwrap().raw_text, "four five");
    assert_eq!(played.shown, "four five");
}

#[tokio::test]
async fn a_stopped_turn_asks_nobody() {
    let played = play(vec![says(&["x"])], None, true).await;
    assert!(matches!(
        played.outcome,
        Err(InferenceError::Stopped(StopReason::Cancelled))
    ));
    assert!(played.diary.is_empty());
}
