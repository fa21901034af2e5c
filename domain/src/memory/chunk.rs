//! Messages as chunks of 200–500 characters (B5): long enough to say something, short enough to be about one thing.

use unicode_normalization::char::is_combining_mark;

use super::sentence::{closes, ends_between};

/// The most characters a chunk has (B5).
pub const LONGEST: usize = 500;
/// The fewest characters a chunk of a longer message has (B5).
pub const SHORTEST: usize = 200;

const ZERO_WIDTH_JOINER: char = '\u{200d}';

/// The chunks of a message, in order, trimmed, none empty; together they hold every character of it but spaces at their edges.
///
/// Up to [`LONGEST`] characters are one chunk. A longer text is cut between [`SHORTEST`] and [`LONGEST`] at the best place there is:
/// the first end of a paragraph, else the last end of a line, sentence or clause, else the last space. A run without any of these is cut at
/// [`LONGEST`], or as much earlier as leaves the rest long enough.
pub fn chunks(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.trim().chars().collect();
    let mut out = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        if chars[at].is_whitespace() {
            at += 1;
            continue;
        }
        let rest = chars.len() - at;
        let end = if rest <= LONGEST {
            chars.len()
        } else {
            cut(
                &chars,
                at + SHORTEST,
                (at + LONGEST).min(chars.len() - SHORTEST),
            )
        };
        let chunk: String = chars[at..end].iter().collect();
        out.push(chunk.trim_end().to_owned());
        at = end;
    }
    out
}

/// The best place to cut from `first` to `last`.
fn cut(chars: &[char], first: usize, last: usize) -> usize {
    let places = || first..=last;
    places()
        .find(|&i| ends_paragraph(chars, i))
        .or_else(|| places().rev().find(|&i| chars[i] == '\n'))
        .or_else(|| places().rev().find(|&i| ends_sentence(chars, i)))
        .or_else(|| places().rev().find(|&i| ends_clause(chars, i)))
        .or_else(|| places().rev().find(|&i| chars[i].is_whitespace()))
        .or_else(|| places().rev().find(|&i| !splits_character(chars, i)))
        .unwrap_or(last)
}

fn ends_paragraph(chars: &[char], i: usize) -> bool {
    chars[i] == '\n'
        && chars[i + 1..]
            .iter()
            .take_while(|c| c.is_whitespace())
            .any(|&c| c == '\n')
}

fn ends_sentence(chars: &[char], i: usize) -> bool {
    if closes(chars[i]) {
        return false;
    }
    let end = chars[..i].iter().rposition(|&c| !closes(c));
    end.is_some_and(|end| ends_between(chars[end], chars.get(end + 1).copied()))
}

fn ends_clause(chars: &[char], i: usize) -> bool {
    match chars[i - 1] {
        '，' | '、' | '；' | '：' => true,
        ',' | ';' | ':' => chars[i].is_whitespace(),
        _ => false,
    }
}

/// Whether a cut at `i` would part what is shown as one character.
fn splits_character(chars: &[char], i: usize) -> bool {
    is_combining_mark(chars[i])
        || chars[i] == ZERO_WIDTH_JOINER
        || chars[i - 1] == ZERO_WIDTH_JOINER
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lengths(text: &str) -> Vec<usize> {
        chunks(text).iter().map(|c| c.chars().count()).collect()
    }

    #[test]
    fn up_to_500_characters_are_one_chunk() {
        assert_eq!(lengths(&"字".repeat(500)), [500]);
        assert_eq!(chunks("  short \n\n text "), ["short \n\n text"]);
        assert!(chunks(" \n ").is_empty());
    }

    #[test]
    fn a_run_without_a_break_is_cut_at_500() {
        assert_eq!(lengths(&"x".repeat(1_200)), [500, 500, 200]);
        assert_eq!(lengths(&"字".repeat(600)), [400, 200]);
    }

    #[test]
    fn paragraphs_come_before_sentences() {
        let paragraph = |word: &str| format!("{}.", [word; 50].join(" "));
        let text = format!(
            "{}\n\n{}\n\n{}",
            paragraph("alpha"),
            paragraph("bravo"),
            paragraph("delta")
        );
        assert_eq!(
            chunks(&text),
            [paragraph("alpha"), paragraph("bravo"), paragraph("delta")]
        );
    }

    #[test]
    fn sentences_stay_whole_in_both_languages() {
        for sentence in [
            "Every sentence of this text has the same length, more or less. ",
            "这一句话的长度和别的句子都差不多，没有什么特别的。",
        ] {
            for chunk in chunks(&sentence.repeat(40)) {
                assert!(chunk.ends_with(['.', '。']), "{chunk}");
            }
        }
    }

    #[test]
    fn a_closing_quote_stays_with_its_sentence() {
        let text = format!("{}“好。”{}", "字".repeat(400), "字".repeat(300));
        assert!(chunks(&text)[0].ends_with("。”"));
    }

    proptest! {
        #[test]
        fn together_they_hold_every_character_but_spaces(text in "([a-z]{1,9}[ .,\n]|[一-三]{1,9}[。，]?|\\PC|e\u{301}){0,400}") {
            let bare = |s: &str| s.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            prop_assert_eq!(bare(&chunks(&text).concat()), bare(&text));
        }

        #[test]
        fn each_has_200_to_500_characters(text in "([a-z]{1,9}[ \n]|[一-三]{1,9}[。，]){100,400}") {
            let text = text.trim();
            let lengths = lengths(text);
            prop_assert!(lengths.iter().all(|&n| n <= LONGEST));
            if text.chars().count() > LONGEST {
                prop_assert!(lengths.iter().all(|&n| n + 1 >= SHORTEST), "{:?}", lengths);
            }
        }
    }
}
