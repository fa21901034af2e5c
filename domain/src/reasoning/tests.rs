#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod fixtures;
mod soup;

use super::*;

/// Answer and reasoning of a stream that comes in these parts.
fn stream<'a>(parts: impl IntoIterator<Item = &'a str>) -> (String, String) {
    let mut filter = AnswerFilter::new();
    let mut pieces: Vec<Piece> = parts
        .into_iter()
        .flat_map(|part| filter.push(part))
        .collect();
    pieces.extend(filter.finish());
    let (mut answer, mut reasoning) = (String::new(), String::new());
    for piece in pieces {
        if let Piece::Answer(text) | Piece::Reasoning(text) = &piece {
            assert!(!text.is_empty(), "no piece is empty");
        }
        match piece {
            Piece::Answer(text) => answer += &text,
            Piece::Reasoning(text) => reasoning += &text,
            Piece::Void => answer.clear(),
        }
    }
    (answer, reasoning)
}

fn chars(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(|_| true)
}

fn boundaries(text: &str) -> Vec<usize> {
    (0..=text.len())
        .filter(|i| text.is_char_boundary(*i))
        .collect()
}

fn answers(pieces: &[Piece]) -> String {
    pieces
        .iter()
        .filter_map(|piece| match piece {
            Piece::Answer(text) => Some(text.as_str()),
            Piece::Reasoning(_) | Piece::Void => None,
        })
        .collect()
}

#[test]
fn ordinary_text_flows_at_once_but_for_trailing_white_space() {
    let mut filter = AnswerFilter::new();
    for (part, shown) in [
        ("  The ", "The"),
        ("tide", " tide"),
        (" — 潮水 ", " — 潮水"),
        ("`code", " `code"),
        (" more ` and ``", " more ` and ``"),
        (" 3 < 4", " 3 < 4"),
        (" <b>", " <b>"),
        ("\n```rust\nfn", "\n```rust\nfn"),
        (" <think> is code", " <think> is code"),
    ] {
        assert_eq!(answers(&filter.push(part)), shown, "after {part:?}");
    }
    assert_eq!(filter.finish(), []);
}

#[test]
fn only_what_may_become_a_tag_is_held_back() {
    let mut filter = AnswerFilter::new();
    assert_eq!(answers(&filter.push("a <")), "a");
    assert_eq!(answers(&filter.push("thi")), "");
    assert_eq!(answers(&filter.push("s")), " <this");
    assert_eq!(answers(&filter.push("</reason")), "");
    assert_eq!(answers(&filter.finish()), "</reason");
}

#[test]
fn a_tag_behind_an_unmatched_backtick_is_held_until_the_run_is_matched() {
    let mut filter = AnswerFilter::new();
    assert_eq!(answers(&filter.push("Write `<think> x")), "Write `");
    assert_eq!(answers(&filter.push("`")), "", "the run may go on");
    assert_eq!(answers(&filter.push(" to")), "<think> x` to");
}

#[test]
fn a_tag_behind_an_unmatched_backtick_is_removed_when_the_paragraph_ends() {
    let mut filter = AnswerFilter::new();
    assert_eq!(
        answers(&filter.push("A ` is a mark. <think> x\n")),
        "A ` is a mark."
    );
    assert_eq!(filter.push("\n"), [Piece::Reasoning(" x\n\n".to_owned())]);
    assert_eq!(answers(&filter.push("y</think> So")), " So");
}

#[test]
fn no_more_than_the_limit_is_held_behind_an_unmatched_backtick() {
    let mut filter = AnswerFilter::new();
    filter.push("A ` is a mark. <think>");
    let mut pieces = Vec::new();
    for _ in 0..HOLD_LIMIT {
        pieces.extend(filter.push("x"));
    }
    assert!(matches!(pieces.first(), Some(Piece::Reasoning(_))));
}

#[test]
fn reasoning_flows_at_once_without_its_tags() {
    let mut filter = AnswerFilter::new();
    assert_eq!(
        filter.push("<think>let me <b>see</b> "),
        [Piece::Reasoning("let me <b>see</b> ".to_owned())]
    );
    assert_eq!(
        filter.push("<thought>hm</thought>!</think>Yes"),
        [
            Piece::Reasoning("hm!".to_owned()),
            Piece::Answer("Yes".to_owned())
        ]
    );
}

#[test]
fn an_answer_that_was_reasoning_is_taken_back_when_the_answer_comes() {
    let mut filter = AnswerFilter::new();
    assert_eq!(
        filter.push("Let me see.\n</think>\n\n"),
        [Piece::Answer("Let me see.".to_owned())]
    );
    assert_eq!(
        filter.push("Yes"),
        [Piece::Void, Piece::Answer("Yes".to_owned())]
    );
    assert_eq!(
        filter.push("\n</think>\nso"),
        [Piece::Answer("\nso".to_owned())]
    );
}

#[test]
fn a_finished_filter_starts_anew() {
    let mut filter = AnswerFilter::new();
    filter.push("<think>never closed");
    filter.finish();
    assert_eq!(filter.push(" next"), [Piece::Answer("next".to_owned())]);
}

#[test]
fn memory_stays_bounded_whatever_the_stream() {
    for part in [
        " ",
        "<",
        "<think",
        "<think>",
        "` <think>",
        "`",
        "`` ` <thought/>",
        "\n> - 1. ",
        "< ",
        "[",
        "◁think",
        "<|channel|>x",
        "a\n</think>\n",
    ] {
        let mut filter = AnswerFilter::new();
        for _ in 0..20_000 {
            filter.push(part);
        }
        let held = filter.space.len()
            + filter.candidate.len()
            + filter.inner.len()
            + filter.header.len()
            + filter.gap.as_ref().map_or(0, String::len)
            + filter.hold.as_ref().map_or(0, |hold| hold.text.len())
            + filter.blocks.named.len()
            + filter.code.open_runs().len()
            + filter.backlog.len();
        assert!(
            held < 2 * (SPACE_LIMIT + HOLD_LIMIT),
            "{part:?} holds {held}"
        );
    }
}

#[test]
fn deep_nesting_is_counted_beyond_the_named_depth() {
    let depth = NAMED_DEPTH + 50;
    let text = format!(
        "a {}x{} b",
        "<think>".repeat(depth),
        "</think>".repeat(depth)
    );
    assert_eq!(clean(&text), "a b");
    let text = format!(
        "a {}x{} b",
        "<think>".repeat(depth),
        "</think>".repeat(depth - 1)
    );
    assert_eq!(clean(&text), "a");
}

#[test]
fn a_long_run_of_white_space_is_cut_and_nothing_else_is_lost() {
    let text = format!("a{}b", " ".repeat(3 * SPACE_LIMIT));
    assert_eq!(clean(&text), format!("a{}b", " ".repeat(SPACE_LIMIT)));
}
