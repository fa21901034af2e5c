//! Subjects as keys, and what can be the value of one.

use super::{Value, is_ideographic, normalise};

/// A subject with more characters has no key: it is a sentence, and will not be met again in the same words.
const LONGEST_KEY: usize = 48;

/// A subject as a key: `snake_case` of its words, with the Chinese names of common subjects under their English ones, so that a change is
/// seen in whatever language it is told.
pub(super) fn key(subject: &str) -> Option<String> {
    let normal = normalise(&subject.replace("'s", ""));
    let known = SUBJECTS
        .iter()
        .find(|(names, _)| names.contains(&normal.as_str()));
    let name = known.map_or(normal.as_str(), |(_, name)| name);
    (1..=LONGEST_KEY)
        .contains(&name.chars().count())
        .then(|| name.replace(' ', "_"))
}

/// Whether a subject is one that projects have and people have not: a project's name is not the person's.
pub(super) fn is_of_projects(subject: &str) -> bool {
    let name = subject.replace(' ', "_");
    PROJECT_SUBJECTS.contains(&name.as_str())
}

#[rustfmt::skip]
const PROJECT_SUBJECTS: &[&str] = &[
    "budget", "deadline", "database", "deploy_target", "stack", "release_date", "team_size", "goal", "client", "port",
    "domain", "repository", "framework", "architecture",
];

/// More words than that describe a moment rather than name what somebody likes.
const LONGEST_TASTE: usize = 4;

#[rustfmt::skip]
const POINTERS: &[&str] = &["it", "that", "this", "them", "those", "these", "you", "him", "her", "there", "here"];

/// The key of liking or disliking something: the same for both, so that a change of mind is seen. None where the words point to what was said
/// before ("having them around"), or are many: they will not be met again.
pub(super) fn taste_key(object: &str) -> Option<String> {
    let normal = normalise(object);
    let mut words = normal.split(' ');
    if words.clone().count() > LONGEST_TASTE || words.any(|word| POINTERS.contains(&word)) {
        return None;
    }
    key(object).map(|object| format!("taste_{object}"))
}

/// What some words say of the subject of a key; none when they speak of it without saying what it is ("the budget is tight").
pub(super) fn value_of(key: &str, words: &str) -> Option<Value> {
    let words = words
        .trim()
        .trim_end_matches(['了', '啦', '吧', '哦', '的'])
        .trim_end_matches(" now")
        .trim_end_matches(" instead")
        .trim();
    let value = match sort(key) {
        Sort::Amount => amount(words)?,
        Sort::Time if !tells_time(words) => return None,
        Sort::Name if describes(words) => return None,
        Sort::Time | Sort::Name => normalise(words),
    };
    (!value.is_empty()).then_some(Value::Is(value))
}

/// What the values of a key are.
enum Sort {
    Amount,
    Time,
    Name,
}

fn sort(key: &str) -> Sort {
    let ends = |words: &[&str]| words.iter().any(|word| key.ends_with(word));
    if ends(&[
        "budget",
        "team_size",
        "age",
        "port",
        "预算",
        "端口",
        "人数",
        "价格",
    ]) {
        Sort::Amount
    } else if ends(&["deadline", "date", "birthday", "日期", "时间"]) {
        Sort::Time
    } else {
        Sort::Name
    }
}

/// The first number of some words, with its magnitude: "300k", "$0.3M", "300,000" and 30万 are one amount. Words without a number of digits
/// stand for themselves if they hold a numeral.
pub(super) fn amount(words: &str) -> Option<String> {
    let Some(at) = words.find(|c: char| c.is_ascii_digit()) else {
        return NUMERALS
            .iter()
            .any(|numeral| words.contains(numeral))
            .then(|| normalise(words));
    };
    let digits: String = words[at..]
        .chars()
        .take_while(|c| c.is_ascii_digit() || matches!(c, ',' | '.'))
        .filter(|c| *c != ',')
        .collect();
    let digits = digits.trim_end_matches('.');
    let rest = words[at..]
        .trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ',' | '.' | ' '));
    let magnitude = MAGNITUDES
        .iter()
        .find(|(name, _)| {
            rest.strip_prefix(name).is_some_and(|after| {
                !name.is_ascii() || !after.starts_with(|c: char| c.is_ascii_alphabetic())
            })
        })
        .map_or(0, |(_, zeros)| *zeros);
    Some(shifted(digits, magnitude))
}

/// A decimal number with its point moved to the right, without needless zeros.
fn shifted(digits: &str, zeros: usize) -> String {
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let part: String = part.chars().filter(char::is_ascii_digit).collect();
    let mut moved: String = whole.to_owned();
    let mut left = part.chars();
    for _ in 0..zeros {
        moved.push(left.next().unwrap_or('0'));
    }
    let rest: String = left.collect();
    let whole = moved.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    match rest.trim_end_matches('0') {
        "" => whole.to_owned(),
        rest => format!("{whole}.{rest}"),
    }
}

#[rustfmt::skip]
const MAGNITUDES: &[(&str, usize)] = &[
    ("thousand", 3), ("million", 6), ("billion", 9), ("mio", 6), ("mn", 6), ("bn", 9), ("k", 3), ("m", 6), ("b", 9),
    ("百万", 6), ("千万", 7), ("千", 3), ("万", 4), ("亿", 8),
];
#[rustfmt::skip]
const NUMERALS: &[&str] = &[
    "thousand", "million", "hundred", "dozen", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty",
    "ninety", "unlimited", "zero", "一", "二", "三", "四", "五", "六", "七", "八", "九", "十", "两", "百", "千", "万",
];

fn tells_time(words: &str) -> bool {
    words.chars().any(|c| c.is_ascii_digit()) || TIMES.iter().any(|time| words.contains(time))
}

#[rustfmt::skip]
const TIMES: &[&str] = &[
    "day", "week", "month", "quarter", "year", "january", "february", "march", "april", "may", "june", "july", "august",
    "september", "october", "november", "december", "jan ", "feb ", "mar ", "apr ", "jun ", "jul ", "aug ", "sep ",
    "oct ", "nov ", "dec ", "spring", "summer", "autumn", "winter", "christmas", "easter", "tomorrow", "tonight", "noon",
    "midnight", "周", "星期", "礼拜", "月", "号", "日", "天", "年", "季", "节",
];

/// Whether words only describe: "slow", "very happy", "running out", 很慢.
fn describes(words: &str) -> bool {
    if words.chars().any(is_ideographic) {
        return CHINESE_DEGREES
            .iter()
            .any(|degree| words.starts_with(degree));
    }
    let mut all = words.split_whitespace();
    let Some(first) = all.next() else {
        return true;
    };
    DEGREES.contains(&first)
        || STATES.contains(&first)
        || (first.ends_with("ing") && first.len() > 5)
        || [
            "a mess",
            "a problem",
            "a bit",
            "a little",
            "a nightmare",
            "a pain",
        ]
        .iter()
        .any(|judged| words.starts_with(judged))
}

#[rustfmt::skip]
const DEGREES: &[&str] = &[
    "very", "so", "too", "really", "quite", "pretty", "extremely", "still", "almost", "always", "more", "less", "getting",
    "under", "over", "about", "already", "much", "not", "never", "being", "rather", "kind", "sort", "as", "such", "just",
    "only", "often", "usually", "sometimes",
];
#[rustfmt::skip]
const STATES: &[&str] = &[
    "slow", "fast", "down", "up", "ok", "okay", "fine", "good", "bad", "great", "broken", "ready", "late", "tight",
    "limited", "small", "big", "large", "huge", "low", "high", "unclear", "clear", "unknown", "important", "critical",
    "fixed", "flexible", "gone", "dead", "sick", "ill", "tired", "hungry", "happy", "unhappy", "sad", "angry", "upset",
    "old", "new", "nice", "cute", "done", "finished", "complete", "offline", "online", "full", "empty", "stable",
    "unstable", "messy", "modern", "simple", "complex", "expensive", "cheap", "stressful", "boring", "fun", "hard",
    "easy", "safe", "close", "near", "due", "here", "there", "coming", "asleep", "awake", "visiting", "working", "away",
    "back", "better", "worse", "right", "wrong", "tbd", "undecided", "pending", "amazing", "wonderful", "terrible",
    "awful", "awesome", "cool", "incredible", "supportive", "everything", "my", "your", "lovely", "beautiful", "adorable", "sweet", "afraid", "proud", "able", "unable", "sure", "unsure",
];
const CHINESE_DEGREES: &[&str] = &[
    "很",
    "非常",
    "太",
    "有点",
    "特别",
    "挺",
    "不",
    "还",
    "比较",
    "越来越",
    "好",
];

/// Common subjects under one name.
const SUBJECTS: &[(&[&str], &str)] = &[
    (
        &[
            "预算",
            "项目预算",
            "project budget",
            "overall budget",
            "total budget",
            "总预算",
        ],
        "budget",
    ),
    (
        &[
            "截止日期",
            "截止时间",
            "交付日期",
            "due date",
            "project deadline",
        ],
        "deadline",
    ),
    (&["名字", "姓名", "full name"], "name"),
    (&["生日"], "birthday"),
    (&["年龄"], "age"),
    (&["职业", "工作", "profession", "occupation"], "job"),
    (&["邮箱", "电子邮箱", "email address", "e mail"], "email"),
    (&["电话", "手机号", "phone number"], "phone"),
    (&["时区", "time zone"], "timezone"),
    (&["数据库"], "database"),
    (&["部署目标", "deployment target"], "deploy_target"),
    (&["技术栈", "tech stack"], "stack"),
    (
        &[
            "上线日期",
            "发布日期",
            "上线时间",
            "发布时间",
            "launch date",
        ],
        "release_date",
    ),
    (&["团队规模"], "team_size"),
    (&["目标"], "goal"),
    (&["客户", "customer"], "client"),
    (&["项目名", "项目名称"], "project_name"),
    (&["端口", "服务端口"], "port"),
    (&["域名"], "domain"),
    (&["仓库", "repo"], "repository"),
    (&["框架"], "framework"),
    (&["架构"], "architecture"),
    (&["地址"], "address"),
    (&["公司"], "employer"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_the_same_however_it_is_written() {
        for (words, expected) in [
            ("300k", Some("300000")),
            ("$300,000 a year", Some("300000")),
            ("0.3 million euros", Some("300000")),
            ("30万", Some("300000")),
            ("30万元", Some("300000")),
            ("1.25m", Some("1250000")),
            ("8080.", Some("8080")),
            ("12 kilos", Some("12")),
            ("0.50", Some("0.5")),
            ("tight", None),
        ] {
            assert_eq!(amount(words).as_deref(), expected, "{words}");
        }
    }

    #[test]
    fn what_only_describes_a_subject_is_not_its_value() {
        for (key, words) in [
            ("budget", "tight"),
            ("deadline", "close"),
            ("database", "slow"),
            ("dog", "very hungry"),
            ("client", "coming over"),
            ("database", "很慢"),
        ] {
            assert_eq!(value_of(key, words), None, "{key} {words}");
        }
        for (key, words) in [
            ("budget", "400k"),
            ("deadline", "friday"),
            ("database", "mysql now"),
            ("dog", "rex"),
            ("deadline", "周五"),
        ] {
            assert!(value_of(key, words).is_some(), "{key} {words}");
        }
    }
}
