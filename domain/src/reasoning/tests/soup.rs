//! Random soups of tags, code marks and text.

use proptest::prelude::*;

use super::*;
use crate::reasoning::tag::{Reading, read};

/// Each takes some tens of microseconds.
const CASES: u32 = 2_000;

const PLAIN: &[&str] = &[
    "<think>",
    "</think>",
    "<Thinking a='b'>",
    "</thinking >",
    "<reasoning/>",
    "</ THOUGHT>",
    "[THINK]",
    "[/THINK]",
    "[",
    "◁think▷",
    "◁/think▷",
    "<|channel|>",
    "final",
    "<|message|>",
    "<|end|>",
    "<",
    "/>",
    "</",
    "th",
    "ink>",
    "think",
    "<thi",
    "a",
    "文",
    " ",
    "\n",
    "\n\n",
    "`",
    "``",
    "```",
    "~~~",
    "\n```",
    "\n```\n",
    "\n~~~\n",
];
const MARKS: &[&str] = &[
    "<think>", "</think>", "<think/>", "`", "``", "```", "\n```\n", "\n> ", "\n- ", "\n  ",
    "\n1. ", "\n# ", "\\", "\t", "\r\n", "a", " ", "\n\n", "~~~",
];
const CODE: &[&str] = &[
    "`<think>`",
    "`` ` <think>x</think>``",
    "\n```xml\n<think>\n```\n",
    "\n~~~\n</think>\n~~~\n",
    "<thi",
    "<b>",
    "< ",
    "think",
    "a",
    "文",
    " ",
    "\n",
    "\n\n",
    "`",
    "``",
];

fn soup(words: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(words), 0..30).prop_map(|words| words.concat())
}

/// Which bytes are code, found in the whole text at once, line by line; knows neither lists, quotes nor escapes.
fn code_of(text: &str) -> Vec<bool> {
    let mut code = vec![false; text.len()];
    let mut fence: Option<(char, usize)> = None;
    let mut paragraph = 0..0;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let (start, end) = (at, at + line.len());
        at = end;
        let body = line.trim_start_matches(' ');
        let mark = body
            .chars()
            .next()
            .filter(|c| matches!(c, '`' | '~'))
            .unwrap_or('x');
        let run = body.chars().take_while(|c| *c == mark).count();
        let fence_like = line.len() - body.len() < 4 && mark != 'x' && run >= 3;
        let rest = body.get(run..).unwrap_or_default();
        if let Some((open, length)) = fence {
            code[start..end].fill(true);
            if fence_like && mark == open && run >= length && rest.trim().is_empty() {
                fence = None;
            }
            paragraph = end..end;
            continue;
        }
        if fence_like || line.trim().is_empty() {
            pair_runs(text, paragraph.clone(), &mut code);
            paragraph = start..start;
        }
        if fence_like {
            let backtick = rest.find('`').filter(|_| mark == '`');
            let info_end = backtick.map_or(end, |i| end - rest.len() + i);
            code[start..info_end].fill(true);
            if backtick.is_none() {
                fence = Some((mark, run));
                paragraph = end..end;
                continue;
            }
        }
        paragraph.end = end;
    }
    pair_runs(text, paragraph, &mut code);
    code
}

fn pair_runs(text: &str, paragraph: std::ops::Range<usize>, code: &mut [bool]) {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (i, _) in text[paragraph.clone()].match_indices('`') {
        let i = i + paragraph.start;
        match runs.last_mut() {
            Some((start, length)) if *start + *length == i => *length += 1,
            _ => runs.push((i, 1)),
        }
    }
    let mut i = 0;
    while let Some(&(start, length)) = runs.get(i) {
        let next = runs[i + 1..].iter().position(|run| run.1 == length);
        if let Some(next) = next {
            i += next + 1;
            code[start..runs[i].0 + length].fill(true);
        }
        i += 1;
    }
}

fn tag_outside_code(text: &str) -> Option<&str> {
    let code = code_of(text);
    text.match_indices(crate::reasoning::tag::begins)
        .filter(|(i, _)| !code[*i])
        .find_map(|(i, opener)| {
            let rest = &text[i..];
            let close = match opener {
                "[" => ']',
                "◁" => '▷',
                _ => '>',
            };
            let tag = &rest[..rest.find(close)? + close.len_utf8()];
            let alone = !tag[opener.len()..].contains('<');
            (alone && matches!(read(tag), Reading::Whole(_))).then_some(tag)
        })
}

proptest! {
    #![proptest_config(ProptestConfig { max_global_rejects: 100_000, ..ProptestConfig::with_cases(CASES) })]

    #[test]
    fn no_split_changes_what_comes_out(text in prop_oneof![soup(PLAIN), soup(MARKS)], cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6)) {
        let ends = boundaries(&text);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| *cut.get(&ends)).collect();
        cuts.push(0);
        cuts.push(text.len());
        cuts.sort_unstable();
        let whole = stream([text.as_str()]);
        prop_assert_eq!(&stream(cuts.windows(2).map(|cut| &text[cut[0]..cut[1]])), &whole);
        prop_assert_eq!(&stream(chars(&text)), &whole);
        prop_assert_eq!(clean(&text), whole.0);
    }

    #[test]
    fn no_reasoning_tag_is_left_outside_code(text in soup(PLAIN)) {
        let answer = clean(&text);
        prop_assert_eq!(tag_outside_code(&answer), None, "in {:?}", answer);
    }

    #[test]
    fn what_is_clean_stays_as_it_is(text in prop_oneof![soup(PLAIN), soup(MARKS)]) {
        let once = clean(&text);
        prop_assert_eq!(clean(&once), once);
    }

    #[test]
    fn a_text_without_tags_outside_code_passes_unchanged(text in soup(CODE)) {
        prop_assume!(tag_outside_code(text.trim()).is_none());
        prop_assert_eq!(clean(&text), text.trim());
    }

    #[test]
    fn a_text_without_angle_brackets_and_backticks_passes_trimmed(text in "[^<`]{0,200}") {
        prop_assert_eq!(clean(&text), text.trim());
    }

    #[test]
    fn white_space_does_not_pile_up(words in prop::collection::vec("[a-z]{1,4}", 1..6), block in prop::sample::select(vec!["<think>x\n\n</think>", "[THINK]x[/THINK]", "<thought/>"]), gap in prop::sample::select(vec![" ", "\n", "\n\n"])) {
        let text = words.join(&format!("{gap}{block}{gap}"));
        prop_assert_eq!(clean(&text), words.join(gap));
    }

    #[test]
    fn a_closed_block_hides_all_of_its_content_and_nothing_else(before in "[a-z .]{0,20}", hidden in "[a-zA-Z0-9`~# >\n-]{0,60}", after in "[a-z]{1,20}") {
        let (answer, reasoning) = stream([format!("{before}<think>{hidden}</think>\n{after}").as_str()]);
        prop_assert_eq!(reasoning, hidden);
        let shown = format!("{}\n{after}", before.trim());
        prop_assert_eq!(answer, shown.trim());
    }

    #[test]
    fn any_text_at_all_is_read_without_fault(text in any::<String>(), tail in soup(MARKS)) {
        let text = text + &tail;
        prop_assert_eq!(stream(chars(&text)), stream([text.as_str()]));
    }
}
