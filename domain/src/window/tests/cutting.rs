use proptest::prelude::*;

use super::*;

fn text(length: usize) -> String {
    ('a'..='z').cycle().take(length).collect()
}

#[test]
fn a_cjk_character_counts_one_and_a_half_tokens_and_any_other_a_quarter() {
    for (text, tokens) in [
        ("", 0),
        ("a", 1),
        ("abcd", 1),
        ("abcde", 2),
        ("汉", 2),
        ("汉字", 3),
        ("汉a", 2),
        ("汉abc", 3),
        ("ひら", 3),
        ("한글", 3),
        ("，。", 3),
    ] {
        assert_eq!(EstimateCounter.count(text), tokens, "{text}");
    }
    assert!(EstimateCounter.is_estimate());
}

#[test]
fn a_cut_text_keeps_its_head_and_tail_and_tells_what_is_missing() {
    let cut = cut_middle(&text(1_000), 60, &Characters);
    assert_eq!(
        cut,
        "abcdefghijklmno\n[… 971 characters left out …]\nyzabcdefghijkl"
    );
}

#[test]
fn where_the_marker_does_not_fit_a_dot_remains() {
    assert_eq!(cut_middle("abcdef", 3, &Characters), "…");
    assert_eq!(cut_middle("abcdef", 0, &Characters), "");
    assert_eq!(cut_middle("", 0, &Characters), "");
}

#[test]
fn a_long_exchange_is_cut_to_its_share_tool_results_first() {
    let history = [
        message(1, Role::User, &text(100)),
        calling(2, &["a", "b"]),
        Message {
            content: text(1_000),
            ..result(3, "a")
        },
        Message {
            content: text(50),
            ..result(4, "b")
        },
        message(5, Role::Assistant, &text(100)),
    ];
    let window = select(&history, &budget(2_000, 600), &Characters);
    assert_eq!(window.cut, [3]);
    assert_eq!(window.tokens, 600);
    assert_eq!(window.messages[3], history[3]);
    assert_eq!(window.messages[1].tool_calls, history[1].tool_calls);

    let tighter = select(&history, &budget(2_000, 340), &Characters);
    assert_eq!(tighter.cut, [3, 5]);
    assert!(tighter.tokens <= 340);

    let tightest = select(&history, &budget(2_000, 200), &Characters);
    assert_eq!(tightest.cut, [1, 3, 4, 5]);
    assert!(tightest.tokens <= 200);
}

#[test]
fn an_older_exchange_above_its_share_is_cut_as_well() {
    let mut history = vec![
        message(1, Role::User, &text(500)),
        message(2, Role::Assistant, "yes"),
    ];
    history.extend(exchanges(1, 3));
    let window = select(&history, &budget(400, 100), &Characters);
    assert_eq!(seqs(&window), [1, 2, 3, 4]);
    assert_eq!(window.cut, [1]);
    assert_eq!(window.tokens, 120);
}

#[test]
fn the_newest_exchange_is_cut_to_the_history_where_that_is_less_than_its_share() {
    let window = select(
        &[message(1, Role::User, &text(500))],
        &budget(60, 100),
        &Characters,
    );
    assert_eq!(window.tokens, 60);
}

#[test]
fn tool_rounds_whose_calls_alone_are_too_long_go_from_the_oldest() {
    let mut long = calling(2, &["a"]);
    long.tool_calls[0].arguments = text(500);
    let history = [
        message(1, Role::User, "q"),
        long,
        result(3, "a"),
        calling(4, &["b"]),
        result(5, "b"),
    ];
    let window = select(&history, &budget(200, 100), &Characters);
    assert_eq!(seqs(&window), [1, 4, 5]);
    assert_eq!(window.dropped, [dropped(2, 3, DropReason::LongExchange)]);
    assert!(window.cut.is_empty());
}

#[test]
fn without_any_budget_the_question_is_still_there() {
    let history = [
        message(1, Role::User, "q"),
        calling(2, &["a"]),
        result(3, "a"),
    ];
    let window = select(&history, &Budget::of(0, 0), &Characters);
    assert_eq!(seqs(&window), [1]);
    assert_eq!(window.messages[0].content, "q");
}

proptest! {
    #[test]
    fn a_cut_text_fits_and_begins_and_ends_as_before(text in "[a-z汉 \n😀]{0,300}", most in 0..200_usize) {
        for counter in [&EstimateCounter as &dyn TokenCounter, &Characters] {
            let cut = cut_middle(&text, most, counter);
            prop_assert!(counter.count(&cut) <= most);
            if counter.count(&text) <= most {
                prop_assert_eq!(&cut, &text);
            } else if let Some((head, tail)) = cut.split_once("\n[… ") {
                let (missing, tail) = tail.split_once(" characters left out …]\n").unwrap();
                prop_assert!(text.starts_with(head) && text.ends_with(tail));
                let kept = head.chars().count() + tail.chars().count();
                prop_assert_eq!(kept + missing.parse::<usize>().unwrap(), text.chars().count());
            } else {
                prop_assert!(cut == "…" || (most == 0 && cut.is_empty()));
            }
        }
    }

    #[test]
    fn a_cut_text_uses_what_it_may(length in 300..2_000_usize, most in 50..200_usize) {
        let cut = cut_middle(&text(length), most, &Characters);
        prop_assert!(cut.chars().count() + 2 >= most, "{} of {most}", cut.chars().count());
    }
}
