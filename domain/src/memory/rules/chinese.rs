//! The Chinese rules.

use super::{Finding, answer_key, key, taste_key};
use crate::memory::Scope;

/// Openings that say nothing of what follows.
#[rustfmt::skip]
pub(super) const LEADS: &[&str] = &[
    "另外", "还有", "对了", "其实", "顺便说一下", "顺便", "而且", "并且", "但是", "但", "不过", "所以", "你好", "嗯",
    "那么", "一般来说", "个人",
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
    "我希望回答", "我希望你的回答", "我的偏好是",
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
    "说话", "输出",
];
/// Openings of a taste; what it is about follows.
#[rustfmt::skip]
const LIKES: &[&str] = &[
    "我更喜欢", "我最喜欢", "我比较喜欢", "我很喜欢", "我非常喜欢", "我不太喜欢", "我不喜欢", "我喜欢", "我偏好",
    "我偏爱", "我习惯用", "我习惯", "我讨厌", "我爱吃", "我爱喝", "我爱看", "我不爱", "我不想要", "我倾向于", "我热爱",
    "我再也不喜欢", "我已经不喜欢",
];
/// Objects that point at the talk at hand.
const POINTING: &[&str] = &["你的", "这", "那", "它", "你说", "你"];
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
    "回答请", "回答要", "回复请", "回复要", "回答尽量", "回答时", "回复时", "请简短回答", "请简洁", "请尽量简",
];
/// Requests to leave something be.
#[rustfmt::skip]
const AVOID: &[&str] = &[
    "请不要用", "不要用", "别用", "请别用", "请不要使用", "不要使用", "别再", "不要再", "请不要再", "请避免",
    "避免使用", "不要叫我", "别叫我",
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

/// Owners in front of a subject.
#[rustfmt::skip]
const OWNERS: &[&str] = &[
    "我们项目的", "我们的", "我们", "我的", "我", "本项目的", "本项目", "项目的", "项目", "这个项目的", "团队的",
];
/// Subjects that need no owner.
#[rustfmt::skip]
const PROJECT: &[&str] = &[
    "预算", "截止日期", "截止时间", "交付日期", "部署目标", "数据库", "技术栈", "上线日期", "发布日期", "目标",
    "团队规模", "客户", "域名", "仓库", "项目名", "项目名称", "代号", "架构", "端口", "服务端口", "后端", "前端",
    "框架", "环境", "主分支",
];
/// Subjects that are about the person.
#[rustfmt::skip]
const PERSONAL: &[&str] = &[
    "名字", "姓名", "生日", "年龄", "职业", "工作", "妻子", "丈夫", "老婆", "老公", "儿子", "女儿", "妈妈", "爸爸",
    "母亲", "父亲", "姐姐", "妹妹", "哥哥", "弟弟", "狗", "猫", "宠物", "家乡", "邮箱", "电话", "手机号", "时区",
    "地址", "爱好", "昵称", "母语", "学校", "专业", "公司",
];
/// Subjects of the talk at hand.
const PASSING: &[&str] = &[
    "问题", "意思", "想法", "疑问", "错", "理解", "看法", "感觉", "建议", "要求",
];
/// What joins a subject with its value, longest first.
#[rustfmt::skip]
const COPULAS: &[&str] = &[
    "现在改成", "现在是", "已经改为", "调整为", "调整到", "改成了", "改成", "改为", "变成", "定为", "设为", "将是",
    "就是", "是", "为", "叫",
];

/// What a clause without its lead states.
pub(super) fn finding(clause: &str) -> Option<Finding> {
    preference(clause).or_else(|| other(clause))
}

/// Whether the clause speaks of the person.
pub(super) fn is_personal(clause: &str) -> bool {
    clause.starts_with('我') && !clause.starts_with("我们")
}

fn preference(clause: &str) -> Option<Finding> {
    if let Some(name) = opening(clause, CALL) {
        return (!name.is_empty()).then(|| Finding::preference(Some("form_of_address".to_owned())));
    }
    if let Some(object) = opening(clause, LIKES) {
        let pointing = POINTING.iter().any(|w| object.starts_with(w));
        // 我最喜欢的颜色是绿色
        if let Some((subject, _)) = object.strip_prefix('的').and_then(|o| o.split_once('是')) {
            return Some(Finding::preference(
                key(subject).map(|s| format!("favorite_{s}")),
            ));
        }
        return (!object.is_empty() && !pointing)
            .then(|| Finding::preference(answer_key(clause).or_else(|| taste_key(object))));
    }
    if let Some(rest) = opening(clause, FROM_NOW) {
        if WISHES.iter().any(|w| rest.starts_with(w)) {
            return Some(Finding::preference(answer_key(clause)));
        }
        return rest.is_empty().then(Finding::opening);
    }
    if opening(clause, STANDING).is_some()
        || opening(clause, AVOID).is_some()
        || opening(clause, ANSWER_OPENINGS).is_some()
    {
        return Some(Finding::preference(answer_key(clause)));
    }
    let asked = opening(clause, WITH)
        .is_some_and(|rest| ANSWER_VERBS.iter().any(|verb| rest.ends_with(verb)));
    asked.then(|| Finding::preference(answer_key(clause)))
}

fn other(clause: &str) -> Option<Finding> {
    if opening(clause, DECISIONS).is_some() {
        return Some(Finding::decision());
    }
    if opening(clause, STATES).is_some() {
        return Some(Finding::state());
    }
    if let Some(found) = attribute(clause) {
        return Some(found);
    }
    let works = clause
        .strip_prefix("我在")
        .is_some_and(|rest| rest.ends_with("工作") || rest.ends_with("上班"));
    if works {
        return Some(Finding::fact(
            Scope::UserProfile,
            3,
            Some("employer".to_owned()),
        ));
    }
    for (words, subject) in PERSON {
        if let Some(rest) = clause.strip_prefix(words) {
            let about = *words != "我对" || rest.ends_with("过敏");
            return (about && !rest.is_empty())
                .then(|| Finding::fact(Scope::UserProfile, 3, subject.map(str::to_owned)));
        }
    }
    None
}

/// 我的X是Y, 项目X是Y, X是Y.
fn attribute(clause: &str) -> Option<Finding> {
    let (at, copula) = COPULAS
        .iter()
        .filter_map(|copula| clause.find(copula).map(|at| (at, *copula)))
        .min_by_key(|&(at, copula)| (at, std::cmp::Reverse(copula.len())))?;
    let (full, value) = (clause[..at].trim(), clause[at + copula.len()..].trim());
    let owner = OWNERS
        .iter()
        .find(|o| full.starts_with(**o))
        .copied()
        .unwrap_or_default();
    let subject = full[owner.len()..].trim();
    let known = PROJECT.contains(&subject);
    let personal = PERSONAL.contains(&subject);
    let possessed = owner.ends_with('的') && subject.chars().count() <= 8;
    if value.is_empty()
        || subject.is_empty()
        || PASSING.contains(&subject)
        || !(known || possessed || (personal && owner.starts_with('我')))
    {
        return None;
    }
    if personal && is_personal(owner) {
        return Some(Finding::fact(Scope::UserProfile, 3, key(subject)));
    }
    Some(Finding::fact(
        Scope::ProjectContext,
        if known { 4 } else { 3 },
        key(subject),
    ))
}

fn opening<'a>(clause: &'a str, openings: &[&str]) -> Option<&'a str> {
    // The longest that fits: 我不喜欢 before 我.
    openings
        .iter()
        .filter_map(|o| clause.strip_prefix(o))
        .min_by_key(|rest| rest.len())
}
