//! The Chinese rules.

mod change;

use super::subject::{key, taste_key};
use super::{Finding, Value, Voice, answers, normalise};
use crate::memory::Scope;

pub(super) use change::{correction, is_subject};

/// Openings that say nothing of what follows.
#[rustfmt::skip]
pub(super) const LEADS: &[&str] = &[
    "另外", "还有", "对了", "其实", "顺便说一下", "顺便", "而且", "并且", "但是", "但", "不过", "所以", "你好", "嗯",
    "那么", "一般来说", "个人", "更正：", "更正:", "更新：", "更新:", "补充：", "补充:", "通知：", "注意：", "注意:", "好消息", "最新消息",
    "刚刚", "刚才", "今天", "麻烦", "麻烦你",
];
/// Openings that ask to keep what follows.
#[rustfmt::skip]
pub(super) const REMEMBER: &[&str] = &[
    "请你记住", "请记住", "请记得", "记住", "别忘了", "你要记住", "帮我记住", "帮我记一下", "备注",
];

/// Openings of a standing preference.
#[rustfmt::skip]
const STANDING: &[&str] = &[
    "请始终", "请总是", "请一直", "请每次", "每次都", "每次回答", "始终用", "总是用", "一律用", "永远不要", "我希望你",
    "我希望回答", "我希望你的回答", "我的偏好是", "请你始终", "请你总是", "请你一直", "一直用", "始终以",
];
/// Times from which a wish holds; alone before a comma they open it.
const FROM_NOW: &[&str] = &[
    "以后",
    "今后",
    "从现在起",
    "从现在开始",
    "从今以后",
    "从今天起",
    "从今往后",
];
/// How a wish about what the model does begins.
#[rustfmt::skip]
const WISHES: &[&str] = &[
    "请", "都", "不要", "别", "用", "回答", "回复", "给我", "每次", "尽量", "一律", "你", "只", "叫我", "称呼我",
    "说话", "输出", "一直", "始终", "总是", "尽可能",
];
/// Openings of a taste; what it is about follows.
#[rustfmt::skip]
const LIKES: &[&str] = &[
    "我喜欢", "我更喜欢", "我最喜欢", "我比较喜欢", "我很喜欢", "我非常喜欢", "我现在喜欢", "我现在更喜欢", "我特别喜欢", "我爱吃",
    "我爱喝", "我爱看", "我热爱", "我还是喜欢", "我还是更喜欢",
];
/// Openings of a distaste.
#[rustfmt::skip]
const DISLIKES: &[&str] = &["我不太喜欢", "我不喜欢", "我讨厌", "我不爱", "我很讨厌", "我不想要"];
/// Openings of a wish of how things are to be.
#[rustfmt::skip]
const PREFERS: &[&str] = &["我偏好", "我偏爱", "我习惯用", "我习惯", "我倾向于", "我更偏好", "我更倾向于", "我现在偏好", "我更想要"];
/// Openings of a wish that counts when it is about answers.
const WANTS: &[&str] = &[
    "我想要",
    "我要",
    "我需要",
    "我只要",
    "我只想要",
    "我想看到",
    "我希望得到",
    "给我",
];
/// Objects that point at the talk at hand.
const POINTING: &[&str] = &[
    "你的",
    "这",
    "那",
    "它",
    "你说",
    "你",
    "不说",
    "不回答",
    "不透露",
];
/// Requests about the form of answers: one of these openings and one of these verbs.
#[rustfmt::skip]
const WITH: &[&str] = &[
    "请用", "用", "请以", "以", "请使用", "使用", "请按", "按", "都用",
];
#[rustfmt::skip]
const ANSWER_VERBS: &[&str] = &[
    "回答", "回复", "答复", "输出", "作答", "展示", "呈现", "跟我说话", "和我交流",
];
#[rustfmt::skip]
const ANSWER_OPENINGS: &[&str] = &[
    "回答请", "回答要", "回复请", "回复要", "回答尽量", "回答时", "回复时", "请简短回答", "请简洁", "请尽量简", "回答的时候", "回复的时候",
    "回复尽量", "请回答得", "回答得", "请把回答", "答案尽量", "你的回答要", "你的回答请", "你回答的时候", "你回答时",
];
/// Requests to leave something be.
#[rustfmt::skip]
const AVOID: &[&str] = &[
    "请不要用", "不要用", "别用", "请别用", "请不要使用", "不要使用", "别再", "不要再", "请不要再", "请避免",
    "避免使用", "不要叫我", "别叫我", "别用", "不用再用", "不要给我", "请不要给我",
];
/// How one wants to be called.
#[rustfmt::skip]
const CALL: &[&str] = &[
    "请叫我", "叫我", "可以叫我", "你可以叫我", "请称呼我", "称呼我", "以后叫我", "以后请叫我", "你就叫我", "就叫我",
];

/// Openings of a fact about the person, and its key.
#[rustfmt::skip]
const PERSON: &[(&str, Option<&str>)] = &[
    ("我叫", Some("name")), ("我住在", Some("home")), ("我搬到", Some("home")), ("我家在", Some("home")),
    ("我现在住在", Some("home")), ("我已经搬到", Some("home")), ("我搬家到", Some("home")), ("我改名叫", Some("name")),
    ("我来自", Some("origin")), ("我是一名", None), ("我是一个", None), ("我是一位", None), ("我是个", None),
    ("我对", None), ("我养了", None), ("我有一只", None), ("我今年", Some("age")),
    ("我出生", Some("birthday")), ("我吃素", None), ("我不吃", None), ("我会说", None),
];
/// Openings of a decision.
#[rustfmt::skip]
const DECISIONS: &[&str] = &[
    "我们决定", "我们已经决定", "我们已决定", "我们最终决定", "最终决定", "团队决定", "我决定", "我已经决定",
    "我们选择了", "我们选定", "我们选用", "我们商定", "我们同意", "我们将使用", "我们将采用", "我们确定",
    "我们一致决定", "会议决定", "决定采用", "决定使用",
];
/// Openings of what holds for a while.
#[rustfmt::skip]
const STATES: &[&str] = &[
    "我正在", "我们正在", "我现在正在", "目前我", "目前正在", "目前我们", "我最近在", "我在做", "现在正在",
];

/// What makes a request one of the moment.
#[rustfmt::skip]
pub(super) const ONCE: &[&str] = &[
    "就这一次", "仅此一次", "只这一次", "这一次", "这次", "本次", "这个问题", "这条消息", "这一个问题", "仅限这次",
];
/// Openings of what is not so, but might be.
#[rustfmt::skip]
pub(super) const CONDITIONS: &[&str] = &["如果", "假如", "假设", "要是", "倘若", "万一", "若", "一旦", "除非", "比方说", "想象"];
/// Openings of a request in the form of a question.
#[rustfmt::skip]
const REQUESTS: &[&str] = &[
    "你能不能", "能不能", "你可不可以", "可不可以", "你可以", "可以", "你能否", "能否", "你能", "能", "可否", "请问能不能", "请问可以",
];
const ALWAYS: &[&str] = &["一直", "始终", "总是", "每次都", "每次", "都用", "永远"];

/// What a clause without its lead states.
pub(super) fn finding(clause: &str, voice: Voice) -> Option<Finding> {
    if voice == Voice::Answering {
        return change::attribute(clause, voice);
    }
    no_longer(clause)
        .or_else(|| preference(clause))
        .or_else(|| other(clause))
}

/// A standing wish in a question; after how many bytes it begins.
pub(super) fn request(sentence: &str) -> Option<(usize, Finding)> {
    let rest = opening(sentence, REQUESTS)?;
    let wish = polite(rest);
    let standing = opening(wish, FROM_NOW)
        .is_some_and(|rest| WISHES.iter().any(|w| rest.starts_with(w)))
        || opening(wish, ALWAYS).is_some_and(|rest| {
            answers::speaks_of_answers(rest) || WITH.iter().any(|w| rest.starts_with(w))
        });
    standing.then(|| {
        (
            sentence.len() - rest.len(),
            Finding::preference(answers::about(wish)),
        )
    })
}

/// A request without what makes it polite.
fn polite(request: &str) -> &str {
    let mut rest = request;
    while let Some(shorter) = ["吗", "呢", "吧", "好", "行", "哦", "谢谢", "，", ","]
        .iter()
        .find_map(|end| rest.strip_suffix(end))
    {
        rest = shorter;
    }
    rest
}

/// Whether the clause speaks of the person.
pub(super) fn is_personal(clause: &str) -> bool {
    clause.starts_with('我') && !clause.starts_with("我们")
}

/// 我不再喜欢咖啡, 我不住在上海了.
fn no_longer(clause: &str) -> Option<Finding> {
    if !is_personal(clause) {
        return None;
    }
    let gone = [
        "已经不再",
        "再也不",
        "已经不",
        "现在不",
        "不再",
        "现在已经不",
    ]
    .iter()
    .find(|words| clause.contains(**words))
    .map(|words| clause.replacen(words, "", 1))
    .or_else(|| {
        Some(clause.strip_suffix('了')?.strip_prefix("我不")?).map(|rest| format!("我{rest}"))
    })?;
    let gone = gone.trim_end_matches('了');
    preference(gone).or_else(|| other(gone))?.no_longer()
}

fn preference(clause: &str) -> Option<Finding> {
    if let Some(name) = opening(clause, CALL) {
        return (!name.is_empty()).then(|| {
            let about = ("form_of_address".to_owned(), Value::Is(normalise(name)));
            Finding::preference(Some(about))
        });
    }
    if let Some(found) = taste(clause) {
        return Some(found);
    }
    if let Some(rest) = opening(clause, FROM_NOW) {
        if WISHES.iter().any(|w| rest.starts_with(w)) {
            return Some(Finding::preference(answers::about(clause)));
        }
        return rest.is_empty().then(Finding::opening);
    }
    if opening(clause, STANDING).is_some()
        || opening(clause, AVOID).is_some()
        || opening(clause, ANSWER_OPENINGS).is_some()
    {
        return Some(Finding::preference(answers::about(clause)));
    }
    let asked = opening(clause, WITH).is_some_and(|rest| {
        let rest = polite(rest);
        let rest = rest.strip_suffix("我").unwrap_or(rest);
        let rest = rest.strip_suffix("我的问题").unwrap_or(rest);
        let rest = rest.strip_suffix("问题").unwrap_or(rest);
        ANSWER_VERBS.iter().any(|verb| rest.ends_with(verb))
    });
    asked.then(|| Finding::preference(answers::about(clause)))
}

/// What one likes, prefers or wants.
fn taste(clause: &str) -> Option<Finding> {
    if let Some(object) = opening(clause, LIKES) {
        // 我最喜欢的颜色是绿色
        if let Some((subject, value)) = object.strip_prefix('的').and_then(|o| o.split_once('是'))
        {
            let about =
                key(subject).map(|s| (format!("favorite_{s}"), Value::Is(normalise(value))));
            return Some(Finding::preference(about));
        }
        return tasting(clause, object, "like");
    }
    if let Some(object) = opening(clause, DISLIKES) {
        return tasting(clause, object, "dislike");
    }
    if let Some(object) = opening(clause, PREFERS) {
        return tasting(clause, object, "like");
    }
    let wanted = opening(clause, WANTS)?;
    let wish = answers::speaks_of_answers(wanted) && wanted.chars().count() <= 12;
    let about = wish.then(|| answers::about(wanted)).flatten()?;
    Some(Finding::preference(Some(about)))
}

fn tasting(clause: &str, object: &str, how: &str) -> Option<Finding> {
    if object.is_empty() || POINTING.iter().any(|w| object.starts_with(w)) {
        return None;
    }
    let short = object.chars().count() <= 6 && how == "like";
    let about = (answers::speaks_of_answers(clause) || short)
        .then(|| answers::about(clause))
        .flatten()
        .or_else(|| Some((taste_key(object)?, Value::Is(how.to_owned()))));
    Some(Finding::preference(about))
}

fn other(clause: &str) -> Option<Finding> {
    if let Some(decided) = opening(clause, DECISIONS) {
        let about = change::attribute(decided, Voice::Own).and_then(|f| f.about);
        return Some(Finding::decision(about));
    }
    if opening(clause, STATES).is_some() {
        return Some(Finding::state());
    }
    if let Some(found) = change::attribute(clause, Voice::Own) {
        return Some(found);
    }
    let person = |subject: &str, value: &str| {
        let about = (subject.to_owned(), Value::Is(normalise(value)));
        Finding::fact(Scope::UserProfile, 3, Some(about))
    };
    let works = clause.strip_prefix("我在").and_then(|rest| {
        rest.strip_suffix("工作")
            .or_else(|| rest.strip_suffix("上班"))
    });
    if let Some(employer) = works {
        return Some(person("employer", employer));
    }
    for (words, subject) in PERSON {
        if let Some(rest) = clause.strip_prefix(words) {
            let about = *words != "我对" || rest.ends_with("过敏");
            let rest = rest.trim_end_matches('了');
            return (about && !rest.is_empty()).then(|| match subject {
                Some(subject) => person(subject, rest),
                None => Finding::fact(Scope::UserProfile, 3, None),
            });
        }
    }
    None
}

fn opening<'a>(clause: &'a str, openings: &[&str]) -> Option<&'a str> {
    // The longest that fits: 我不喜欢 before 我.
    openings
        .iter()
        .filter_map(|o| clause.strip_prefix(o))
        .min_by_key(|rest| rest.len())
}
