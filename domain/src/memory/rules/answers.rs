//! How answers are to look: what a wish about them is about, and what it wishes.

use super::Value;

/// What a clause wishes of all answers: two wishes about the same attribute are a change of mind.
pub(super) fn about(text: &str) -> Option<(String, Value)> {
    let words: Vec<&str> = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|w| !w.is_empty())
        .collect();
    let names = |name: &&str| {
        if name.is_ascii() {
            words.iter().enumerate().any(|(at, word)| {
                word.trim_end_matches('s') == *name && (*name != "list" || is_a_list(&words, at))
            })
        } else {
            text.contains(name)
        }
    };
    let refused = refuses(text);
    VALUES
        .iter()
        .find(|(_, _, all)| all.iter().any(names))
        .map(|(key, value, _)| {
            let value = (*value).to_owned();
            let value = if refused {
                Value::Not(value)
            } else {
                Value::Is(value)
            };
            ((*key).to_owned(), value)
        })
}

/// Whether a clause speaks of answers at all.
pub(super) fn speaks_of_answers(text: &str) -> bool {
    [
        "answer",
        "repl",
        "respon",
        "output",
        "explanation",
        "summaries",
        "回答",
        "回复",
        "答复",
        "输出",
    ]
    .iter()
    .any(|word| text.contains(word))
}

/// "list my meetings" is no list.
fn is_a_list(words: &[&str], at: usize) -> bool {
    words[at] == "lists"
        || at
            .checked_sub(1)
            .is_some_and(|before| LISTED.contains(&words[before]))
}

const LISTED: &[&str] = &[
    "a", "as", "bullet", "bulleted", "in", "numbered", "short", "with",
];

fn refuses(text: &str) -> bool {
    let spaced = format!(" {text} ");
    [
        " no ",
        " not ",
        " never ",
        " don't ",
        " avoid ",
        " stop ",
        " without ",
        "不",
        "别",
        "避免",
    ]
    .iter()
    .any(|word| spaced.contains(word))
}

/// Attribute, value, and the words for it. The first attribute that a clause names is what it is about.
#[rustfmt::skip]
const VALUES: &[(&str, &str, &[&str])] = &[
    ("answer_language", "chinese", &["chinese", "mandarin", "中文", "汉语", "普通话"]),
    ("answer_language", "english", &["english", "英文", "英语"]),
    ("answer_language", "french", &["french", "法语", "法文"]),
    ("answer_language", "german", &["german", "德语", "德文"]),
    ("answer_language", "japanese", &["japanese", "日语", "日文"]),
    ("answer_language", "spanish", &["spanish", "西班牙语"]),
    ("answer_language", "italian", &["italian", "意大利语"]),
    ("answer_language", "portuguese", &["portuguese", "葡萄牙语"]),
    ("answer_language", "russian", &["russian", "俄语", "俄文"]),
    ("answer_language", "korean", &["korean", "韩语", "韩文"]),
    ("answer_format", "table", &["table", "表格"]),
    ("answer_format", "list", &["bullet", "list", "列表", "要点", "清单"]),
    ("answer_format", "markdown", &["markdown"]),
    ("answer_format", "json", &["json"]),
    ("answer_format", "prose", &["prose", "paragraph", "段落"]),
    ("answer_format", "plain", &["plaintext", "纯文本"]),
    ("answer_length", "short", &["short", "shorter", "brief", "briefly", "concise", "concisely", "简短", "简洁", "简要", "精简", "简单一点"]),
    ("answer_length", "long", &["detailed", "long", "longer", "verbose", "详细"]),
];
