//! What introduces the words of others, or material to work on: what follows is not what the person states.

use super::is_ideographic;

/// Whether what follows a clause are the speaker's own words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Introduction {
    /// They are.
    Nothing,
    /// Not in this sentence.
    InSentence,
    /// Not to the end of the text.
    ToTheEnd,
}

/// What a folded clause introduces, by its words and the colon behind it.
pub(super) fn introduction(clause: &str, colon: bool) -> Introduction {
    let clause = clause.trim();
    let chinese = clause.chars().any(is_ideographic);
    let (examples, works, reports, own) = if chinese {
        (
            CHINESE_EXAMPLES,
            CHINESE_WORKS,
            CHINESE_REPORTS,
            CHINESE_OWN,
        )
    } else {
        (EXAMPLES, WORKS, REPORTS, OWN)
    };
    let opens = |list: &[&str]| list.iter().any(|words| clause.starts_with(words));
    let holds = |list: &[&str]| list.iter().any(|words| clause.contains(words));
    let asked = clause
        .trim_start_matches("please ")
        .trim_start_matches('请');
    let works = works.iter().any(|verb| begins(asked, verb, chinese));
    let refers = ["following", "below", "以下", "下面", "下列"]
        .iter()
        .any(|word| clause.contains(word));
    if (works && (colon || refers)) || (colon && holds(reports)) {
        Introduction::ToTheEnd
    } else if opens(examples) || (colon && !opens(own) && !holds(FORMS)) {
        Introduction::InSentence
    } else {
        Introduction::Nothing
    }
}

fn begins(text: &str, verb: &str, chinese: bool) -> bool {
    text.strip_prefix(verb)
        .is_some_and(|rest| chinese || !rest.starts_with(char::is_alphanumeric))
}

const EXAMPLES: &[&str] = &["for example", "for instance", "e.g", "example"];
/// Work on a text.
#[rustfmt::skip]
const WORKS: &[&str] = &[
    "translate", "summarise", "summarize", "rewrite", "rephrase", "paraphrase", "proofread", "correct", "fix", "edit",
    "improve", "polish", "shorten", "expand", "analyse", "analyze", "classify", "review", "explain", "continue",
    "complete", "convert", "extract", "can you translate", "could you translate", "can you summarise",
    "can you summarize", "could you summarise", "could you summarize",
];
/// Words of others.
#[rustfmt::skip]
const REPORTS: &[&str] = &[
    " reads", " read", " says", " said", " told me", " wrote", " writes", " writing", " asked", " replied", " texted",
    " answered", " email", "e-mail", " letter", " message from", " quote", "quote",
];
/// Openings of what introduces one's own words.
#[rustfmt::skip]
const OWN: &[&str] = &[
    "i ", "i'", "my ", "our ", "we ", "we'", "me", "note", "fyi", "update", "correction", "decision", "reminder",
    "important", "remember", "preference", "about me", "one ", "two ", "three ", "some ", "also", "ps", "p.s", "rule",
    "style", "format", "output", "language", "instruction", "request", "heads up", "good news", "bad news", "news", "new ",
];
/// Words of a list of wishes.
const FORMS: &[&str] = &[
    "preference",
    "about me",
    "remember",
    "偏好",
    "要求",
    "关于我",
    "记住",
];

const CHINESE_EXAMPLES: &[&str] = &["例如", "比如", "举例", "示例", "例子", "譬如"];
#[rustfmt::skip]
const CHINESE_WORKS: &[&str] = &[
    "翻译", "把下面", "把以下", "总结", "概括", "改写", "润色", "校对", "修改", "分析", "解释", "续写", "缩写", "扩写", "归纳",
    "帮我翻译", "帮我总结", "帮我润色", "帮我改写", "帮我修改", "将下面", "将以下",
];
#[rustfmt::skip]
const CHINESE_REPORTS: &[&str] = &[
    "说", "写道", "告诉我", "邮件", "信里", "短信", "内容如下", "原文", "引用", "问道", "回复道", "通知写",
];
#[rustfmt::skip]
const CHINESE_OWN: &[&str] = &[
    "我", "备注", "注意", "更正", "更新", "补充", "偏好", "要求", "请求", "提醒", "决定", "通知", "说明", "另外", "还有", "对了",
    "两点", "三点", "一点", "新", "请", "以后",
];
