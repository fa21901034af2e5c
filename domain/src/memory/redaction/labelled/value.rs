//! What a value is, and where it ends.

use std::ops::Range;

use super::super::MARK;

/// Words after "the password is" that are no password.
#[rustfmt::skip]
const NO_VALUE: [&str; 73] = [
    "a", "an", "the", "not", "no", "in", "on", "at", "by", "for", "to", "too", "so", "very", "required", "wrong",
    "incorrect", "invalid", "missing", "expired", "stored", "hashed", "encrypted", "weak", "strong", "secure", "safe",
    "empty", "optional", "what", "never", "always", "used", "sent", "kept", "reset", "changed", "my", "your", "our",
    "this", "that", "it", "something", "needed", "there", "null", "none", "nil", "true", "false", "undefined", "unknown", "been", "being",
    "visible", "disabled", "enabled", "forgotten", "leaked", "compromised", "unset", "is", "are", "and", "or",
    "updated", "set", "generated", "provided", "valid", "shared", "saved",
];
const NO_VALUE_CHINESE: [&str; 17] = [
    "什么",
    "多少",
    "不",
    "错",
    "对的",
    "必",
    "需",
    "过期",
    "哪",
    "怎",
    "由",
    "一种",
    "一个",
    "用来",
    "为了",
    "正确",
    "安全的",
];
/// What stands between the values of a list, longest first.
#[rustfmt::skip]
const SEPARATORS: [&str; 17] = [
    ", and ", ", or ", " and ", " or ", " & ", " / ", ", ", "; ", "、", "，", "；", "和", "或者", "或", "跟", "以及", "与",
];

/// A password, with the words that may follow it, is no longer than this, in bytes. Ours: it bounds the work on a hostile text.
pub(super) const LONGEST_VALUE: usize = 4_096;
/// A word is judged by its beginning, as many bytes.
pub(super) const LONGEST_WORD: usize = 512;
/// What stands between a name and its verb is no longer than this, in bytes.
pub(super) const LONGEST_PHRASE: usize = 128;

/// A word of everyday language by its form: letters only, at most the first a capital.
pub(in super::super) fn is_plain(value: &str) -> bool {
    value.chars().skip(1).all(|c| c.is_ascii_lowercase()) && value.chars().all(char::is_alphabetic)
}

pub(super) fn looks_secret(value: &str) -> bool {
    // What was taken out of it already says nothing about the rest.
    let value = value.replace(MARK, "");
    if is_call(&value) || value.starts_with("os.environ") || value.starts_with("process.env") {
        return false;
    }
    let inner = value.trim_end_matches(['.', ',', '!', '?', ';', ')']);
    inner.chars().any(|c| c.is_ascii_digit())
        || (inner.is_ascii() && inner.chars().count() >= 16)
        || (inner.is_ascii() && inner.contains(['@', '#', '$', '%', '^', '&', '*', '!', '_']))
}

/// A path, or a name with a bracket behind it, in program text.
fn is_call(value: &str) -> bool {
    let is_name = |s: &str| {
        !s.is_empty()
            && s.bytes()
                .all(|b| b.is_ascii_alphabetic() || b"_.:!".contains(&b))
    };
    value
        .split_once(['(', '['])
        .is_some_and(|(name, _)| is_name(name))
        || value
            .split_once("::")
            .is_some_and(|(name, _)| is_name(name))
}

/// Letters and digits without an order that a reader could see.
pub(super) fn looks_random(value: &str) -> bool {
    value.len() >= 8
        && value.bytes().any(|b| b.is_ascii_digit())
        && value.bytes().any(|b| b.is_ascii_alphabetic())
        && value
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"+/=_.~-$".contains(&b))
}

/// A number that says how many or which: of several any, of one a short one.
pub(super) fn is_count(value: &str, plural: bool) -> bool {
    let digits = value.trim_end_matches(|c: char| !c.is_ascii_digit() && c != 'k');
    let digits = digits.trim_end_matches('k');
    !digits.is_empty()
        && digits
            .bytes()
            .all(|b| b.is_ascii_digit() || b",.".contains(&b))
        && (plural || digits.len() < 6)
}

/// What names a value that stands elsewhere: `$NAME`, `${…}`, `<password>`, `{{ … }}`; or its type in program text.
pub(super) fn is_reference(value: &str) -> bool {
    const TYPES: [&str; 6] = ["&str", "str", "string", "String", "&[u8]", "Option"];
    if TYPES.contains(&value.split(['<', ',', ';', ')']).next().unwrap_or_default()) {
        return true;
    }
    let name = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
    value.starts_with("${")
        || value.starts_with("{{")
        || value
            .strip_prefix('$')
            .is_some_and(|s| name(s) && s.contains('_'))
        || value
            .strip_prefix('<')
            .and_then(|s| s.strip_suffix('>'))
            .is_some_and(|s| {
                s.bytes()
                    .all(|b| b.is_ascii_alphabetic() || b"_- ".contains(&b))
            })
}

pub(super) fn is_no_value(value: &str) -> bool {
    let word = value
        .trim_matches(|c: char| !c.is_alphanumeric())
        .to_ascii_lowercase();
    (word.is_empty() && value.chars().count() < 4)
        || NO_VALUE.contains(&word.as_str())
        || NO_VALUE_CHINESE.iter().any(|w| value.starts_with(w))
}

/// The text from there on, `most` bytes at the most.
pub(in super::super) fn bounded(text: &str, from: usize, most: usize) -> &str {
    &text[from..text.floor_char_boundary(from.saturating_add(most))]
}

pub(in super::super) fn skip(text: &str, from: usize, matches: impl Fn(char) -> bool) -> usize {
    text[from..]
        .find(|c| !matches(c))
        .map_or(text.len(), |i| from + i)
}

/// The inside of the quotes that open at `at`; an escaped quote does not close them.
pub(in super::super) fn quoted(text: &str, at: usize) -> Option<Range<usize>> {
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
    // Quotes that are escaped themselves are closed by such.
    let nested = text[..at].ends_with('\\');
    let mut escaped = false;
    let len = bounded(text, start, LONGEST_VALUE)
        .char_indices()
        .find(|&(_, c)| {
            let closes = c == close && !escaped;
            escaped = !nested && c == '\\' && !escaped;
            closes
        })
        .map(|(i, _)| i)?;
    let inner = text[start..start + len].trim_end_matches('\\').len();
    (inner > 0).then_some(start..start + inner)
}

/// The word at `at`: up to a space or a Chinese mark; one in Latin script also ends where Chinese goes on. Of a longer one the
/// beginning, [`LONGEST_WORD`].
pub(super) fn token(text: &str, at: usize) -> Range<usize> {
    let near = bounded(text, at, LONGEST_WORD);
    let end = at + word_end(near).unwrap_or(near.len());
    let mut word = &text[at..end];
    loop {
        let mut shorter = word.trim_end_matches(['.', ',', ';']);
        for (open, close) in [('(', ')'), ('[', ']'), ('{', '}'), ('<', '>')] {
            if !shorter.contains(open) {
                shorter = shorter.trim_end_matches(close);
            }
        }
        if shorter.len() == word.len() {
            return at..at + word.len();
        }
        word = shorter;
    }
}

/// The rest of a word of which [`token`] told the beginning.
pub(super) fn whole(text: &str, word: Range<usize>) -> Range<usize> {
    if word.len() + 3 < LONGEST_WORD {
        return word;
    }
    let rest = &text[word.end..];
    word.start..word.end + word_end(rest).unwrap_or(rest.len())
}

fn word_end(text: &str) -> Option<usize> {
    let first = text.chars().next()?;
    let from = usize::from(first == '<');
    let latin = first.is_ascii();
    text[from..]
        .find(|c: char| {
            c.is_whitespace() || "，。；！？、）”」』\"'`<|".contains(c) || (latin && !c.is_ascii())
        })
        .map(|end| from + end)
}

/// Whether a clause ends at `at`, or a list goes on.
pub(super) fn ends_clause(text: &str, at: usize) -> bool {
    let rest = text[at..].trim_start_matches(['"', '\'', '`', ')', ']', '.', ',', ';', '!', '?']);
    let ended = rest.len() < text.len() - at;
    rest.is_empty()
        || rest.starts_with('\n')
        || (ended && rest.starts_with(char::is_whitespace))
        || rest.starts_with([
            '，', '。', '；', '！', '？', '、', '）', '|', '<', '了', '吧', '啊',
        ])
        || rest.starts_with("  ")
        || separator(text, at).is_some()
}

/// Where the next value of a list starts.
pub(super) fn separator(text: &str, at: usize) -> Option<usize> {
    let at = skip(text, at, |c| "\"'`”」』".contains(c));
    SEPARATORS
        .iter()
        .find(|s| text[at..].starts_with(**s))
        .map(|s| skip(text, at + s.len(), |c| c == ' '))
}

/// Where the clause goes no further: a mark before a space, a line's end, a Chinese mark, or "and", "but".
/// Looked through for `most` bytes at the most.
pub(super) fn clause_end(text: &str, from: usize, most: usize) -> usize {
    let rest = bounded(text, from, most);
    for (i, c) in rest.char_indices() {
        let next = text[from + i + c.len_utf8()..].chars().next();
        let ends = match c {
            '\n' | '，' | '。' | '；' | '！' | '？' => true,
            '.' | ',' | ';' | '!' | '?' => next.is_none_or(char::is_whitespace),
            ' ' => [" and ", " but ", " so ", " or "]
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
