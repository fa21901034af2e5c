//! Patterns of words, as [`super::english`] and [`super::chinese`] write them.
//!
//! A pattern is a row of steps: `word|word` is one of these words, a name in capitals one of a class, `_` any word. `?` behind a step lets it be
//! absent, `*3` lets it come up to three times. `!` before one: no such word comes next. `,` lets the next word stand behind a comma, `$` ends
//! the clause. Before all of them `^` wants the place of an order ("ignore …", "you must ignore …", not "I ignore …"), `~CLASS` that no word
//! of the class stands before. A clause ends at a comma, and no pattern goes beyond the end of a sentence.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::folding::{Gap, Reading, Token, Words};
use super::{Passage, Sign, chinese, english};

/// A pattern, with what it is a sign of.
pub(super) type Written = (Sign, &'static str);
/// A class of words, by name.
pub(super) type Class = (&'static str, &'static str);

/// How far is looked back for who does something.
const LOOK_BACK: usize = 12;

pub(super) static GRAMMAR: LazyLock<Grammar> = LazyLock::new(Grammar::new);

/// A set of words, a bit for each.
#[derive(Clone, Debug, Default)]
struct Set(Vec<u64>);

impl Set {
    fn add(&mut self, word: u16) {
        let at = usize::from(word) / 64;
        if self.0.len() <= at {
            self.0.resize(at + 1, 0);
        }
        self.0[at] |= 1 << (word % 64);
    }

    fn has(&self, word: u16) -> bool {
        let block = self.0.get(usize::from(word) / 64);
        block.is_some_and(|block| block >> (word % 64) & 1 == 1)
    }

    fn words(&self) -> impl Iterator<Item = u16> {
        (0..self.0.len() as u16 * 64).filter(|word| self.has(*word))
    }
}

#[derive(Debug)]
enum Step {
    /// From so many to so many words of a set, any word without one.
    Words(Option<Set>, usize, usize),
    /// No word of these comes next.
    Without(Set),
    /// The next word may stand behind a comma.
    Comma,
    /// The clause ends.
    End,
}

#[derive(Debug, Default)]
enum Before {
    #[default]
    Anything,
    /// It is the place of an order.
    Order,
    /// No word of these.
    Without(Set),
}

#[derive(Debug)]
struct Pattern {
    sign: Sign,
    before: Before,
    steps: Vec<Step>,
}

/// All patterns, by the words that they begin with.
#[derive(Debug)]
pub(super) struct Grammar {
    pub(super) words: Words,
    patterns: Vec<Pattern>,
    begin: Vec<Vec<usize>>,
    order: Order,
    /// What opens a sentence that orders something.
    opens: Set,
}

/// Words by which the place of an order is known.
#[derive(Debug)]
struct Order {
    /// Words that may stand between an order and whoever is ordered.
    lead: Set,
    /// What joins an order to another clause.
    joining: Set,
    /// Who is ordered.
    ordered: Set,
    /// What opens a clause that tells something.
    telling: Set,
    /// Who does something, wherever it stands in a clause.
    doing: Set,
    /// What orders unless somebody does it: no thing "do not".
    firm: Set,
}

struct Reader {
    words: Words,
    classes: HashMap<&'static str, Set>,
}

impl Reader {
    fn set(&mut self, written: &'static str) -> Set {
        let mut set = Set::default();
        for name in written.split(['|', ' ']).filter(|name| !name.is_empty()) {
            if let Some(class) = self.classes.get(name) {
                class.words().for_each(|word| set.add(word));
            } else {
                set.add(self.words.add(name));
            }
        }
        set
    }

    fn step(&mut self, written: &'static str) -> Step {
        if let Some(not) = written.strip_prefix('!') {
            return Step::Without(self.set(not));
        }
        match written {
            "," => return Step::Comma,
            "$" => return Step::End,
            _ => {}
        }
        let (words, least, most) = if let Some(words) = written.strip_suffix('?') {
            (words, 0, 1)
        } else if let Some((words, most)) = written.split_once('*') {
            (words, 0, most.parse().unwrap_or(1))
        } else {
            (written, 1, 1)
        };
        let set = (words != "_").then(|| self.set(words));
        Step::Words(set, least, most)
    }

    fn pattern(&mut self, (sign, written): Written) -> Pattern {
        let mut before = Before::Anything;
        let mut steps = Vec::new();
        for step in written.split_whitespace() {
            if step == "^" {
                before = Before::Order;
            } else if let Some(class) = step.strip_prefix('~') {
                before = Before::Without(self.set(class));
            } else {
                steps.push(self.step(step));
            }
        }
        Pattern {
            sign,
            before,
            steps,
        }
    }
}

impl Grammar {
    fn new() -> Self {
        let mut reader = Reader {
            words: Words::default(),
            classes: HashMap::new(),
        };
        for (name, words) in english::CLASSES.iter().chain(chinese::CLASSES) {
            let set = reader.set(words);
            reader.classes.insert(name, set);
        }
        let written = english::PATTERNS.iter().chain(chinese::PATTERNS);
        let patterns: Vec<Pattern> = written.map(|written| reader.pattern(*written)).collect();
        let order = Order {
            lead: reader.set("LEAD"),
            joining: reader.set("JOINING"),
            ordered: reader.set("ORDERED"),
            telling: reader.set("TELLING"),
            doing: reader.set("DOING"),
            firm: reader.set("FIRM"),
        };
        let opens = reader.set("OPENS|ZOPENS");
        let mut begin = vec![Vec::new(); reader.words.count()];
        for (at, pattern) in patterns.iter().enumerate() {
            if let Some(Step::Words(Some(set), ..)) = pattern.steps.first() {
                set.words()
                    .for_each(|word| begin[usize::from(word)].push(at));
            }
        }
        Self {
            words: reader.words,
            patterns,
            begin,
            order,
            opens,
        }
    }

    /// Where a text follows a pattern, in its order; of several at one place the first.
    pub(super) fn matches(&self, reading: &Reading) -> Vec<Passage> {
        let tokens = &reading.tokens;
        let mut out = Vec::new();
        for (at, token) in tokens.iter().enumerate() {
            let patterns = self
                .begin
                .get(usize::from(token.word))
                .into_iter()
                .flatten();
            let found = patterns.map(|at| &self.patterns[*at]).find_map(|pattern| {
                let length = pattern.length(&tokens[at..])?;
                self.may_begin(pattern, tokens, at)
                    .then_some((pattern.sign, length))
            });
            if let Some((sign, length)) = found {
                out.push(Passage {
                    range: reading.place(at..at + length),
                    sign,
                });
            }
        }
        out
    }

    /// Whether a sentence opens with an order.
    pub(super) fn orders(&self, reading: &Reading) -> bool {
        let mut words = reading.tokens.iter().map(|token| token.word);
        let first = words.by_ref().find(|word| !self.order.joining.has(*word));
        first.is_some_and(|word| self.opens.has(word))
    }

    fn may_begin(&self, pattern: &Pattern, tokens: &[Token], at: usize) -> bool {
        let adjoining = at > 0 && tokens[at].gap < Gap::Comma;
        match &pattern.before {
            Before::Anything => true,
            Before::Without(set) => !(adjoining && set.has(tokens[at - 1].word)),
            Before::Order => self.order.is_at(tokens, at),
        }
    }
}

impl Order {
    /// Whether an order may begin at a word: at the beginning of a clause, or behind words that lead back to it or to whoever is ordered.
    fn is_at(&self, tokens: &[Token], place: usize) -> bool {
        let first = place.saturating_sub(LOOK_BACK);
        for at in (first..=place).rev() {
            if at == 0 || tokens[at].gap >= Gap::Mark {
                return true;
            }
            let before = tokens[at - 1].word;
            if self.ordered.has(before) {
                return true;
            }
            if self.joining.has(before) && !self.lead.has(before) {
                return self.follows_an_order(tokens, at - 1, tokens[place].word);
            }
            if !self.lead.has(before) {
                return false;
            }
        }
        false
    }

    /// Whether what is joined to the clause before `at` may be an order as that one is.
    fn follows_an_order(&self, tokens: &[Token], at: usize, joined: u16) -> bool {
        let first = at.saturating_sub(LOOK_BACK);
        let opening = (first..=at)
            .rev()
            .find(|at| *at == 0 || tokens[*at].gap >= Gap::Mark);
        let opening = opening.unwrap_or(first);
        let does = (opening..at).any(|at| self.doing.has(tokens[at].word));
        let tells = self.telling.has(tokens[opening].word) && !self.firm.has(joined);
        !does && !tells
    }
}

impl Pattern {
    /// How many of the words, from the first on, follow the pattern; none if they do not.
    fn length(&self, tokens: &[Token]) -> Option<usize> {
        // A bit for each number of words that the steps so far may have taken.
        let mut taken: u64 = 1;
        let mut comma = false;
        for step in &self.steps {
            taken = match step {
                Step::Comma => {
                    comma = true;
                    continue;
                }
                Step::Words(set, least, most) => {
                    let mut reached = if *least == 0 { taken } else { 0 };
                    let mut so_far = taken;
                    for _ in 0..*most {
                        so_far = one(tokens, so_far, set.as_ref(), comma);
                        reached |= so_far;
                    }
                    reached
                }
                Step::Without(set) => {
                    let follows = |n: usize| {
                        let next = tokens.get(n).filter(|next| next.gap < Gap::Comma);
                        next.is_some_and(|next| set.has(next.word))
                    };
                    filtered(taken, |n| !follows(n))
                }
                Step::End => filtered(taken, |n| {
                    tokens.get(n).is_none_or(|next| next.gap >= Gap::Line)
                }),
            };
            comma = false;
            if taken == 0 {
                return None;
            }
        }
        Some(taken.trailing_zeros() as usize).filter(|length| *length > 0)
    }
}

/// What is reached by one word more.
fn one(tokens: &[Token], taken: u64, set: Option<&Set>, comma: bool) -> u64 {
    let widest = if comma { Gap::Comma } else { Gap::Line };
    let goes_on = |n: usize| {
        let next = tokens.get(n).filter(|next| n == 0 || next.gap <= widest);
        next.is_some_and(|next| set.is_none_or(|set| set.has(next.word)))
    };
    filtered(taken, goes_on) << 1
}

fn filtered(taken: u64, keep: impl Fn(usize) -> bool) -> u64 {
    let mut left = taken;
    let mut kept = 0;
    while left != 0 {
        let n = left.trailing_zeros();
        left &= left - 1;
        if keep(n as usize) {
            kept |= 1 << n;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_capitals_is_a_class() {
        let grammar = &*GRAMMAR;
        assert!(
            grammar
                .patterns
                .iter()
                .all(|p| matches!(p.steps.first(), Some(Step::Words(Some(_), 1, 1))))
        );
        // What is in capitals and no class would be taken for a word, which no folded text holds.
        for (_, written) in english::PATTERNS.iter().chain(chinese::PATTERNS) {
            for name in written.split([' ', '|', '!', '~', '?', '*']) {
                let known = english::CLASSES
                    .iter()
                    .chain(chinese::CLASSES)
                    .any(|(class, _)| *class == name);
                assert!(
                    known || !name.contains(|c: char| c.is_ascii_uppercase()),
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn no_pattern_takes_more_words_than_are_counted() {
        for pattern in &GRAMMAR.patterns {
            let most: usize = pattern
                .steps
                .iter()
                .map(|s| {
                    if let Step::Words(_, _, most) = s {
                        *most
                    } else {
                        0
                    }
                })
                .sum();
            assert!(most < 60, "{pattern:?}");
        }
    }
}
