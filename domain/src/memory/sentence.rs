//! Where sentences end, and which of them only ask.

use std::ops::Range;

use super::analysis::{fold, is_ideographic};

/// Marks that end a sentence wherever they stand.
const FULL_STOPS: [char; 7] = ['。', '！', '？', '…', '!', '?', '\n'];
/// What may close behind a full stop and still belongs to the sentence.
const CLOSING: [char; 11] = ['"', '\'', ')', ']', '”', '’', '」', '』', '）', '》', '】'];

/// Whether a sentence ends between the character `before` and what follows. A point ends one only before a space or a closing mark, so
/// that numbers, addresses and names of files stay whole.
pub(super) fn ends_between(before: char, after: Option<char>) -> bool {
    FULL_STOPS.contains(&before)
        || (before == '.' && after.is_none_or(|c| c.is_whitespace() || closes(c)))
}

/// Whether the character may close behind a full stop.
pub(super) fn closes(c: char) -> bool {
    CLOSING.contains(&c)
}

/// The sentences of a text, trimmed, with their marks; none is empty.
pub fn sentences(text: &str) -> Vec<&str> {
    ranges(text).into_iter().map(|range| &text[range]).collect()
}

/// Where the sentences of a text stand in it, in bytes.
pub(super) fn ranges(text: &str) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let mut start = 0;
    let mut ended = false;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let after = chars.peek().map(|&(_, next)| next);
        let end = ends_between(c, after);
        if ended && !end && !closes(c) {
            push(text, start..at, &mut out);
            start = at;
            ended = false;
        }
        // A closing mark keeps the end that came before it.
        ended |= end;
    }
    push(text, start..text.len(), &mut out);
    out
}

fn push(text: &str, range: Range<usize>, out: &mut Vec<Range<usize>>) {
    let sentence = &text[range.clone()];
    let start = range.end - sentence.trim_start().len();
    let sentence = sentence.trim();
    if !sentence.is_empty() {
        out.push(start..start + sentence.len());
    }
}

/// Words with which an English question opens, and those that follow one.
const ASKING: [&str; 9] = [
    "what", "who", "when", "where", "why", "how", "which", "whose", "whom",
];
const AUXILIARY: [&str; 22] = [
    "is", "are", "was", "were", "am", "do", "does", "did", "can", "could", "would", "should",
    "will", "shall", "may", "might", "has", "have", "had", "much", "many", "long",
];
/// Words that make a Chinese sentence a question without a mark, and particles that end one.
#[rustfmt::skip]
const CHINESE_ASKING: [&str; 13] = [
    "什么", "多少", "怎么", "怎样", "如何", "哪", "谁", "是不是", "是否", "有没有", "能不能", "为何", "几点",
];
const CHINESE_ENDING: [char; 3] = ['吗', '呢', '么'];

/// Whether a sentence asks: by its mark, or by its words where the mark was left out.
pub fn is_question(sentence: &str) -> bool {
    let bare = sentence.trim_end_matches(|c: char| closes(c) || c.is_whitespace());
    if bare.ends_with(['?', '？']) {
        return true;
    }
    let folded = fold(bare);
    if folded.chars().any(is_ideographic) {
        let end = folded.trim_end_matches(|c: char| !c.is_alphanumeric());
        return end.ends_with(CHINESE_ENDING) || CHINESE_ASKING.iter().any(|w| folded.contains(w));
    }
    let mut words = folded
        .split(|c: char| !c.is_alphanumeric())
        .filter(|w| !w.is_empty());
    words.next().is_some_and(|w| ASKING.contains(&w))
        && words.next().is_some_and(|w| AUXILIARY.contains(&w))
}

/// Whether a text does nothing but ask.
pub fn only_asks(text: &str) -> bool {
    let all = sentences(text);
    !all.is_empty() && all.into_iter().all(is_question)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sentences_end_at_full_stops_of_both_languages() {
        assert_eq!(
            sentences("I like tea. You don't! Why?\nSo"),
            ["I like tea.", "You don't!", "Why?", "So"]
        );
        assert_eq!(
            sentences("我喜欢茶。你呢？好！"),
            ["我喜欢茶。", "你呢？", "好！"]
        );
        assert_eq!(
            sentences("He said \"Go.\" Then left..."),
            ["He said \"Go.\"", "Then left..."]
        );
        assert_eq!(
            sentences("v1.2 is at example.com/a.txt"),
            ["v1.2 is at example.com/a.txt"]
        );
    }

    #[test]
    fn questions_are_known_by_mark_or_words() {
        for asks in [
            "Is it?",
            "\"Really?\"",
            "what is my budget",
            "我的预算是多少",
            "你喜欢猫吗",
            "How many cats do I have",
            "真的？",
        ] {
            assert!(is_question(asks), "{asks}");
        }
        for tells in [
            "My budget is 300k.",
            "我喜欢猫。",
            "What a day!",
            "Do not use emojis.",
            "",
        ] {
            assert!(!is_question(tells), "{tells}");
        }
        assert!(only_asks("Where? And when?"));
        assert!(!only_asks("I have 300k. Is it enough?"));
        assert!(!only_asks("  "));
    }

    proptest! {
        #[test]
        fn no_character_but_space_is_lost(text in "[a-z .!?。！？\"”\n]{0,80}") {
            let joined: String = sentences(&text).concat();
            let bare = |s: &str| s.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            prop_assert_eq!(bare(&joined), bare(&text));
        }
    }
}
