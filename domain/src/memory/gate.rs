//! What is worth keeping (B6), by rules in place of a model.
//!
//! Nothing but greetings, acknowledgements and empty talk scores below [`KEEP_FROM`]. A question is kept: it tells what was asked, and recall
//! ranks it behind statements. Credentials are not a matter of importance: they are taken out of whatever is kept ([`redact`]).

use std::collections::HashSet;
use std::sync::LazyLock;

use super::analysis::{is_ideographic, normalise};
use super::rules;
use super::sentence::{is_question, sentences};
use crate::session::Role;

pub use super::redaction::{Redacted, redact};

/// The least importance that is kept (B6).
pub const KEEP_FROM: u8 = 3;

/// Words of greetings and acknowledgements; a sentence of these alone says nothing.
const SMALL_WORDS: &str = "hi hello hey hiya yo there good morning afternoon evening night day bye goodbye see you later soon thanks \
    thank thx ty cheers much very so a lot many ok okay okey k kk yes yeah yep yup ya sure no nope nah right alright fine great cool nice \
    awesome amazing perfect wonderful excellent lovely wow lol lmao hmm hm mm oh ah aha uh um er well got it understood gotcha makes sense \
    sounds welcome please indeed exactly absolutely definitely agreed i and the all that is again np problem worries everyone guys friend \
    course totally true correct certainly for your my help too love interesting bravo congrats congratulations";
/// Whole sentences of the same kind.
#[rustfmt::skip]
const SMALL_SENTENCES: &[&str] = &[
    "how are you", "how are you doing", "how are you today", "how are you doing today", "how's it going",
    "how is it going", "what's up", "how do you do", "nice to meet you", "pleased to meet you", "i'm fine", "i'm good",
    "i am fine thank you", "fine thanks and you", "you're welcome", "you are most welcome", "my pleasure",
    "happy to help", "glad to help", "glad i could help", "how can i help you", "how can i help",
    "how can i help you today", "how can i assist you today", "how may i help you",
    "let me know if you need anything else", "let me know if you have any questions",
    "is there anything else i can help you with", "have a nice day", "have a great day", "take care",
    "talk to you later", "i see", "are you there", "test", "testing", "just saying hi", "one moment",
    "one moment please", "just a moment",
];
/// Sentences that are about something and say nothing of it.
#[rustfmt::skip]
const EMPTY_SENTENCES: &[&str] = &[
    "i don't know", "i do not know", "not sure", "i'm not sure", "no idea", "never mind", "nevermind", "whatever",
    "let me think", "forget it", "let me see", "i'm bored", "that's funny", "that is funny", "me too", "same here",
    "go on", "continue", "anyway", "不知道", "随便", "算了", "再说吧", "没什么", "让我想想", "无聊", "好无聊", "继续",
    "我也是", "不清楚", "有意思", "真有趣",
];
/// Openings that may be followed by a name.
const GREETINGS: [&str; 9] = [
    "hi", "hello", "hey", "thanks", "bye", "goodbye", "welcome", "morning", "you",
];
/// Pieces of Chinese greetings and acknowledgements, longest first.
#[rustfmt::skip]
const CHINESE_SMALL: &[&str] = &[
    "好久不见", "很高兴认识你", "有什么可以帮您", "有什么可以帮你", "还有什么可以帮您", "还有什么可以帮你",
    "请问有什么可以帮您", "祝你有愉快的一天", "当然可以", "不用客气", "早上好", "上午好", "中午好", "下午好", "晚上好",
    "知道了", "明白了", "没问题", "不客气", "不用谢", "辛苦了", "太好了", "太棒了", "谢谢你", "谢谢您", "感谢你",
    "感谢您", "非常感谢", "在不在", "你好", "您好", "大家好", "早安", "晚安", "再见", "拜拜", "好的", "可以", "谢谢",
    "多谢", "感谢", "收到", "明白", "了解", "没事", "在吗", "是的", "对的", "没错", "真棒", "不错", "厉害", "加油",
    "当然", "嗯嗯", "哈喽", "嗨", "早", "好", "行", "嗯", "哦", "噢", "哈", "呵", "嘿", "对", "是", "ok", "okay", "hi",
    "hello", "了", "啊", "呀", "呢", "吧", "啦", "哟", "的", "嘛", "那", "非常", "太", "很", "你", "您",
];
/// What a rule about key configuration or an algorithm speaks of (B6: importance 5).
#[rustfmt::skip]
const CONFIGURATION: &[&str] = &[
    "configuration", "configured", "config", "algorithm", "environment variable", "endpoint", "port number", "配置",
    "算法", "端口", "环境变量", "参数设置",
];
/// What a business or architecture decision speaks of (B6: importance 4).
#[rustfmt::skip]
const ARCHITECTURE: &[&str] = &[
    "architecture", "deadline", "budget", "milestone", "requirement", "roadmap", "schema", "架构", "预算", "截止",
    "里程碑", "需求", "业务",
];

static SMALL: LazyLock<HashSet<String>> =
    LazyLock::new(|| SMALL_SENTENCES.iter().map(|s| normalise(s)).collect());
static EMPTY: LazyLock<HashSet<String>> =
    LazyLock::new(|| EMPTY_SENTENCES.iter().map(|s| normalise(s)).collect());
static WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| SMALL_WORDS.split_whitespace().collect());

/// How important a text is, 1–5 (B6): 1 a greeting or acknowledgement, 2 empty talk, 3 anything else, 4 a decision, a standing preference or
/// what bears on business or architecture, 5 key configuration or an algorithm. What the model says without being asked to remember it
/// is never above 3.
pub fn importance(text: &str, role: Role) -> u8 {
    let said = sentences(text);
    let least = said.iter().map(|s| smallness(s)).max().unwrap_or(1);
    if least < KEEP_FROM || role != Role::User {
        return least;
    }
    let stated = rules::statements(text).into_iter().map(|s| s.importance);
    let spoken_of = said.iter().filter(|s| !is_question(s)).map(|sentence| {
        let folded = super::analysis::fold(sentence);
        let names = |list: &[&str]| list.iter().any(|word| folded.contains(word));
        match () {
            () if names(CONFIGURATION) => 5,
            () if names(ARCHITECTURE) => 4,
            () => KEEP_FROM,
        }
    });
    stated.chain(spoken_of).max().unwrap_or(KEEP_FROM)
}

/// 1 or 2 for a sentence that says nothing, as a whole or in each of its parts, else 3.
fn smallness(sentence: &str) -> u8 {
    match part_smallness(sentence) {
        KEEP_FROM if sentence.contains([',', '，']) => sentence
            .split([',', '，'])
            .map(part_smallness)
            .max()
            .unwrap_or(KEEP_FROM),
        smallness => smallness,
    }
}

fn part_smallness(part: &str) -> u8 {
    let normal = normalise(part);
    if normal.is_empty() || SMALL.contains(&normal) {
        return 1;
    }
    if EMPTY.contains(&normal) {
        return 2;
    }
    let small = if normal.chars().any(is_ideographic) {
        is_chinese_small_talk(&normal.replace(' ', ""))
    } else {
        let words: Vec<&str> = normal.split(' ').collect();
        words.iter().all(|w| is_small_word(w)) || greets_by_name(&words, part)
    };
    if small { 1 } else { KEEP_FROM }
}

fn is_small_word(word: &str) -> bool {
    // "haha", "hehe" at any length
    let laughs = word.len() >= 4 && word.bytes().all(|b| matches!(b, b'h' | b'a' | b'e'));
    WORDS.contains(word) || laughs
}

/// "Hi Melanie", "Thank you, Bob": small words and one capitalised word at the end.
fn greets_by_name(words: &[&str], sentence: &str) -> bool {
    let Some((_, greeting)) = words.split_last() else {
        return false;
    };
    let name = sentence.split_whitespace().next_back().unwrap_or_default();
    name.chars().next().is_some_and(char::is_uppercase)
        && name
            .chars()
            .skip(1)
            .all(|c| !c.is_uppercase() && !c.is_numeric())
        && greeting.last().is_some_and(|w| GREETINGS.contains(w))
        && greeting.iter().all(|w| is_small_word(w))
}

fn is_chinese_small_talk(mut text: &str) -> bool {
    while !text.is_empty() {
        let Some(rest) = CHINESE_SMALL
            .iter()
            .find_map(|piece| text.strip_prefix(piece))
        else {
            return false;
        };
        text = rest;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_greetings_acknowledgements_and_empty_talk_are_not_kept() {
        for (text, expected) in [
            ("hi", 1),
            ("Hello there!", 1),
            ("Good morning, Melanie!", 1),
            ("Thanks Caroline", 1),
            ("ok", 1),
            ("Okay, thank you so much!", 1),
            ("Yes", 1),
            ("hahaha", 1),
            ("👍", 1),
            ("???", 1),
            ("", 1),
            ("How are you?", 1),
            ("You're welcome!", 1),
            ("Got it. Sounds good!", 1),
            ("Sure! How can I help you today?", 1),
            ("你好", 1),
            ("您好！", 1),
            ("好的，谢谢", 1),
            ("哈哈哈", 1),
            ("收到！", 1),
            ("嗯嗯", 1),
            ("好的好的", 1),
            ("明白了，辛苦了", 1),
            ("OK，没问题", 1),
            ("在吗？", 1),
            ("晚安啦", 1),
            ("I don't know.", 2),
            ("never mind", 2),
            ("Ok, whatever", 2),
            ("不知道", 2),
            ("算了", 2),
        ] {
            assert_eq!(importance(text, Role::User), expected, "{text}");
        }
    }

    #[test]
    fn everything_else_is_kept_by_what_it_speaks_of() {
        for (text, expected) in [
            ("I went hiking yesterday", 3),
            ("Hi, I adopted a dog", 3),
            ("42", 3),
            ("What is our budget?", 3),
            ("Hi OK2024", 3),
            ("Yes, in Paris", 3),
            ("今天去爬山了", 3),
            ("你好，我是小明", 3),
            ("项目预算是多少？", 3),
            ("不错的餐厅", 3),
            ("I prefer answers as tables", 4),
            ("We decided to use PostgreSQL", 4),
            ("我们决定用 Rust", 4),
            ("The architecture has four layers", 4),
            ("以后请用表格回答", 4),
            ("项目预算是30万", 4),
            ("The config sets port 8080", 5),
            ("服务端口是 8080", 5),
            ("The ranking algorithm is BM25", 5),
        ] {
            assert_eq!(importance(text, Role::User), expected, "{text}");
            assert!(importance(text, Role::Assistant) >= KEEP_FROM, "{text}");
        }
    }

    #[test]
    fn the_models_own_words_are_never_more_than_ordinary() {
        assert_eq!(
            importance("We decided to use PostgreSQL", Role::Assistant),
            3
        );
        assert_eq!(importance("Sure, the answer is 42.", Role::Assistant), 3);
        assert_eq!(importance("Sure! Happy to help!", Role::Assistant), 1);
    }
}
