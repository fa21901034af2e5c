//! Names of those who speak: which of them a text names, and a text without them.
//!
//! A speaker is metadata of a memory, not what it says. Small embedding models make much of a name: each question about a person holds it, and
//! so does whatever the others say to that person, so that the answers, which the person gives without naming itself, come last. Hence what is
//! embedded holds no speaker's name ([`embedding_text`], [`query_text`]), and that a question names one is a feature of ranking.

use std::collections::BTreeSet;

use super::analysis::{fold, is_han};

/// A shorter word is no form of a name in Latin script: too many are words. Of Han it takes two.
const SHORTEST: usize = 3;

#[derive(Clone, Debug)]
struct Form {
    /// Folded.
    text: String,
    speaker: usize,
    han: bool,
}

/// The names of speakers, numbered as they were given.
#[derive(Clone, Debug, Default)]
pub struct Names {
    forms: Vec<Form>,
}

/// Where a text names a speaker, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mention {
    /// Where it begins.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// Who is named.
    pub speaker: usize,
}

impl Names {
    /// Each word of a name stands for it, and of a Chinese name of three characters the last two do.
    pub fn new<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> Self {
        let mut forms = Vec::new();
        for (speaker, name) in names.into_iter().enumerate() {
            for word in name
                .as_ref()
                .split(|c: char| !c.is_alphabetic())
                .filter(|w| !w.is_empty())
            {
                let han = word.chars().all(is_han);
                let long = word.chars().count();
                if long < if han { 2 } else { SHORTEST } {
                    continue;
                }
                let mut form = |text: String| {
                    forms.push(Form { text, speaker, han });
                };
                form(fold(word));
                if han && long == 3 {
                    form(word.chars().skip(1).collect());
                }
            }
        }
        // The longer form of a name goes before what it contains.
        forms.sort_by(|a, b| {
            b.text
                .len()
                .cmp(&a.text.len())
                .then(a.speaker.cmp(&b.speaker))
        });
        Self { forms }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// Where a text names speakers, in its order. A word in Latin script is a name when it begins with a capital, or when the text has no capital at
    /// all; a beginning of three letters or more will do ("Mel" for "Melanie").
    pub fn mentions(&self, text: &str) -> Vec<Mention> {
        let mut out = Vec::new();
        if self.is_empty() {
            return out;
        }
        let careless = !text.chars().any(char::is_uppercase);
        for (start, word) in latin_words(text) {
            let capital = word.starts_with(char::is_uppercase);
            if !capital && !careless {
                continue;
            }
            let folded = fold(word);
            let is = |form: &&Form| {
                !form.han
                    && (form.text == folded
                        || (capital
                            && word.chars().count() >= SHORTEST
                            && form.text.starts_with(&folded)))
            };
            if let Some(form) = self.forms.iter().find(is) {
                out.push(Mention {
                    start,
                    end: start + word.len(),
                    speaker: form.speaker,
                });
            }
        }
        for form in self.forms.iter().filter(|form| form.han) {
            for (start, found) in text.match_indices(&form.text) {
                let end = start + found.len();
                if out.iter().all(|m| m.end <= start || end <= m.start) {
                    out.push(Mention {
                        start,
                        end,
                        speaker: form.speaker,
                    });
                }
            }
        }
        out.sort_unstable_by_key(|mention| mention.start);
        out
    }

    /// Who is named.
    pub fn named(&self, text: &str) -> BTreeSet<usize> {
        self.mentions(text).iter().map(|m| m.speaker).collect()
    }

    /// A text with each name replaced: by the first when it owns something, else by the second, the last for one in Han.
    fn replaced(&self, text: &str, possessive: &str, plain: (&str, &str)) -> String {
        let mut out = String::with_capacity(text.len());
        let mut from = 0;
        for mention in self.mentions(text) {
            out.push_str(&text[from..mention.start]);
            let rest = &text[mention.end..];
            let owns = ["'s", "\u{2019}s"]
                .into_iter()
                .find(|s| rest.starts_with(s));
            let han = text[mention.start..].starts_with(is_han);
            out.push_str(match owns {
                _ if han => plain.1,
                Some(_) => possessive,
                None => plain.0,
            });
            from = mention.end + owns.map_or(0, str::len);
        }
        out.push_str(&text[from..]);
        tidied(&out)
    }

    /// A text without the names.
    pub fn without(&self, text: &str) -> String {
        self.replaced(text, "", ("", ""))
    }
}

/// Words of letters in other scripts than Han.
fn latin_words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split_inclusive(|c: char| !c.is_alphabetic() || is_han(c))
        .filter_map(move |piece| {
            let start = at;
            at += piece.len();
            let word = piece.trim_end_matches(|c: char| !c.is_alphabetic() || is_han(c));
            (!word.is_empty()).then_some((start, word))
        })
}

/// One space between words, none before a mark, and no comma before a mark or at either end: what a name leaves behind.
fn tidied(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let space = c.is_whitespace();
        if space && (out.is_empty() || out.ends_with(' ')) {
            continue;
        }
        if matches!(c, ',' | '.' | '!' | '?') {
            let kept = out.trim_end_matches([' ', ',']).len();
            if kept < out.len() {
                out.truncate(kept);
            }
        }
        out.push(if space { ' ' } else { c });
    }
    out.trim_matches([' ', ',']).to_owned()
}

/// What of a memory is embedded: its text without the speakers' names. Where nothing is left, the text.
///
/// All of it: to embed only the sentences that tell something ranks no better.
pub fn embedding_text<S: AsRef<str>>(
    content: &str,
    speakers: impl IntoIterator<Item = S>,
) -> String {
    let bare = Names::new(speakers).without(content);
    if bare.is_empty() {
        content.to_owned()
    } else {
        bare
    }
}

/// What of a question is embedded: as the person it names would have put it, "my" and "I" for the name, since that is how the answer was
/// said.
pub fn query_text<S: AsRef<str>>(question: &str, speakers: impl IntoIterator<Item = S>) -> String {
    let own = Names::new(speakers).replaced(question, "my", ("I", "我"));
    if own.is_empty() {
        question.to_owned()
    } else {
        own
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    const NAMES: [&str; 4] = ["Melanie Jones", "Bob", "王小明", "Al"];

    fn named(text: &str) -> Vec<usize> {
        Names::new(NAMES).named(text).into_iter().collect()
    }

    #[test]
    fn a_name_is_known_by_each_of_its_forms() {
        for (text, who) in [
            ("What does Melanie like?", vec![0]),
            ("MELANIE!", vec![0]),
            ("Hi Mel, how is it?", vec![0]),
            ("what does melanie like", vec![0]),
            ("Did Bob meet Ms Jones?", vec![0, 1]),
            ("王小明喜欢什么？", vec![2]),
            ("小明去哪里了", vec![2]),
            ("The Joneses and bobbing", vec![]),
            ("I bob up and down", vec![]),
            ("Al and al", vec![]),
        ] {
            assert_eq!(named(text), who, "{text}");
        }
    }

    #[test]
    fn what_is_embedded_holds_no_name() {
        let text = |content| embedding_text(content, NAMES);
        assert_eq!(text("Thanks, Melanie! You too."), "Thanks! You too.");
        assert_eq!(text("Bob, I went to Bob's place"), "I went to place");
        assert_eq!(text("小明，你好"), "，你好");
        let told = text("Bob, how are you? I painted a lake with Melanie. Wow!");
        assert_eq!(told, "how are you? I painted a lake with. Wow!");
        assert_eq!(text("Melanie"), "Melanie");
        assert_eq!(text("Nothing to  take out"), "Nothing to take out");
        assert_eq!(embedding_text("I am Bob", [""; 0]), "I am Bob");
    }

    #[test]
    fn a_question_is_put_as_the_one_it_names_would_put_it() {
        let text = |question| query_text(question, NAMES);
        assert_eq!(text("When did Melanie paint?"), "When did I paint?");
        assert_eq!(text("What is Melanie's hobby?"), "What is my hobby?");
        assert_eq!(text("王小明的爱好是什么？"), "我的爱好是什么？");
    }

    proptest! {
        #[test]
        fn no_mention_is_left_and_no_text_is_too_strange(text in "(\\PC|Melanie|Bob's|小明| |,){0,20}") {
            let names = Names::new(NAMES);
            for mention in names.mentions(&text) {
                prop_assert!(!text[mention.start..mention.end].is_empty());
            }
            let bare = names.without(&text);
            prop_assert!(bare.len() <= text.len());
        }
    }
}
