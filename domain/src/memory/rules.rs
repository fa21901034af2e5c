//! Standing preferences and plain statements, recognised by rules in English and Chinese.
//!
//! A rule looks at the opening of a clause: "I prefer …", "our deploy target is …", 以后请…, 我们决定…. So what somebody else is said to want is
//! not taken for what the person wants. Questions state nothing, nor does what stands in quotation marks, block quotes or code, or is
//! material to work on ("Translate: …").

mod answers;
mod chinese;
mod clause;
mod english;
mod introduction;
mod subject;

use std::ops::Range;

use super::analysis::{is_ideographic, normalise};
use super::conflict::Value;
use super::sentence::{is_question, ranges};
use super::{Kind, Scope};
use clause::clauses;
pub(super) use clause::texts;
use introduction::{Introduction, introduction};

/// The most characters a statement has (B4). What is longer stays in the episodic memory of its message.
pub const LONGEST: usize = 200;

/// What a person states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// In the person's own words, at most [`LONGEST`] characters.
    pub content: String,
    /// Where it applies.
    pub scope: Scope,
    /// What it is.
    pub kind: Kind,
    /// 1–5 (B6).
    pub importance: u8,
    /// What it is about, `snake_case`: the attribute, without whose it is.
    pub key: Option<String>,
    /// What it says of that. Two statements of one key whose values contradict each other are a change.
    pub value: Value,
    /// It is about the speaker, rather than about what the speakers have in common.
    pub own: bool,
    /// How many statements of the same key the text makes before it.
    pub nth: usize,
    /// Where it begins and ends in the text, in bytes.
    pub span: Range<usize>,
    /// The sentences that it lies in, in bytes.
    pub sentences: Range<usize>,
}

impl Statement {
    /// The key under which it is kept: with the speaker, when it is about one who has a name.
    pub fn key_of(&self, speaker: Option<&str>) -> Option<String> {
        let attribute = self.key.as_ref()?;
        Some(match speaker.filter(|_| self.own) {
            Some(name) => format!("{}/{attribute}", normalise(name).replace(' ', "_")),
            None => attribute.clone(),
        })
    }
}

/// A key's speaker, where it names one, and attribute.
pub fn parts(key: &str) -> (Option<&str>, &str) {
    match key.rsplit_once('/') {
        Some((speaker, attribute)) => (Some(speaker), attribute),
        None => (None, key),
    }
}

/// A key that somebody else has chosen for what is said under these names, in the form of the rules' own: common subjects under their one name, and
/// whose it is before a slash where the speaker has a name. The person and the project go without saying, as in "my name" and "the budget": `user_name` is
/// `name`, `project_budget` is `budget`. None where nothing is left, or it is a sentence.
pub(super) fn key_of(chosen: &str, scope: Scope, speakers: &[&str]) -> Option<String> {
    let chosen = normalise(chosen);
    let spoken = speakers.iter().map(|name| normalise(name));
    let named = spoken.filter(|name| !name.is_empty()).find_map(|name| {
        let rest = chosen.strip_prefix(&name)?.strip_prefix(' ')?;
        Some((name.replace(' ', "_"), rest.to_owned()))
    });
    if let Some((name, rest)) = named {
        return Some(format!("{name}/{}", subject::key(&rest)?));
    }
    let bare = match scope {
        Scope::UserProfile => ["the user ", "user "]
            .iter()
            .find_map(|own| chosen.strip_prefix(own)),
        _ => chosen
            .strip_prefix("project ")
            .filter(|rest| subject::is_of_projects(rest)),
    };
    let attribute = subject::key(bare.unwrap_or(&chosen))?;
    Some(match speakers {
        [name, others @ ..]
            if scope == Scope::UserProfile && others.iter().all(|other| other == name) =>
        {
            format!("{}/{attribute}", normalise(name).replace(' ', "_"))
        }
        _ => attribute,
    })
}

/// Whose words are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Voice {
    /// The person's own: "my …", "our …".
    Own,
    /// The model's, speaking to the person: "your …". It states what is the case, and neither wishes nor decides.
    Answering,
}

/// What a rule finds in a clause; the words are the clause's.
struct Finding {
    scope: Scope,
    kind: Kind,
    importance: u8,
    about: Option<(String, Value)>,
    own: bool,
    /// It opens a wish that the next clause tells: "from now on, …".
    opens: bool,
}

impl Finding {
    fn new(scope: Scope, kind: Kind, importance: u8, about: Option<(String, Value)>) -> Self {
        Self {
            scope,
            kind,
            importance,
            about,
            own: scope == Scope::UserProfile,
            opens: false,
        }
    }

    fn preference(about: Option<(String, Value)>) -> Self {
        Self::new(Scope::UserProfile, Kind::Preference, 4, about)
    }

    fn opening() -> Self {
        Self {
            opens: true,
            ..Self::preference(None)
        }
    }

    fn fact(scope: Scope, importance: u8, about: Option<(String, Value)>) -> Self {
        Self::new(scope, Kind::Fact, importance, about)
    }

    fn decision(about: Option<(String, Value)>) -> Self {
        Self::new(Scope::ProjectContext, Kind::Decision, 4, about)
    }

    fn state() -> Self {
        Self::new(Scope::TaskState, Kind::TemporaryState, 3, None)
    }

    /// What no longer holds: a fact, for nobody is to act on it as on a wish.
    fn no_longer(self) -> Option<Self> {
        let (key, value) = self.about?;
        let value = match value {
            Value::Is(value) => Value::Not(value),
            value => value,
        };
        Some(Self {
            kind: Kind::Fact,
            importance: 3,
            about: Some((key, value)),
            ..self
        })
    }

    /// Whether a sentence under a condition may say it: what would be is not what is.
    fn stands_under(&self, frame: Frame) -> bool {
        match self.kind {
            Kind::Preference => frame != Frame::Once,
            _ => frame != Frame::If,
        }
    }
}

/// What holds a whole sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frame {
    /// Nothing.
    Plain,
    /// A condition.
    If,
    /// "Just this once".
    Once,
}

/// The statements of a person's text, in order.
pub fn statements(text: &str) -> Vec<Statement> {
    statements_of(text, Voice::Own)
}

/// The statements of a text, in order.
pub fn statements_of(text: &str, voice: Voice) -> Vec<Statement> {
    let spoken = spoken(text);
    let mut out: Vec<Statement> = Vec::new();
    let mut before: Option<Range<usize>> = None;
    for range in ranges(&spoken) {
        let sentence = &spoken[range.clone()];
        let request = is_question(sentence).then(|| request(sentence));
        if let Some(request) = request {
            if let (Some((lead, finding)), Voice::Own) = (request, voice) {
                push(
                    text,
                    range.start + lead..range.end,
                    &range,
                    finding,
                    &mut out,
                );
            }
        } else if !corrects(text, &range, before.as_ref(), &mut out)
            && in_sentence(text, sentence, &range, voice, &mut out) == Introduction::ToTheEnd
        {
            break;
        }
        before = Some(range);
    }
    out
}

/// The text with spaces in place of code and block quotes.
fn spoken(text: &str) -> String {
    let mut fenced = false;
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let bare = line.trim_start();
        let fence = bare.starts_with("```") || bare.starts_with("~~~");
        fenced ^= fence;
        if fence || fenced || bare.starts_with('>') {
            let end = line.len() - usize::from(line.ends_with('\n'));
            out.extend(std::iter::repeat_n(' ', end));
            out.push_str(&line[end..]);
        } else {
            out.push_str(line);
        }
    }
    out
}

/// A statement reaches from the clause that opens it to the next clause that opens another.
fn in_sentence(
    text: &str,
    sentence: &str,
    range: &Range<usize>,
    voice: Voice,
    out: &mut Vec<Statement>,
) -> Introduction {
    let frame = frame(&folded(sentence));
    let mut open: Option<(usize, Finding)> = None;
    let mut kept = false;
    let mut introduced = Introduction::Nothing;
    let mut end = sentence.len();
    for clause in clauses(sentence) {
        let (lead, asked, found) = finding(clause.text, kept, voice);
        let found = found.filter(|f| f.stands_under(frame));
        // "Please remember: …" asks for the clause behind it.
        kept = asked && lead == clause.text.len();
        introduced = match &found {
            None if !kept => introduction(&folded(clause.text), clause.colon),
            _ => Introduction::Nothing,
        };
        if introduced != Introduction::Nothing {
            end = clause.start;
            break;
        }
        open = match (open, found) {
            (Some((from, opening)), found) if opening.opens => {
                let about = found
                    .and_then(|f| f.about)
                    .or_else(|| answers::about(&folded(clause.text)));
                let wish = Finding::preference(about);
                wish.stands_under(frame).then_some((from, wish))
            }
            (open, None) => open,
            (open, Some(found)) => {
                if let Some((from, before)) = open {
                    let span = range.start + from..range.start + clause.start;
                    push(text, span, range, before, out);
                }
                Some((clause.start + lead, found))
            }
        };
    }
    if let Some((from, found)) = open.filter(|(_, found)| !found.opens) {
        push(
            text,
            range.start + from..range.start + end,
            range,
            found,
            out,
        );
    }
    introduced
}

fn push(
    text: &str,
    span: Range<usize>,
    sentences: &Range<usize>,
    finding: Finding,
    out: &mut Vec<Statement>,
) {
    let content = trimmed(&text[span.clone()]);
    if content.is_empty() || content.chars().count() > LONGEST {
        return;
    }
    let (key, value) = match finding.about {
        Some((key, value)) => (Some(key), value),
        None => (None, Value::Is(normalise(content))),
    };
    let nth = out.iter().filter(|s| key.is_some() && s.key == key).count();
    out.push(Statement {
        content: content.to_owned(),
        scope: finding.scope,
        kind: finding.kind,
        importance: finding.importance,
        own: finding.own,
        key,
        value,
        nth,
        span,
        sentences: sentences.clone(),
    });
}

fn trimmed(words: &str) -> &str {
    let mut content = words.trim();
    loop {
        let shorter = content
            .trim_end_matches(|c: char| c.is_whitespace() || ".,;!?。，；！？".contains(c))
            .trim_end_matches(" and")
            .trim_end_matches(" but");
        if shorter == content {
            return content;
        }
        content = shorter;
    }
}

/// "The budget is 300k. Actually, make it 400k.": a sentence that only puts right the value of the statement right before it belongs to that
/// statement, and what it says counts.
fn corrects(
    text: &str,
    sentence: &Range<usize>,
    before: Option<&Range<usize>>,
    out: &mut [Statement],
) -> bool {
    let Some(last) = out.last_mut() else {
        return false;
    };
    let follows = before.is_some_and(|before| before.end == last.sentences.end);
    let words = folded(trimmed(&text[sentence.clone()]));
    let corrected = if words.chars().any(is_ideographic) {
        chinese::correction(&words)
    } else {
        english::correction(&words)
    };
    let (true, Some(value), Some(key)) = (follows, corrected, &last.key) else {
        return false;
    };
    let span = last.span.start..sentence.end;
    let content = trimmed(&text[span.clone()]);
    let value = subject::value_of(key, value);
    match value {
        Some(value) if content.chars().count() <= LONGEST => {
            content.clone_into(&mut last.content);
            last.value = value;
            last.span = span;
            last.sentences.end = sentence.end;
            true
        }
        _ => false,
    }
}

/// A standing wish in the form of a question: "Can you always reply in Spanish?"; after how many bytes it begins, and what it wishes.
fn request(sentence: &str) -> Option<(usize, Finding)> {
    let text = folded(sentence);
    let words = text.trim_end_matches(|c: char| !c.is_alphanumeric());
    let (lead, found) = if text.chars().any(is_ideographic) {
        chinese::request(words)?
    } else {
        english::request(words)?
    };
    Some((bytes_of(sentence, &text[..lead]), found))
}

/// What a clause states, after how many of its bytes the statement begins, and whether it asks to keep what it says. `kept`: the clause
/// before asked so.
fn finding(clause: &str, kept: bool, voice: Voice) -> (usize, bool, Option<Finding>) {
    let text = folded(clause);
    let chinese = text.chars().any(is_ideographic);
    let (leads, remember) = if chinese {
        (chinese::LEADS, chinese::REMEMBER)
    } else {
        (english::LEADS, english::REMEMBER)
    };
    let opening = strip_leads(&text, leads);
    let lead = opening + strip_leads(&text[opening..], remember);
    let asked = !text[opening..lead].trim().is_empty();
    let words = text[lead..].trim_end_matches(|c: char| !c.is_alphanumeric());
    let found = if chinese {
        chinese::finding(words, voice)
    } else {
        english::finding(words, voice)
    };
    let found = found.or_else(|| {
        let says = if chinese {
            words.chars().count() >= 4
        } else {
            english::says_something(words)
        };
        ((asked || kept) && says && voice == Voice::Own).then(|| {
            let personal = if chinese {
                chinese::is_personal(words)
            } else {
                english::is_personal(words)
            };
            let scope = if personal {
                Scope::UserProfile
            } else {
                Scope::ProjectContext
            };
            Finding::fact(scope, 4, None)
        })
    });
    (bytes_of(clause, &text[..lead]), asked, found)
}

/// What holds a sentence, by its folded text.
fn frame(text: &str) -> Frame {
    let (once, conditions) = if text.chars().any(is_ideographic) {
        (chinese::ONCE, chinese::CONDITIONS)
    } else {
        (english::ONCE, english::CONDITIONS)
    };
    if once.iter().any(|words| text.contains(words)) {
        Frame::Once
    } else if conditions.iter().any(|words| text.starts_with(words)) {
        Frame::If
    } else {
        Frame::Plain
    }
}

/// The clause as the rules read it. Character by character, so that positions in the folded text are positions in the clause.
fn folded(clause: &str) -> String {
    clause.chars().map(fold).collect()
}

fn fold(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(c as u32 - 0xfee0)
            .unwrap_or(c)
            .to_ascii_lowercase(),
        '\u{3000}' | '\u{a0}' => ' ',
        '’' | '‘' => '\'',
        _ => c.to_ascii_lowercase(),
    }
}

/// How many bytes of the text a beginning of its folded form has there.
fn bytes_of(text: &str, folded: &str) -> usize {
    let characters = folded.chars().count();
    text.chars().take(characters).map(char::len_utf8).sum()
}

/// Takes any of the openings off, again and again; answers the length taken.
fn strip_leads(text: &str, leads: &[&str]) -> usize {
    let mut at = 0;
    loop {
        at += text[at..].len() - text[at..].trim_start().len();
        match leads.iter().find(|lead| text[at..].starts_with(**lead)) {
            Some(lead) => at += lead.len(),
            None => return at,
        }
    }
}

#[cfg(test)]
mod tests;
