//! The model that is there when no other is configured: it tells what was recalled, and how to get a better one.

use async_trait::async_trait;
use futures::StreamExt;
use tidemark_application::ports::model::{
    ChatModel, ModelError, ModelEvent, ModelRequest, ModelStream,
};
use tidemark_domain::event::{RecalledMemory, Via};
use tidemark_domain::memory::prompt::Language;
use tidemark_domain::turn::FinishReason;
use tidemark_domain::window::{EstimateCounter, TokenCounter};

use super::tokens::estimated_usage;

/// A memory is shown up to this many characters.
const SHOWN: usize = 300;

/// A piece of the stream ends at the first break after this many characters, at the latest at twice as many.
const PIECE: usize = 32;

/// A deterministic model without a model.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfflineModel {
    counter: EstimateCounter,
}

struct Phrases {
    profile: &'static str,
    relevance: &'static str,
    nothing: &'static str,
    notice: &'static str,
}

const ENGLISH: Phrases = Phrases {
    profile: "What I know about how you like things:",
    relevance: "What I remember that may belong to this:",
    nothing: "I remember nothing that belongs to this.",
    notice: "No language model is configured, so I can only repeat what I remember. Set `TIDEMARK_MODEL__BASE_URL` and \
             `TIDEMARK_MODEL__NAME` to connect one.",
};

const CHINESE: Phrases = Phrases {
    profile: "我记得你的偏好：",
    relevance: "我记得的相关内容：",
    nothing: "关于这个话题，我没有任何记忆。",
    notice: "目前没有配置语言模型，所以我只能复述我记得的内容。设置 `TIDEMARK_MODEL__BASE_URL` 和 `TIDEMARK_MODEL__NAME` 即可接入模型。",
};

fn phrases(language: Language) -> &'static Phrases {
    match language {
        Language::English => &ENGLISH,
        Language::Chinese => &CHINESE,
    }
}

/// The whole answer.
fn compose(recalled: &[RecalledMemory], language: Language) -> String {
    let phrases = phrases(language);
    let mut parts = Vec::new();
    for (via, heading) in [
        (Via::Profile, phrases.profile),
        (Via::Relevance, phrases.relevance),
    ] {
        let lines: Vec<String> = recalled
            .iter()
            .filter(|memory| memory.via == via)
            .map(|memory| format!("- {}", one_line(&memory.said())))
            .collect();
        if !lines.is_empty() {
            parts.push(format!("{heading}\n\n{}", lines.join("\n")));
        }
    }
    if parts.is_empty() {
        parts.push(phrases.nothing.to_owned());
    }
    parts.push(phrases.notice.to_owned());
    parts.join("\n\n")
}

/// A memory on one line of a list. Angle brackets are replaced, lest a remembered tag be taken for the model's reasoning.
fn one_line(content: &str) -> String {
    let words: Vec<&str> = content.split_whitespace().collect();
    let line = words.join(" ").replace('<', "‹").replace('>', "›");
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Cuts a text into groups of words; together they are the text.
fn pieces(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut piece = String::new();
    let mut length = 0;
    for c in text.chars() {
        piece.push(c);
        length += 1;
        let may_break = c.is_whitespace() || "，。：；、！？".contains(c);
        if (length >= PIECE && may_break) || length >= 2 * PIECE {
            out.push(std::mem::take(&mut piece));
            length = 0;
        }
    }
    if !piece.is_empty() {
        out.push(piece);
    }
    out
}

#[async_trait]
impl ChatModel for OfflineModel {
    fn name(&self) -> &'static str {
        "offline"
    }

    fn teaches(&self) -> bool {
        false
    }

    fn counter(&self) -> &dyn TokenCounter {
        &self.counter
    }

    async fn answer(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let text = compose(&request.recalled, request.language);
        let end = ModelEvent::Finished {
            reason: FinishReason::Stop,
            usage: Some(estimated_usage(&self.counter, &request, &text)),
        };
        let events = pieces(&text)
            .into_iter()
            .map(ModelEvent::Text)
            .chain([end])
            .map(Ok);
        Ok(futures::stream::iter(events).boxed())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::model::testing::asked;
    use tidemark_domain::ids::MemoryId;
    use tidemark_domain::memory::{Kind, Scope};
    use uuid::Uuid;

    fn memory(content: &str, via: Via) -> RecalledMemory {
        RecalledMemory {
            id: MemoryId(Uuid::nil()),
            scope: Scope::UserProfile,
            kind: Kind::Preference,
            content: content.to_owned(),
            speaker: None,
            trust: None,
            since: None,
            score: 1.0,
            via,
        }
    }

    async fn answer(recalled: Vec<RecalledMemory>, language: Language) -> Vec<ModelEvent> {
        let request = ModelRequest {
            recalled,
            language,
            format: None,
            temperature: None,
            ..asked("how did sales go?")
        };
        let stream = OfflineModel::default().answer(request).await.unwrap();
        stream.map(Result::unwrap).collect().await
    }

    fn text(events: &[ModelEvent]) -> String {
        events
            .iter()
            .filter_map(|event| match event {
                ModelEvent::Text(text) => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }

    #[tokio::test]
    async fn it_lists_preferences_apart_from_what_fits_the_question_and_says_how_to_get_a_model() {
        let recalled = vec![
            memory("The budget is 400k", Via::Relevance),
            memory("I prefer answers as tables", Via::Profile),
        ];
        let events = answer(recalled, Language::English).await;
        assert_eq!(
            text(&events),
            "What I know about how you like things:\n\n- I prefer answers as tables\n\n\
             What I remember that may belong to this:\n\n- The budget is 400k\n\n\
             No language model is configured, so I can only repeat what I remember. Set `TIDEMARK_MODEL__BASE_URL` and \
             `TIDEMARK_MODEL__NAME` to connect one."
        );
        assert!(events.len() > 4, "told in several pieces: {events:?}");
        let Some(ModelEvent::Finished {
            reason: FinishReason::Stop,
            usage: Some(usage),
        }) = events.last()
        else {
            panic!("{events:?}")
        };
        assert!(usage.estimated && usage.completion_tokens > 20);
    }

    #[tokio::test]
    async fn it_answers_in_chinese_and_still_names_both_settings() {
        let recalled = vec![memory("我喜欢用表格回答", Via::Profile)];
        let told = text(&answer(recalled, Language::Chinese).await);
        assert!(
            told.starts_with("我记得你的偏好：\n\n- 我喜欢用表格回答\n\n目前没有配置语言模型"),
            "{told}"
        );
        assert!(told.contains("TIDEMARK_MODEL__BASE_URL") && told.contains("TIDEMARK_MODEL__NAME"));
    }

    #[tokio::test]
    async fn it_says_when_nothing_was_recalled() {
        assert!(text(&answer(vec![], Language::English).await).starts_with("I remember nothing"));
        assert!(
            text(&answer(vec![], Language::Chinese).await)
                .starts_with("关于这个话题，我没有任何记忆")
        );
    }

    #[tokio::test]
    async fn the_same_question_has_the_same_answer() {
        let recalled = vec![memory("a", Via::Profile)];
        assert_eq!(
            answer(recalled.clone(), Language::English).await,
            answer(recalled, Language::English).await
        );
    }

    #[test]
    fn a_memory_is_one_line_without_tags_and_of_bounded_length() {
        assert_eq!(one_line("a\n\n  b <think> c"), "a b ‹think› c");
        assert_eq!(one_line(&"你".repeat(5_000)).chars().count(), SHOWN + 1);
    }

    #[test]
    fn the_pieces_are_the_text() {
        for text in [
            compose(&[], Language::English),
            compose(&[], Language::Chinese),
            "x".repeat(1_000),
            String::new(),
        ] {
            assert_eq!(pieces(&text).concat(), text);
        }
    }

    #[test]
    fn its_own_echo_is_not_learned() {
        assert!(!OfflineModel::default().teaches());
    }
}
