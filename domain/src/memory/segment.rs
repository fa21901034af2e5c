//! Where a message is cut so that what it states of a key stands alone.
//!
//! A sentence that says something of a key is a segment of its own: when it is superseded, nothing else of the message goes with it. So is what
//! looks like an instruction to the model ([`super::injection`]): when it waits for confirmation, nothing else of the message does. The
//! rest is cut into chunks ([`super::chunk`]).

use std::ops::Range;

use super::chunk::{LONGEST, chunks};
use super::injection::Passage;
use super::rules::Statement;

/// A part of a message that becomes one memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment<'a> {
    /// Its words, trimmed.
    pub text: String,
    /// What it states, when it is there for that.
    pub statement: Option<&'a Statement>,
    /// It looks like an instruction to the model.
    pub instructs: bool,
}

/// The segments of a text of which the statements and the passages that look like instructions to the model are known, in order.
///
/// A sentence with several statements is cut where each begins. What would be longer than a chunk is not cut out. What is stated within a passage
/// is part of the passage.
pub fn segments<'a>(
    text: &str,
    statements: &'a [Statement],
    passages: &[Passage],
) -> Vec<Segment<'a>> {
    let mut out = Vec::new();
    let mut at = 0;
    for (range, statement) in apart(keyed(text, statements), passages) {
        rest(&text[at..range.start], false, &mut out);
        at = range.end;
        let Some(statement) = statement else {
            rest(&text[range], true, &mut out);
            continue;
        };
        // What joins it to the statement before is left out.
        let joined = range.start != statement.sentences.start;
        let start = if joined {
            statement.span.start
        } else {
            range.start
        };
        let words = text[start..range.end].trim();
        let words = words.trim_end_matches([',', ';', '，', '；']);
        out.push(Segment {
            text: words.trim_end().to_owned(),
            statement: Some(statement),
            instructs: false,
        });
    }
    rest(&text[at..], false, &mut out);
    out
}

fn rest(text: &str, instructs: bool, out: &mut Vec<Segment<'_>>) {
    let says = text.chars().any(char::is_alphanumeric) || instructs || out.is_empty();
    if says {
        out.extend(chunks(text).into_iter().map(|text| Segment {
            text,
            statement: None,
            instructs,
        }));
    }
}

/// Where segments of their own stand, in order: the passages, and the statements that no passage holds any of.
fn apart<'a>(
    keyed: Vec<(Range<usize>, &'a Statement)>,
    passages: &[Passage],
) -> Vec<(Range<usize>, Option<&'a Statement>)> {
    let mut out: Vec<_> = (passages.iter())
        .map(|passage| (passage.range.clone(), None))
        .collect();
    let mut passages = passages.iter().peekable();
    for (range, statement) in keyed {
        while passages.next_if(|p| p.range.end <= range.start).is_some() {}
        if passages.peek().is_none_or(|p| range.end <= p.range.start) {
            out.push((range, Some(statement)));
        }
    }
    out.sort_by_key(|(range, _)| range.start);
    out
}

/// The places of the statements that have a key.
fn keyed<'a>(text: &str, statements: &'a [Statement]) -> Vec<(Range<usize>, &'a Statement)> {
    let mut out = Vec::new();
    for group in statements.chunk_by(|one, two| one.sentences.start == two.sentences.start) {
        let end = group.iter().map(|s| s.sentences.end).max().unwrap_or(0);
        for (place, statement) in group.iter().enumerate() {
            let start = match place {
                0 => statement.sentences.start,
                _ => group[place - 1].span.end,
            };
            let end = match group.get(place + 1) {
                Some(_) => statement.span.end,
                None => end,
            };
            if statement.key.is_some() && text[start..end].chars().count() <= LONGEST {
                out.push((start..end, statement));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::rules::statements;
    use super::*;
    use proptest::prelude::*;

    fn cut(text: &str) -> Vec<(String, Option<String>)> {
        let stated = statements(text);
        let all = segments(text, &stated, &[]);
        all.into_iter()
            .map(|s| (s.text, s.statement.and_then(|s| s.key.clone())))
            .collect()
    }

    fn expected(all: &[(&str, Option<&str>)]) -> Vec<(String, Option<String>)> {
        all.iter()
            .map(|(text, key)| ((*text).to_owned(), key.map(str::to_owned)))
            .collect()
    }

    #[test]
    fn a_sentence_with_a_key_stands_alone() {
        assert_eq!(
            cut("We met on Monday. By the way, our budget is 300k. The weather was fine."),
            expected(&[
                ("We met on Monday.", None),
                ("By the way, our budget is 300k.", Some("budget")),
                ("The weather was fine.", None),
            ])
        );
        assert_eq!(
            cut("周一开会了。预算是30万。天气不错。"),
            expected(&[
                ("周一开会了。", None),
                ("预算是30万。", Some("budget")),
                ("天气不错。", None),
            ])
        );
    }

    #[test]
    fn a_sentence_with_two_statements_is_cut_between_them() {
        assert_eq!(
            cut("My name is Bob, and I live in Paris!"),
            expected(&[
                ("My name is Bob", Some("name")),
                ("I live in Paris!", Some("home")),
            ])
        );
    }

    #[test]
    fn what_states_nothing_of_a_key_is_cut_as_ever() {
        let text = "I went hiking. It rained all day. ".repeat(30);
        let texts: Vec<String> = cut(&text).into_iter().map(|(text, _)| text).collect();
        assert_eq!(texts, chunks(&text));
        assert_eq!(cut("???"), expected(&[("???", None)]));
        assert_eq!(cut(""), []);
    }

    proptest! {
        #[test]
        fn every_segment_is_in_the_text_and_none_is_long(
            text in "(\\PC|I like tea\\. |my name is Bob|, | and |。|，|预算是30万|word |“|\n){0,60}",
        ) {
            let stated = statements(&text);
            let mut from = 0;
            for segment in segments(&text, &stated, &[]) {
                prop_assert!(!segment.text.is_empty());
                let at = text[from..].find(&segment.text);
                prop_assert!(at.is_some(), "{:?}", segment);
                from += at.unwrap_or(0) + segment.text.len();
                prop_assert!(segment.text.chars().count() <= LONGEST);
            }
        }
    }
}
