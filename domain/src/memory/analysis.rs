//! Text as terms, the same for what is stored and for what is asked.
//!
//! Folding: Unicode NFKC (full-width and half-width forms), lower case, Latin accents off. Latin script is stemmed (Porter2). A run of
//! Han, kana or hangul becomes its overlapping pairs of characters, the usual segmentation of a search index without a dictionary (Lucene's
//! `CJKAnalyzer` does the same); a run of one character is a term by itself. Every other script is taken word by word. Dates meet
//! whatever their form: "May 2nd", "2 May", "2024-05-02" and "5月2日" all hold `may` and `2`.

use std::sync::LazyLock;

use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{decompose_canonical, is_combining_mark};

use super::words::{CHINESE_PARTICLES, CHINESE_STOP, ENGLISH_STOP, MONTHS};

/// A term longer than this is cut: no word is, and the stores keep terms in index keys.
const LONGEST_TERM: usize = 64;

static STEMMER: LazyLock<Stemmer> = LazyLock::new(|| Stemmer::create(Algorithm::English));

/// The terms of a text, with repeats, in their order.
pub fn terms(text: &str) -> Vec<String> {
    let folded = fold(text);
    let mut out = Vec::new();
    let mut rest = folded.as_str();
    while let Some(start) = rest.find(|c| class(c) != Class::Other) {
        rest = &rest[start..];
        let first = rest.chars().next().map_or(Class::Other, class);
        let end = match first {
            Class::Ideographic => rest.find(|c| class(c) != Class::Ideographic),
            _ => word_end(rest),
        }
        .unwrap_or(rest.len());
        let run = &rest[..end];
        rest = &rest[end..];
        if first == Class::Ideographic {
            push_pairs(run, &mut out);
        } else if let Some(taken) = push_date(run, rest, &mut out) {
            rest = &rest[taken..];
        } else {
            push_word(run, &mut out);
        }
    }
    out
}

/// A text without what does not change its meaning: folded, and only its letters and digits, words parted by one space. Two texts
/// with the same normal form say the same.
pub fn normalise(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut gap = false;
    for c in fold(text).chars() {
        match class(c) {
            Class::Other => gap = true,
            class => {
                // Spaces between ideographs are typesetting, not words.
                let ideographic = class == Class::Ideographic
                    || out.chars().next_back().is_some_and(is_ideographic);
                if gap && !out.is_empty() && !ideographic {
                    out.push(' ');
                }
                gap = false;
                out.push(c);
            }
        }
    }
    out
}

/// NFKC, lower case, one kind of apostrophe, Latin accents off. Accents of other scripts tell letters apart and stay.
pub fn fold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.nfkc().flat_map(char::to_lowercase) {
        match c {
            '\u{2019}' | '\u{2018}' | '\u{02bc}' => out.push('\''),
            '\u{300}'..='\u{36f}' => {}
            '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' => {
                let mut base = None;
                decompose_canonical(c, |part| {
                    base.get_or_insert(part);
                });
                out.push(base.unwrap_or(c));
            }
            _ => out.push(c),
        }
    }
    out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Ideographic,
    Word,
    Other,
}

fn class(c: char) -> Class {
    if is_ideographic(c) {
        Class::Ideographic
    } else if c.is_alphanumeric() || is_combining_mark(c) {
        Class::Word
    } else {
        Class::Other
    }
}

/// Han, kana or hangul: scripts whose words this analysis does not know.
pub fn is_ideographic(c: char) -> bool {
    is_han(c)
        || matches!(c, '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}' | '\u{30fc}'..='\u{30ff}' // kana
            | '\u{1100}'..='\u{11ff}' | '\u{ac00}'..='\u{d7a3}') // hangul
}

/// A Han character.
pub fn is_han(c: char) -> bool {
    matches!(c, '\u{3005}'..='\u{3007}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
}

/// Where the word at the start of `text` ends. An apostrophe between letters and a point or comma between digits belong to it.
fn word_end(text: &str) -> Option<usize> {
    let mut before: Option<char> = None;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if class(c) != Class::Word {
            let after = chars.peek().map(|&(_, next)| next);
            let inner = match (before, c, after) {
                (Some(b), '\'', Some(a)) => {
                    b.is_alphabetic() && a.is_alphabetic() && !is_ideographic(a)
                }
                (Some(b), '.' | ',', Some(a)) => b.is_ascii_digit() && a.is_ascii_digit(),
                _ => false,
            };
            if !inner {
                return Some(at);
            }
        }
        before = Some(c);
    }
    None
}

fn push_word(word: &str, out: &mut Vec<String>) {
    if ENGLISH_STOP.contains(&word) {
        return;
    }
    let digits = word.trim_end_matches(|c: char| !c.is_ascii_digit());
    let term = match &word[digits.len()..] {
        "" if word.bytes().any(|b| b == b'.' || b == b',') => word.replace(',', ""),
        "" | "st" | "nd" | "rd" | "th"
            if digits.bytes().all(|b| b.is_ascii_digit()) && !digits.is_empty() =>
        {
            match digits.trim_start_matches('0') {
                "" => "0".to_owned(),
                number => number.to_owned(),
            }
        }
        _ => match MONTHS.iter().position(|forms| forms.contains(&word)) {
            Some(month) => month_term(month),
            None => STEMMER.stem(word.trim_matches('\'')).into_owned(),
        },
    };
    out.push(term.chars().take(LONGEST_TERM).collect());
}

/// The term of a month, counted from 0.
fn month_term(month: usize) -> String {
    STEMMER.stem(MONTHS[month][0]).into_owned()
}

/// Takes the date that starts with the number `run`, followed by `rest`: `2024-05-02`, `2024/5/2`, or a number before 年, 月, 日 or 号.
/// Answers how much of `rest` belongs to it.
fn push_date(run: &str, rest: &str, out: &mut Vec<String>) -> Option<usize> {
    let number: usize = run.parse().ok()?;
    let next = rest.chars().next()?;
    match next {
        '年' | '日' | '号' => {
            out.push(number.to_string());
            Some(next.len_utf8())
        }
        '月' if (1..=12).contains(&number) => {
            out.push(month_term(number - 1));
            Some(next.len_utf8())
        }
        '-' | '/' if run.len() == 4 => {
            let (month, tail) = number_after(rest, next)?;
            let (day, tail) = number_after(tail, next)?;
            if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
                return None;
            }
            out.extend([number.to_string(), month_term(month - 1), day.to_string()]);
            Some(rest.len() - tail.len())
        }
        _ => None,
    }
}

/// The number of one or two digits that follows `mark` at the start of `text`, and what comes after it.
fn number_after(text: &str, mark: char) -> Option<(usize, &str)> {
    let text = text.strip_prefix(mark)?;
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    (1..=2)
        .contains(&end)
        .then(|| Some((text[..end].parse().ok()?, &text[end..])))?
}

/// Pairs of neighbours. Particles part the run, since a pair across them is no word.
fn push_pairs(run: &str, out: &mut Vec<String>) {
    for piece in run.split(|c| CHINESE_PARTICLES.contains(&c)) {
        let mut chars = piece.chars();
        let Some(mut left) = chars.next() else {
            continue;
        };
        let mut alone = true;
        for right in chars {
            let pair: String = [left, right].iter().collect();
            if !CHINESE_STOP.contains(&pair.as_str()) {
                out.push(pair);
            }
            alone = false;
            left = right;
        }
        if alone && !CHINESE_STOP.contains(&piece) {
            out.push(piece.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    fn has(text: &str, term: &str) -> bool {
        terms(text).iter().any(|t| t == term)
    }

    #[test]
    fn full_width_and_accented_text_meets_its_plain_form() {
        assert_eq!(terms("ＡＰＩ　Ｖ２"), terms("api v2"));
        assert_eq!(terms("Café Zürich"), terms("cafe zurich"));
        assert_eq!(terms("ｶﾀｶﾅ"), terms("カタカナ"));
        assert_ne!(
            terms("мой"),
            terms("мои"),
            "accents of other scripts tell letters apart"
        );
    }

    #[test]
    fn english_words_meet_their_inflected_forms() {
        assert_eq!(terms("deployed databases"), terms("deploying database"));
        assert_eq!(terms("Melanie’s painting"), terms("Melanie painted"));
    }

    #[test]
    fn dates_meet_whatever_their_form() {
        let mut expected = vec!["2".to_owned(), "may".to_owned()];
        for form in [
            "May 2nd",
            "2 May",
            "02 may",
            "5月2日",
            "５月２号",
            "the 2nd of May",
        ] {
            let mut found = terms(form);
            found.sort();
            assert_eq!(found, expected, "{form}");
        }
        expected.insert(1, "2024".to_owned());
        for form in ["2024-05-02", "2024/5/2", "May 2, 2024", "2024年5月2日"] {
            let mut found = terms(form);
            found.sort();
            assert_eq!(found, expected, "{form}");
        }
    }

    #[test]
    fn numbers_keep_their_value() {
        assert_eq!(terms("1,000 3.14 007 300k"), ["1000", "3.14", "7", "300k"]);
        assert_eq!(terms("2024-13-45"), ["2024", "13", "45"]);
    }

    #[test]
    fn chinese_is_found_by_pairs_and_a_lone_character_by_itself() {
        assert_eq!(terms("项目预算"), ["项目", "目预", "预算"]);
        assert!(has("预算是30万", "预算"));
        assert!(has("我的猫", "猫"));
        assert!(has("お好み焼き", "好み"));
        assert!(has("안녕하세요", "안녕"));
    }

    #[test]
    fn function_words_are_no_terms() {
        assert!(terms("what is the of and to it?").is_empty());
        assert!(terms("我的呢？").is_empty());
    }

    #[test]
    fn the_normal_form_ignores_case_width_and_punctuation() {
        assert_eq!(
            normalise("  I prefer TABLES!"),
            normalise("i prefer　tables.")
        );
        assert_eq!(normalise("我 喜欢，表格。"), "我喜欢表格");
        assert_ne!(normalise("I like tea"), normalise("I like teas"));
    }

    proptest! {
        #[test]
        fn no_term_is_empty_or_long(text in "\\PC{0,200}") {
            prop_assert!(terms(&text).iter().all(|t| !t.is_empty() && t.chars().count() <= LONGEST_TERM));
        }
    }
}
