//! How a name and its value are joined.

use super::super::MARK;
use super::Text;
use super::value::{LONGEST_PHRASE, bounded, clause_end, looks_secret, skip, token};

/// What joins a name and its value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    /// `:`, `=` or the bar of a table; without a space the name is that of a variable.
    Sign { tight: bool },
    /// "is", 是.
    Copula,
    /// "to", as in "changed to".
    Aim,
    /// A dash between spaces, or an arrow.
    Dash,
    /// The name goes on, as in `SECRET_KEY_BASE=`.
    Suffix,
    /// A comma or a bracket, as in "my password, …, is".
    Apposition,
    /// Nothing but a space.
    None,
}

/// What may stand between a Chinese name and its value, longest first.
#[rustfmt::skip]
const CHINESE: [&str; 46] = [
    "已经改成了", "已经改成", "已经换成", "现在改成", "现在换成", "后来改成", "我改成了", "重新设为", "现在就是", "已改成", "改成了", "换成了", "变成了",
    "设成了", "用的是", "应该是", "分别是", "分别为", "一直是", "现在是", "以前是", "之前是", "原来是", "仍然是", "还是", "都是", "也是", "就是",
    "設定為", "设置成", "设置为", "更新为", "重置为", "修改为", "改成", "改为", "改為", "换成", "变成", "设成", "设为", "就用", "是", "为", "為", "叫",
];
/// What may stand between a name and its verb starts so.
#[rustfmt::skip]
const BETWEEN: [&str; 21] = [
    " for ", " of ", " on ", " at ", " to ", " in ", " from ", " with ", " there ", " here ", " now ", " currently ", " i use ", " we use ", " (", " is", " was",
    " are", " were", " will be", " might be",
];
/// Verbs between a name and its value, in the order in which they are looked for.
#[rustfmt::skip]
const COPULAS: [&str; 10] = [
    " has been changed to ", " was changed to ", " is set to ", " is", " was", " are", " were", " will be", " used to be", " might be",
];
/// Words between the verb and the value.
#[rustfmt::skip]
const ADVERBS: [&str; 17] = [
    "still ", "now ", "currently ", "just ", "only ", "also ", "always ", "actually ", "simply ", "literally ", "probably ", "going to be ",
    "set to ", "changed to ", "as follows", "this", "the following",
];

/// Where the value may start, and how it is joined to the name that ends at `at`.
pub(super) fn link(t: Text<'_>, at: usize) -> Option<(usize, Link)> {
    let Text { lower, .. } = t;
    if let Some(found) = suffix(lower, at) {
        return Some(found);
    }
    let bare = skip(lower, at, |c| {
        c.is_whitespace() || "\"'`*_\\”’」".contains(c)
    });
    let rest = &lower[bare..];
    let tail = &lower[at..];
    if let Some(found) = sign(lower, at, bare) {
        return Some(found);
    }
    if let Some(verb) = CHINESE.iter().find(|verb| rest.starts_with(**verb)) {
        let start = skip(lower, bare + verb.len(), |c| ":，, ".contains(c));
        return Some((start, Link::Copula));
    }
    if let Some(tail) = ["'s ", "’s "].iter().find(|s| tail.starts_with(**s)) {
        return Some((at + tail.len(), Link::Copula));
    }
    // A bracket without a space before it is a call in program text.
    let aside = (rest.starts_with([',', '，']) || bare > at && rest.starts_with(['(', '（']))
        .then(|| skip(lower, bare, |c| ",，(（ ".contains(c)));
    if let Some(start) = aside
        && is_secret_aside(&t.text[token(t.text, start)])
    {
        return Some((start, Link::Apposition));
    }
    if let Some(found) = between(lower, at) {
        return Some(found);
    }
    if let Some(aim) = [" to ", " as "].iter().find(|aim| tail.starts_with(**aim)) {
        return Some((at + aim.len(), Link::Aim));
    }
    let next = rest.chars().next()?;
    let begins_value = next.is_ascii_graphic() && !"()[]{}<>.,;|/\\".contains(next);
    begins_value.then_some((bare, Link::None))
}

/// What was taken out of there is no less an aside.
fn is_secret_aside(value: &str) -> bool {
    looks_secret(value) || value.contains(MARK)
}

fn sign(lower: &str, at: usize, bare: usize) -> Option<(usize, Link)> {
    let rest = &lower[bare..];
    let first = rest.chars().next()?;
    // Two colons part the names of a path in program text.
    if matches!(first, ':' | '=' | '|' | '>') && !rest.starts_with("::") {
        let start = skip(lower, bare + 1, |c| c == '=' || c == '>');
        let tight = bare == at && !lower[start..].starts_with(char::is_whitespace);
        return Some((start, Link::Sign { tight }));
    }
    ["->", "=>", "→", "- ", "– ", "— ", "–", "——", "~ "]
        .iter()
        .find(|dash| bare > at && rest.starts_with(**dash))
        .map(|dash| (bare + dash.len(), Link::Dash))
}

/// `SECRET_KEY_BASE=`, `password-hash:`, and without a sign "password-protected", which has no value.
fn suffix(lower: &str, at: usize) -> Option<(usize, Link)> {
    let rest = lower[at..].strip_prefix(['_', '-', '.'])?;
    rest.starts_with(|c: char| c.is_ascii_alphanumeric())
        .then_some(())?;
    let near = bounded(lower, at, LONGEST_PHRASE);
    let end = at + skip(near, 0, |c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    let bare = skip(lower, end, |c| " \"'".contains(c));
    if lower[bare..].starts_with([':', '=']) {
        Some((bare + 1, Link::Suffix))
    } else {
        Some((at + 1, Link::Suffix))
    }
}

/// "my password for the bank is …": a short phrase may come between.
fn between(lower: &str, at: usize) -> Option<(usize, Link)> {
    let clause = &lower[at..clause_end(lower, at, LONGEST_PHRASE)];
    if !BETWEEN.iter().any(|b| clause.starts_with(b)) {
        return None;
    }
    let copula = COPULAS
        .iter()
        .filter_map(|copula| Some((find_word(clause, copula)?, copula.len())))
        .filter(|(i, _)| *i <= 60)
        .min_by_key(|&(i, len)| (i, usize::MAX - len));
    let sign = clause.find(": ").filter(|i| *i <= 60);
    match (copula, sign) {
        (Some((i, len)), sign) if sign.is_none_or(|s| i < s) => {
            let start = skip(lower, at + i + len, |c| " :".contains(c));
            Some((start, Link::Copula))
        }
        (_, Some(i)) => Some((at + i + 2, Link::Sign { tight: false })),
        _ => None,
    }
}

/// Where such words stand, not as the beginning of longer ones.
fn find_word(text: &str, word: &str) -> Option<usize> {
    text.match_indices(word).map(|(at, _)| at).find(|at| {
        word.ends_with(' ')
            || text[at + word.len()..].starts_with([' ', ':'])
            || text.len() == at + word.len()
    })
}

/// Past words such as "still" and "always", and a colon behind them.
pub(super) fn skip_adverbs(lower: &str, mut at: usize) -> usize {
    while let Some(adverb) = ADVERBS.iter().find(|a| lower[at..].starts_with(**a)) {
        let next = at + adverb.len();
        // "this" stands for the value only before a colon.
        if !adverb.ends_with(' ') && !lower[next..].starts_with(':') {
            break;
        }
        at = skip(lower, next, |c| " :".contains(c));
    }
    at
}

/// Whether "to" behind a name says what it was set to: "I changed my password to …".
pub(super) fn is_set(lower: &str, name_at: usize) -> bool {
    const VERBS: [&str; 6] = ["chang", "set", "reset", "update", "switch", "rotate"];
    let from = lower.floor_char_boundary(name_at.saturating_sub(40));
    lower[from..name_at]
        .split_whitespace()
        .any(|word| VERBS.iter().any(|verb| word.starts_with(verb)))
}

/// Whether a login stands shortly before: "user bob pass …".
pub(super) fn follows_login(lower: &str, name_at: usize) -> bool {
    const LOGINS: [&str; 7] = ["user", "login", "email", "account", "账号", "帐号", "用户"];
    let from = lower.floor_char_boundary(name_at.saturating_sub(64));
    LOGINS
        .iter()
        .any(|login| lower[from..name_at].contains(login))
}
