//! What kind of answer a question wants, and whether a text holds one: a time, a name. And whether it wants several things.
//!
//! Word lists rather than grammar. They only move what fits in other ways up or down, so a miss costs little.

use super::analysis::{fold, is_ideographic};
use super::words::MONTHS;

/// What a question wants, or what a text holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cues {
    /// A time.
    pub(super) time: bool,
    /// The name of somebody or something.
    pub(super) name: bool,
}

#[rustfmt::skip]
const TIMES: &[&str] = &[
    "yesterday", "today", "tonight", "tomorrow", "last", "next", "ago", "week", "weekend", "month", "year", "monday", "tuesday",
    "wednesday", "thursday", "friday", "saturday", "sunday", "morning", "evening", "night", "recently", "since", "day", "days",
    "weeks", "months", "years", "summer", "winter", "spring", "fall",
];
#[rustfmt::skip]
const CHINESE_TIMES: &[&str] = &[
    "昨天", "今天", "明天", "前天", "上周", "下周", "周末", "上月", "上个月", "下月", "下个月", "去年", "今年", "明年", "星期",
    "周一", "周二", "周三", "周四", "周五", "周六", "周日", "周天", "早上", "晚上", "最近",
];

/// Things that are asked for by "which" or "what" and answered by a name.
#[rustfmt::skip]
const NAMED: &[&str] = &[
    "city", "cities", "country", "countries", "state", "states", "band", "artist", "book", "movie", "game", "place", "company",
    "team", "brand", "school",
];
const CHINESE_NAMED: &[&str] = &[
    "叫什么",
    "名字",
    "名称",
    "谁",
    "哪里",
    "哪个",
    "哪部",
    "哪本",
    "哪座",
    "哪家",
    "哪首",
    "哪款",
];
const CHINESE_WHEN: &[&str] = &[
    "什么时候",
    "何时",
    "哪天",
    "哪年",
    "哪月",
    "哪一天",
    "哪一年",
    "哪一月",
    "几月",
    "几号",
    "几点",
    "多久",
];
/// Words that describe things asked for, besides those that end in "ing", "al" or "ic".
const DESCRIBING: &[&str] = &[
    "kind",
    "kinds",
    "type",
    "types",
    "sort",
    "sorts",
    "of",
    "other",
    "different",
    "new",
    "some",
    "the",
    "all",
    "main",
    "specific",
];
const CHINESE_SEVERAL: &[&str] = &["哪些", "几次", "几个", "几种", "都有"];

fn words(folded: &str) -> Vec<&str> {
    folded
        .split(|c: char| !c.is_alphanumeric() || is_ideographic(c))
        .filter(|word| !word.is_empty())
        .collect()
}

/// What a question wants.
pub(super) fn wanted(question: &str) -> Cues {
    let folded = fold(question);
    let words = words(&folded);
    let any = |list: &[&str]| list.iter().any(|part| folded.contains(part));
    let follows = |first: &[&str], second: &[&str]| {
        words
            .windows(2)
            .any(|pair| first.contains(&pair[0]) && second.contains(&pair[1]))
    };
    let how_long = words.windows(3).any(|of| {
        of[0] == "how" && of[1] == "long" && matches!(of[2], "ago" | "has" | "have" | "had" | "did")
    });
    let which = &["which", "what"][..];
    let holds = |list: &[&str]| words.iter().any(|word| list.contains(word));
    Cues {
        time: holds(&["when"])
            || how_long
            || follows(which, &["date", "day", "month", "year"])
            || follows(&["what"], &["time"])
            || any(CHINESE_WHEN),
        name: holds(&[
            "who", "whom", "where", "name", "names", "named", "called", "title", "titles", "titled",
        ]) || follows(which, NAMED)
            || any(CHINESE_NAMED),
    }
}

/// What a text holds, names aside.
pub(super) fn held(text: &str) -> Cues {
    let folded = fold(text);
    let words = words(&folded);
    let year = |word: &&str| word.len() == 4 && word.bytes().all(|b| b.is_ascii_digit());
    // "may" is a verb as often as a month.
    let month = |word: &&str| *word != "may" && MONTHS.iter().any(|forms| forms[0] == *word);
    let chars: Vec<char> = folded.chars().collect();
    let dated = chars
        .windows(2)
        .any(|pair| pair[0].is_ascii_digit() && "月日号年".contains(pair[1]));
    Cues {
        time: words
            .iter()
            .any(|word| TIMES.contains(word) || year(word) || month(word))
            || CHINESE_TIMES.iter().any(|part| folded.contains(part))
            || dated,
        name: false,
    }
}

/// Whether a question wants several things: it asks for a number of them, or by a word in the plural.
pub(super) fn wants_several(question: &str) -> bool {
    let folded = fold(question);
    let words = words(&folded);
    let pairs = [
        ("how", "many"),
        ("in", "common"),
        ("what", "are"),
        ("what", "were"),
    ];
    let plural = |word: &str| {
        let bare = word.strip_suffix('s').filter(|bare| bare.len() > 1);
        bare.is_some_and(|bare| !bare.ends_with(['s', 'u', 'i']))
            && !matches!(word, "was" | "does" | "has")
    };
    let describing = |word: &str| {
        DESCRIBING.contains(&word) || ["ing", "al", "ic"].iter().any(|end| word.ends_with(end))
    };
    let named = |rest: &[&str]| {
        for word in rest.iter().take(4) {
            if plural(word) {
                return true;
            }
            if !describing(word) {
                break;
            }
        }
        false
    };
    words
        .windows(2)
        .any(|two| pairs.contains(&(two[0], two[1])))
        || words
            .iter()
            .any(|word| matches!(*word, "both" | "list" | "all"))
        || (0..words.len())
            .any(|at| matches!(words[at], "what" | "which") && named(&words[at + 1..]))
        || CHINESE_SEVERAL.iter().any(|part| folded.contains(part))
}

/// Names in a text: words with a capital within a sentence, and what is quoted as a title.
pub(super) fn names(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    // The two characters before the word, the nearer one last.
    let mut before = ['\0', '\0'];
    let mut start = None;
    for (at, c) in text.char_indices() {
        if start.is_none()
            && c.is_uppercase()
            && before[1] == ' '
            && (before[0].is_lowercase() || matches!(before[0], ',' | ';' | ':'))
        {
            start = Some(at);
        } else if let Some(from) = start
            && !c.is_lowercase()
        {
            push_name(&text[from..at], &mut out);
            start = None;
        }
        before = [before[1], c];
    }
    if let Some(from) = start {
        push_name(&text[from..], &mut out);
    }
    for (open, close) in [('"', '"'), ('《', '》'), ('“', '”')] {
        let mut rest = text;
        while let Some(from) = rest.find(open) {
            let quoted = &rest[from + open.len_utf8()..];
            let Some(to) = quoted.find(close) else { break };
            let title = open != '"' || quoted.starts_with(char::is_uppercase);
            if title && to > 0 {
                out.push(&quoted[..to]);
            }
            rest = &quoted[to + close.len_utf8()..];
        }
    }
    out
}

fn push_name<'t>(word: &'t str, out: &mut Vec<&'t str>) {
    // "I" is none.
    if word.chars().count() > 1 {
        out.push(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_wants_what_its_words_say() {
        let cues = |time, name| Cues { time, name };
        for (question, wants) in [
            ("When did I move?", cues(true, false)),
            ("What date is the launch?", cues(true, false)),
            ("How long ago was that?", cues(true, false)),
            ("Who called me?", cues(false, true)),
            ("Which book did I read?", cues(false, true)),
            ("我的猫叫什么？", cues(false, true)),
            ("我什么时候去过？", cues(true, false)),
            ("Do I like tea?", cues(false, false)),
        ] {
            assert_eq!(wanted(question), wants, "{question}");
        }
    }

    #[test]
    fn several_things_are_asked_for_by_number_or_plural() {
        for (question, several) in [
            ("How many cats do I have?", true),
            ("What kinds of musical instruments do we play?", true),
            ("Which books have I read?", true),
            ("我去过哪些城市？", true),
            ("What is my budget?", false),
            ("Which class did I take?", false),
            ("我的猫叫什么？", false),
        ] {
            assert_eq!(wants_several(question), several, "{question}");
        }
    }

    #[test]
    fn a_text_holds_words_for_times() {
        for (text, time) in [
            ("I went there yesterday.", true),
            ("It was in March", true),
            ("It may rain", false),
            ("Back in 2019 we met", true),
            ("我上周去的", true),
            ("5月去的", true),
            ("I like tea", false),
        ] {
            assert_eq!(held(text).time, time, "{text}");
        }
    }

    #[test]
    fn names_are_words_with_a_capital_within_a_sentence_and_titles() {
        assert_eq!(names("Yesterday I met Ada in Paris."), ["Ada", "Paris"]);
        assert_eq!(names("We read \"Dune\" and \"so on\""), ["Dune"]);
        assert_eq!(names("我在看《三体》"), ["三体"]);
        assert!(names("Tea is what I like. Always.").is_empty());
    }
}
