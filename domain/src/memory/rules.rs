//! Standing preferences and plain statements, recognised by rules in English and Chinese.
//!
//! A rule looks at the opening of a clause: "I prefer …", "our deploy target is …", 以后请…, 我们决定…. So what somebody else is said to want is
//! not taken for what the person wants. Questions state nothing, nor does what stands in quotation marks, block quotes or code.

mod chinese;
mod english;

use super::analysis::{is_ideographic, normalise};
use super::sentence::{is_question, sentences};
use super::{Kind, Scope};

/// The most characters a statement has (B4). What is longer stays in the episodic memory of its message.
pub const LONGEST: usize = 200;

/// A subject with more characters has no key: it is a sentence, and will not be met again in the same words.
const LONGEST_KEY: usize = 48;

/// What a person states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// In the person's own words, at most [`LONGEST`] characters.
    pub content: String,
    /// Where it applies.
    pub scope: Scope,
    /// What it is.
    pub kind: Kind,
    /// 1–5 (B6).
    pub importance: u8,
    /// What it is about, `snake_case`; two statements with the same key and different words are a change.
    pub key: Option<String>,
}

/// What a rule finds in a clause; the words are the clause's.
struct Finding {
    scope: Scope,
    kind: Kind,
    importance: u8,
    key: Option<String>,
    /// It opens a wish that the next clause tells: "from now on, …".
    opens: bool,
}

impl Finding {
    fn new(scope: Scope, kind: Kind, importance: u8, key: Option<String>) -> Self {
        Self {
            scope,
            kind,
            importance,
            key,
            opens: false,
        }
    }

    fn preference(key: Option<String>) -> Self {
        Self::new(Scope::UserProfile, Kind::Preference, 4, key)
    }

    fn opening() -> Self {
        Self {
            opens: true,
            ..Self::preference(None)
        }
    }

    fn fact(scope: Scope, importance: u8, key: Option<String>) -> Self {
        Self::new(scope, Kind::Fact, importance, key)
    }

    fn decision() -> Self {
        Self::new(Scope::ProjectContext, Kind::Decision, 4, None)
    }

    fn state() -> Self {
        Self::new(Scope::TaskState, Kind::TemporaryState, 3, None)
    }
}

/// The statements of a text, in order.
pub fn statements(text: &str) -> Vec<Statement> {
    let spoken = spoken(text);
    let mut out = Vec::new();
    for sentence in sentences(&spoken) {
        if !is_question(sentence) {
            in_sentence(sentence, &mut out);
        }
    }
    out
}

/// The text without code and block quotes.
fn spoken(text: &str) -> String {
    let mut fenced = false;
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let bare = line.trim_start();
        if bare.starts_with("```") || bare.starts_with("~~~") {
            fenced = !fenced;
        } else if !fenced && !bare.starts_with('>') {
            out.push_str(line);
        }
        out.push('\n');
    }
    out
}

/// A statement reaches from the clause that opens it to the next clause that opens another.
fn in_sentence(sentence: &str, out: &mut Vec<Statement>) {
    let mut open: Option<(usize, Finding)> = None;
    let mut kept = false;
    for (start, clause) in clauses(sentence) {
        let (lead, asked, finding) = finding(clause, kept);
        // "Please remember: …" asks for the clause behind it.
        kept = asked && lead == clause.len();
        open = match (open, finding) {
            (Some((from, opening)), finding) if opening.opens => {
                let key = finding
                    .and_then(|f| f.key)
                    .or_else(|| answer_key(&folded(clause)));
                Some((from, Finding::preference(key)))
            }
            (open, None) => open,
            (open, Some(finding)) => {
                if let Some((from, before)) = open {
                    push(&sentence[from..start], before, out);
                }
                Some((start + lead, finding))
            }
        };
    }
    if let Some((from, finding)) = open.filter(|(_, finding)| !finding.opens) {
        push(&sentence[from..], finding, out);
    }
}

fn push(words: &str, finding: Finding, out: &mut Vec<Statement>) {
    let mut content = words.trim();
    loop {
        let shorter = content
            .trim_end_matches(|c: char| c.is_whitespace() || ".,;!。，；！".contains(c))
            .trim_end_matches(" and")
            .trim_end_matches(" but");
        if shorter == content {
            break;
        }
        content = shorter;
    }
    if content.chars().count() <= LONGEST {
        out.push(Statement {
            content: content.to_owned(),
            scope: finding.scope,
            kind: finding.kind,
            importance: finding.importance,
            key: finding.key,
        });
    }
}

/// Clauses with their offsets: parted at commas, semicolons, dashes and before "and", "but"; not inside quotation marks.
fn clauses(sentence: &str) -> Vec<(usize, &str)> {
    let mut out = Vec::new();
    let mut start = 0;
    let mut quoted: Option<char> = None;
    let mut chars = sentence.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match quoted {
            Some(close) if c == close => quoted = None,
            Some(_) => continue,
            None => quoted = closing_quote(c),
        }
        if quoted.is_some() {
            continue;
        }
        let spaced = chars
            .peek()
            .is_none_or(|&(_, next)| next.is_whitespace() || is_ideographic(next));
        let end = at + c.len_utf8();
        let parts = matches!(c, '，' | '；' | '：' | '—')
            || (matches!(c, ',' | ';' | ':') && spaced)
            || (c == ' '
                && [" and ", " but ", " - "]
                    .iter()
                    .any(|w| sentence[at..].starts_with(w)));
        if parts {
            out.push((start, &sentence[start..at]));
            start = end;
        }
    }
    out.push((start, &sentence[start..]));
    out
}

/// The mark that closes a quotation opened by `c`. A straight apostrophe opens none: it is in "don't".
fn closing_quote(c: char) -> Option<char> {
    match c {
        '"' | '`' => Some(c),
        '“' => Some('”'),
        '「' => Some('」'),
        '『' => Some('』'),
        '«' => Some('»'),
        _ => None,
    }
}

/// What a clause states, after how many of its bytes the statement begins, and whether it asks to keep what it says. `kept`: the clause
/// before asked so.
fn finding(clause: &str, kept: bool) -> (usize, bool, Option<Finding>) {
    let text = folded(clause);
    let chinese = text.chars().any(is_ideographic);
    let (leads, remember) = if chinese {
        (chinese::LEADS, chinese::REMEMBER)
    } else {
        (english::LEADS, english::REMEMBER)
    };
    let opening = strip_leads(&text, leads);
    let lead = opening + strip_leads(&text[opening..], remember);
    let asked = !text[opening..lead].trim().is_empty();
    let words = text[lead..].trim_end_matches(|c: char| !c.is_alphanumeric());
    let found = if chinese {
        chinese::finding(words)
    } else {
        english::finding(words)
    };
    let found = found.or_else(|| {
        let says = if chinese {
            words.chars().count() >= 4
        } else {
            english::says_something(words)
        };
        ((asked || kept) && says).then(|| {
            let personal = if chinese {
                chinese::is_personal(words)
            } else {
                english::is_personal(words)
            };
            let scope = if personal {
                Scope::UserProfile
            } else {
                Scope::ProjectContext
            };
            Finding::fact(scope, 4, None)
        })
    });
    let characters = text[..lead].chars().count();
    let bytes = clause.chars().take(characters).map(char::len_utf8).sum();
    (bytes, asked, found)
}

/// The clause as the rules read it. Character by character, so that positions in the folded text are positions in the clause.
fn folded(clause: &str) -> String {
    clause.chars().map(fold).collect()
}

fn fold(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(c as u32 - 0xfee0)
            .unwrap_or(c)
            .to_ascii_lowercase(),
        '\u{3000}' | '\u{a0}' => ' ',
        '’' | '‘' => '\'',
        _ => c.to_ascii_lowercase(),
    }
}

/// Takes any of the openings off, again and again; answers the length taken.
fn strip_leads(text: &str, leads: &[&str]) -> usize {
    let mut at = 0;
    loop {
        at += text[at..].len() - text[at..].trim_start().len();
        match leads.iter().find(|lead| text[at..].starts_with(**lead)) {
            Some(lead) => at += lead.len(),
            None => return at,
        }
    }
}

/// A subject as a key: `snake_case` of its words, with the Chinese names of common subjects under their English ones, so that a change is
/// seen in whatever language it is told.
fn key(subject: &str) -> Option<String> {
    let normal = normalise(&subject.replace("'s", ""));
    let known = SUBJECTS
        .iter()
        .find(|(names, _)| names.contains(&normal.as_str()));
    let name = known.map_or(normal.as_str(), |(_, name)| name);
    (1..=LONGEST_KEY)
        .contains(&name.chars().count())
        .then(|| name.replace(' ', "_"))
}

/// The key of liking or disliking something: the same for both, so that a change of mind is seen.
fn taste_key(object: &str) -> Option<String> {
    key(object).map(|object| format!("taste_{object}"))
}

/// Common subjects under one name.
const SUBJECTS: &[(&[&str], &str)] = &[
    (&["预算", "项目预算"], "budget"),
    (
        &["截止日期", "截止时间", "交付日期", "due date"],
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
    (&["上线日期", "发布日期", "launch date"], "release_date"),
    (&["团队规模"], "team_size"),
    (&["目标"], "goal"),
    (&["客户"], "client"),
    (&["项目名", "项目名称"], "project_name"),
];

/// The key of how answers are to look, by what the clause names: two wishes about the same are a change of mind.
fn answer_key(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).collect();
    let names = |name: &&str| {
        if name.is_ascii() {
            words.iter().any(|word| word.trim_end_matches('s') == *name)
        } else {
            text.contains(name)
        }
    };
    ANSWER
        .iter()
        .find(|(_, all)| all.iter().any(&names))
        .map(|(key, _)| (*key).to_owned())
}

const ANSWER: &[(&str, &[&str])] = &[
    (
        "answer_language",
        &[
            "chinese", "english", "french", "german", "japanese", "spanish", "mandarin",
            "language", "中文", "英文", "英语", "汉语", "日语", "法语", "德语", "语言",
        ],
    ),
    (
        "answer_format",
        &[
            "table",
            "bullet",
            "list",
            "markdown",
            "json",
            "prose",
            "paragraph",
            "plaintext",
            "表格",
            "列表",
            "要点",
            "段落",
            "纯文本",
        ],
    ),
    (
        "answer_length",
        &[
            "short", "brief", "concise", "detailed", "long", "verbose", "简短", "简洁", "详细",
            "简要", "精简",
        ],
    ),
];

#[cfg(test)]
mod tests;
