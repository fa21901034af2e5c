//! What a subject is, and what it becomes: 我们的预算是30万, 预算涨到40万了, 把预算改为50万, 预算取消了.

use super::{Finding, Value, Voice, key};
use crate::memory::Scope;
use crate::memory::rules::subject::value_of;

/// Owners in front of a subject.
#[rustfmt::skip]
const OWNERS: &[&str] = &[
    "我们项目的", "我们的", "我们", "我的", "我", "本项目的", "本项目", "项目的", "项目", "这个项目的", "团队的", "咱们的", "咱们", "我们这个项目的",
];
/// Owners in front of a subject when the person is spoken to.
const OWNERS_ANSWERED: &[&str] = &[
    "您的",
    "你的",
    "你们的",
    "您",
    "你",
    "项目的",
    "项目",
    "本项目的",
];
/// What may stand before a subject without making it another.
const QUALIFIERS: &[&str] = &[
    "新的",
    "最新的",
    "最新",
    "现在的",
    "目前的",
    "当前的",
    "总的",
    "新",
    "实际",
    "最终",
    "具体",
];
/// What may stand behind one.
const ADVERBS: &[&str] = &[
    "现在", "目前", "已经", "已", "最终", "最后", "又", "被", "正式", "刚刚", "刚", "今天", "昨天",
    "也", "就", "将", "会", "应该",
];
/// Subjects that need no owner.
#[rustfmt::skip]
const PROJECT: &[&str] = &[
    "预算", "总预算", "截止日期", "截止时间", "交付日期", "部署目标", "数据库", "技术栈", "上线日期", "发布日期", "上线时间", "发布时间", "目标",
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
    "问题", "意思", "想法", "疑问", "错", "理解", "看法", "感觉", "建议", "要求", "回答", "偏好",
];
/// What joins a subject with its value.
const COPULAS: &[&str] = &[
    "就是",
    "将是",
    "会是",
    "变成了",
    "是",
    "为",
    "叫",
    "：",
    ":",
];
/// Verbs of change; one of [`REACH`] or [`BECOME`] follows.
#[rustfmt::skip]
const VERBS: &[&str] = &[
    "提高", "增加", "上调", "下调", "降低", "减少", "缩减", "压缩", "削减", "调整", "调高", "调低", "更改", "变更", "更新", "修改", "推迟", "延期",
    "延后", "延长", "提前", "追加", "扩大", "缩小", "改", "变", "调", "涨", "升", "增", "加", "降", "减", "换", "定", "设", "提",
    "砍", "设置", "移", "挪", "迁移", "切换", "转",
];
const REACH: &[&str] = &["到了", "至了", "到", "至"];
const BECOME: &[&str] = &["成了", "为了", "成", "为", "在"];
/// What ends what was.
#[rustfmt::skip]
const ENDED: &[&str] = &["取消了", "被取消", "取消", "作废了", "作废", "没有了", "没了", "撤销了", "砍掉了", "不存在了", "不再有了"];
const TAKING: &[&str] = &["把", "将"];
/// What may stand before that.
#[rustfmt::skip]
const ACTORS: &[&str] = &["我们", "我", "咱们", "请", "帮我", "麻烦", "已经", "决定", "打算", "团队", "客户", "公司", "老板", "财务", "刚刚", "又", "现在", "最终", "同意"];

/// What a clause says of a subject.
pub(super) fn attribute(clause: &str, voice: Voice) -> Option<Finding> {
    taken(clause, voice)
        .or_else(|| lacked(clause, voice))
        .or_else(|| changed(clause, voice))
        .or_else(|| stated(clause, voice))
}

/// Whether a clause is nothing but a subject that a value may follow.
pub(in crate::memory::rules) fn is_subject(clause: &str) -> bool {
    let (_, name) = owned(clause.trim(), Voice::Own);
    PROJECT.contains(&name)
}

/// The value that a sentence puts right: 不对，应该是50万.
pub(in crate::memory::rules) fn correction(sentence: &str) -> Option<&str> {
    #[rustfmt::skip]
    const SIGNS: &[&str] = &["不对", "更正", "更正一下", "哦不", "说错了", "我说错了", "抱歉", "不好意思", "准确地说", "其实"];
    const PUTS: &[&str] = &["应该是", "是", "改成", "改为", "应为"];
    let sign = SIGNS
        .iter()
        .filter_map(|sign| sentence.strip_prefix(sign))
        .min_by_key(|rest| rest.len())?;
    let rest = sign.trim_start_matches(['，', ',', '：', ':', ' ']);
    let value = PUTS.iter().find_map(|put| rest.strip_prefix(put))?;
    (value.chars().count() <= 12).then_some(value)
}

/// The owner, and the subject without what makes it no other.
fn owned(words: &str, voice: Voice) -> (&'static str, &str) {
    let owners = match voice {
        Voice::Own => OWNERS,
        Voice::Answering => OWNERS_ANSWERED,
    };
    let owner = owners
        .iter()
        .filter(|owner| words.starts_with(**owner))
        .max_by_key(|owner| owner.len())
        .copied()
        .unwrap_or_default();
    let mut name = words[owner.len()..].trim();
    loop {
        let shorter = QUALIFIERS
            .iter()
            .find_map(|q| name.strip_prefix(q))
            .or_else(|| ADVERBS.iter().find_map(|a| name.strip_suffix(a)));
        match shorter {
            Some(shorter) if !shorter.is_empty() => name = shorter.trim(),
            _ => return (owner, name),
        }
    }
}

/// What is said of a subject; `value` answers none when nothing is.
fn about(
    words: &str,
    voice: Voice,
    value: impl FnOnce(&str) -> Option<Option<Value>>,
) -> Option<Finding> {
    // 预算从30万
    let words = words.split_once('从').map_or(words, |(before, _)| before);
    let (owner, name) = owned(words.trim(), voice);
    let known = PROJECT.contains(&name);
    let personal =
        PERSONAL.contains(&name) && owner.starts_with(['我', '你', '您']) && !owner.contains('们');
    let possessed = voice == Voice::Own && owner.ends_with('的') && name.chars().count() <= 8;
    if name.is_empty() || PASSING.contains(&name) || !(known || possessed || personal) {
        return None;
    }
    let subject = key(name);
    let value = match &subject {
        Some(subject) => value(subject)?,
        None => None,
    };
    let about = subject.zip(value);
    let mut found = if personal {
        Finding::fact(Scope::UserProfile, 3, about)
    } else {
        Finding::fact(Scope::ProjectContext, if known { 4 } else { 3 }, about)
    };
    found.own = matches!(owner, "我的" | "我");
    Some(found)
}

/// 把预算（从30万）改为40万.
fn taken(clause: &str, voice: Voice) -> Option<Finding> {
    let mut rest = clause;
    while let Some(shorter) = ACTORS.iter().find_map(|actor| rest.strip_prefix(actor)) {
        rest = shorter;
    }
    let rest = TAKING.iter().find_map(|take| rest.strip_prefix(take))?;
    changed(rest, voice)
}

/// 预算（从30万）涨到40万了.
fn changed(clause: &str, voice: Voice) -> Option<Finding> {
    let mut found: Option<(usize, usize)> = None;
    for verb in VERBS {
        for joint in REACH.iter().chain(BECOME) {
            let words = format!("{verb}{joint}");
            if let Some(at) = clause.find(&words) {
                let better = found
                    .is_none_or(|(first, len)| at < first || (at == first && words.len() > len));
                if better {
                    found = Some((at, words.len()));
                }
            }
        }
    }
    let (at, len) = found?;
    let value = clause[at + len..].trim();
    about(&clause[..at], voice, |key| value_of(key, value).map(Some))
}

/// 预算取消了, 我们取消了预算, 我们没有预算了.
fn lacked(clause: &str, voice: Voice) -> Option<Finding> {
    let nothing = |words: &str| {
        about(words, voice, |_| Some(Some(Value::Nothing))).and_then(Finding::no_longer)
    };
    if let Some(words) = ENDED.iter().find_map(|end| clause.strip_suffix(end))
        && let Some(found) = nothing(words)
    {
        return Some(found);
    }
    let rest = ["我们已经", "我们", "项目", "团队", "现在", "我"]
        .iter()
        .find_map(|who| clause.strip_prefix(who))
        .unwrap_or(clause);
    let rest = ["不再有", "已经没有", "没有", "取消了", "取消", "不再需要"]
        .iter()
        .find_map(|lack| rest.strip_prefix(lack))?;
    let rest = rest.trim_end_matches('了');
    PROJECT
        .contains(&owned(rest, voice).1)
        .then(|| nothing(rest))
        .flatten()
}

/// 我的X是Y, 项目X是Y, X是Y, X不再是Y.
fn stated(clause: &str, voice: Voice) -> Option<Finding> {
    let (at, copula) = COPULAS
        .iter()
        .filter_map(|copula| clause.find(copula).map(|at| (at, *copula)))
        .min_by_key(|&(at, copula)| (at, std::cmp::Reverse(copula.len())))?;
    let (words, value) = (clause[..at].trim(), clause[at + copula.len()..].trim());
    if value.is_empty() {
        return None;
    }
    for not in ["不再", "已经不", "不"] {
        if let Some(words) = words.strip_suffix(not) {
            if let Some((_, value)) = value.split_once("而是") {
                return about(words, voice, |key| Some(value_of(key, value)));
            }
            return about(words, voice, |key| value_of(key, value).map(Some))
                .and_then(Finding::no_longer);
        }
    }
    about(words, voice, |key| Some(value_of(key, value)))
}
