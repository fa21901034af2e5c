//! Values that a person calls a password, a token or a key.

use std::ops::Range;

/// What is named so is secret whatever it looks like.
const STRONG: [&str; 7] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pwd",
    "密码",
    "口令",
];
/// What is named so is secret if it looks like it: these words have everyday meanings too.
#[rustfmt::skip]
const WEAK: [&str; 17] = [
    "secret", "token", "api key", "api_key", "api-key", "apikey", "access key", "access_key", "secret_key",
    "private key", "private_key", "credential", "pin", "密钥", "私钥", "令牌", "验证码",
];
/// Words after "the password is" that are no password.
#[rustfmt::skip]
const NO_VALUE: [&str; 46] = [
    "a", "an", "the", "not", "no", "in", "on", "at", "by", "for", "to", "too", "so", "very", "required", "wrong",
    "incorrect", "invalid", "missing", "expired", "stored", "hashed", "encrypted", "weak", "strong", "secure", "safe",
    "empty", "optional", "what", "never", "always", "used", "sent", "kept", "reset", "changed", "my", "your", "our",
    "this", "that", "it", "something", "needed", "there",
];
const NO_VALUE_CHINESE: [&str; 16] = [
    "什么", "多少", "不", "错", "对的", "必", "需", "过期", "哪", "怎", "由", "一种", "一个",
    "用来", "为了", "正确",
];
/// What may stand between a Chinese name and its value, longest first.
#[rustfmt::skip]
const CHINESE_LINKS: [&str; 14] = [
    "现在是", "已经改成", "已改成", "改成了", "改成", "改为", "设置为", "设成", "设为", "就是", "还是", "是", "为",
    "叫",
];

/// A password, with the words that may follow it, is no longer than this, in bytes. Ours: it bounds the work on a hostile text.
const LONGEST_VALUE: usize = 4_096;
/// What stands between a name and its verb is no longer than this, in bytes.
const LONGEST_PHRASE: usize = 128;

pub(super) fn values(text: &str, found: &mut Vec<Range<usize>>) {
    let lower = text.to_ascii_lowercase();
    let names = STRONG
        .map(|n| (n, true))
        .into_iter()
        .chain(WEAK.map(|n| (n, false)));
    for (name, strong) in names {
        // A name inside a value that is taken out anyway is not looked at: each part of a text is looked through once a name.
        let mut covered = 0;
        for (at, _) in lower.match_indices(name) {
            let end = at + name.len();
            if at < covered {
                continue;
            }
            if name.is_ascii() && !stands_alone(&lower, at, end) {
                continue;
            }
            if let Some(value) = after(text, &lower, end, strong, lower[..at].ends_with("--")) {
                covered = value.end;
                found.push(value);
            } else if let Some(value) = before(text, &lower, at, strong) {
                found.push(value);
            }
        }
    }
}

/// Whether a name is a word of its own, or the end of one such as `DB_PASSWORD`.
fn stands_alone(lower: &str, start: usize, end: usize) -> bool {
    let before = lower[..start].chars().next_back();
    let after = lower[end..].chars().next();
    !before.is_some_and(|c| c.is_ascii_alphanumeric())
        && !after.is_some_and(|c| c.is_ascii_alphanumeric() && c != 's')
}

/// The value behind a name that ends at `at`.
fn after(text: &str, lower: &str, at: usize, strong: bool, option: bool) -> Option<Range<usize>> {
    let at = if lower[at..].starts_with('s') && !lower[at..].starts_with("s ") {
        at + 1
    } else {
        at
    };
    let (start, link) = link(lower, at)?;
    let start = skip(text, start, char::is_whitespace);
    if let Some(quoted) = quoted(text, start) {
        return Some(quoted);
    }
    let token = token(text, start);
    let value = &text[token.clone()];
    if value.is_empty() || is_no_value(value) {
        return None;
    }
    match link {
        Link::Sign if strong || looks_secret(value) => Some(token),
        Link::Copula if strong => Some(start..clause_end(text, token.end, LONGEST_VALUE)),
        Link::Copula | Link::Aim if looks_secret(value) => Some(token),
        Link::None if option || looks_secret(value) && value.chars().count() >= 4 => Some(token),
        _ => None,
    }
}

enum Link {
    /// `:` or `=`.
    Sign,
    /// "is", 是.
    Copula,
    /// "to", as in "changed to".
    Aim,
    /// Nothing but a space.
    None,
}

/// How a name and its value are joined, and where the value may start.
fn link(lower: &str, at: usize) -> Option<(usize, Link)> {
    let bare = skip(lower, at, |c| c.is_whitespace() || "\"'`*_".contains(c));
    let rest = &lower[bare..];
    if let Some(sign) = rest
        .chars()
        .next()
        .filter(|c| matches!(c, ':' | '=' | '：' | '＝'))
    {
        let start = bare + sign.len_utf8();
        return Some((skip(lower, start, |c| c == '=' || c == '>'), Link::Sign));
    }
    if let Some(link) = CHINESE_LINKS.iter().find(|link| rest.starts_with(**link)) {
        return Some((
            skip(lower, bare + link.len(), |c| "：:，, ".contains(c)),
            Link::Copula,
        ));
    }
    if let Some(tail) = ["'s ", "’s "].iter().find(|s| lower[at..].starts_with(**s)) {
        return Some((at + tail.len(), Link::Copula));
    }
    // "my password for the bank is …": a short phrase may come between.
    let clause = &lower[at..clause_end(lower, at, LONGEST_PHRASE)];
    let between = [
        " for ",
        " of ",
        " on ",
        " at ",
        " to ",
        " now ",
        " currently ",
        " is ",
        " was ",
    ];
    if between.iter().any(|b| clause.starts_with(b)) {
        for copula in [" is ", " was "] {
            if let Some(i) = clause.find(copula).filter(|i| *i <= 60) {
                return Some((at + i + copula.len(), Link::Copula));
            }
        }
    }
    for aim in [" to ", " as "] {
        if clause.starts_with(aim) {
            return Some((at + aim.len(), Link::Aim));
        }
    }
    let next = rest.chars().next()?;
    (next.is_ascii_graphic()).then_some((bare, Link::None))
}

/// The value before its name: "hunter2 is my password", "123456是我的密码".
fn before(text: &str, lower: &str, at: usize, strong: bool) -> Option<Range<usize>> {
    let head = lower[..at].trim_end();
    let links = [
        " is my",
        " is the",
        " is our",
        " as my",
        " as the",
        "是我的",
        "是我",
        "是",
        "作为",
        "做",
    ];
    let end = links
        .iter()
        .find_map(|link| head.strip_suffix(link))?
        .trim_end()
        .len();
    let start = text[..end]
        .char_indices()
        .rev()
        .take_while(|&(_, c)| c.is_ascii_graphic())
        .last()
        .map_or(end, |(i, _)| i);
    let value = &text[start..end];
    let secret = if strong {
        value.len() >= 4 && (looks_secret(value) || !is_plain(value))
    } else {
        looks_secret(value)
    };
    secret.then_some(start..end)
}

/// A word of everyday language by its form: letters only, at most the first a capital.
fn is_plain(value: &str) -> bool {
    value.chars().skip(1).all(|c| c.is_ascii_lowercase()) && value.chars().all(char::is_alphabetic)
}

fn looks_secret(value: &str) -> bool {
    let inner = value.trim_end_matches(['.', ',', '!', '?', ';', ')']);
    inner.chars().any(|c| c.is_ascii_digit())
        || (inner.is_ascii() && inner.chars().count() >= 16)
        || (inner.is_ascii() && inner.contains(['@', '#', '$', '%', '^', '&', '*', '!', '_']))
}

fn is_no_value(value: &str) -> bool {
    let word = value
        .trim_matches(|c: char| !c.is_alphanumeric())
        .to_ascii_lowercase();
    (word.is_empty() && value.chars().count() < 4)
        || NO_VALUE.contains(&word.as_str())
        || NO_VALUE_CHINESE.iter().any(|w| value.starts_with(w))
}

/// The text from there on, `most` bytes at the most.
fn bounded(text: &str, from: usize, most: usize) -> &str {
    &text[from..text.floor_char_boundary(from.saturating_add(most))]
}

fn skip(text: &str, from: usize, matches: impl Fn(char) -> bool) -> usize {
    text[from..]
        .find(|c| !matches(c))
        .map_or(text.len(), |i| from + i)
}

/// The inside of the quotes that open at `at`.
fn quoted(text: &str, at: usize) -> Option<Range<usize>> {
    let open = text[at..].chars().next()?;
    let close = match open {
        '"' | '\'' | '`' => open,
        '“' => '”',
        '‘' => '’',
        '「' => '」',
        '『' => '』',
        _ => return None,
    };
    let start = at + open.len_utf8();
    let len = bounded(text, start, LONGEST_VALUE).find(close)?;
    (len > 0).then_some(start..start + len)
}

/// The word at `at`: up to a space or a Chinese mark; one in Latin script also ends where Chinese goes on.
fn token(text: &str, at: usize) -> Range<usize> {
    let latin = text[at..].chars().next().is_some_and(|c| c.is_ascii());
    let end = text[at..]
        .find(|c: char| {
            c.is_whitespace() || "，。；！？、）”」』\"'`".contains(c) || (latin && !c.is_ascii())
        })
        .map_or(text.len(), |i| at + i);
    let word = text[at..end].trim_end_matches(['.', ',', ';', ')']);
    at..at + word.len()
}

/// Where the clause goes no further: a mark before a space, a line's end, a Chinese mark, or "and", "but".
/// Looked through for `most` bytes at the most.
fn clause_end(text: &str, from: usize, most: usize) -> usize {
    let rest = bounded(text, from, most);
    for (i, c) in rest.char_indices() {
        let next = text[from + i + c.len_utf8()..].chars().next();
        let ends = match c {
            '\n' | '，' | '。' | '；' | '！' | '？' => true,
            '.' | ',' | ';' | '!' | '?' => next.is_none_or(char::is_whitespace),
            ' ' => [" and ", " but ", " so "]
                .iter()
                .any(|w| text[from + i..].starts_with(w)),
            _ => false,
        };
        if ends {
            return from + i;
        }
    }
    from + rest.len()
}
