//! Marks that speak to a program rather than to a reader: what chat templates part the roles by, images whose address carries something out,
//! and characters that nobody sees.

use super::folding::skeleton;
use super::{Passage, Sign};

/// How many characters are looked at behind the beginning of a mark.
const WINDOW: usize = 40;
/// The longest address of an image that is looked at, in characters.
const ADDRESS: usize = 2_000;
/// So many tag characters in a row say something.
const UNSEEN: usize = 3;

/// Marks of templates and of our own fence, without spaces: `ChatML`, Llama, Gemma, Mistral, and tags that prompts part their sections by.
#[rustfmt::skip]
const TAGS: &[&str] = &[
    "<<sys>>", "<</sys>>", "<system>", "</system>", "<system_prompt>", "</system_prompt>", "<system-prompt>", "</system-prompt>", "<systemprompt>", "<system_message>",
    "<memory>", "</memory>", "<start_of_turn>", "<end_of_turn>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<function_calls>", "</function_calls>",
    "<assistant>", "</assistant>", "[inst]", "[/inst]", "[system](#", "[assistant](#", "[system_prompt]", "[available_tools]", "[tool_results]",
];
/// Headings that open a role, behind their number signs: of Alpaca and its like.
const HEADINGS: [&str; 7] = [
    "system:",
    "systemprompt:",
    "systemmessage:",
    "instruction:",
    "newinstructions:",
    "systeminstructions:",
    "系统:",
];
/// What follows a tag that is only talked of.
const TALKED_OF: [&str; 4] = ["tag", "tags", "element", "elements"];
/// Names of what an address carries out.
#[rustfmt::skip]
const CARRIED: &[&str] = &[
    "data", "secret", "secrets", "conversation", "chat", "history", "prompt", "leak", "exfil", "stolen", "memory", "memories", "context", "payload", "password", "credentials",
    "summary", "messages", "msg", "log", "info",
];

/// Marks where they stand, in order.
pub(super) fn marks(text: &str) -> Vec<Passage> {
    let mut out = Vec::new();
    let mut unseen = 0;
    let mut flag = false;
    let mut fresh_line = true;
    for (at, c) in text.char_indices() {
        let rest = &text[at..];
        let found = match c {
            '<' | '＜' | '﹤' | '‹' | '⟨' | '❮' | '˂' => {
                let told = |end: &usize| !fresh_line && is_talked_of(&rest[..*end], &rest[*end..]);
                let tag = tag(rest).filter(|end| !told(end));
                known(tag, Sign::Markup).or_else(|| known(picture(rest), Sign::Exfiltration))
            }
            '[' | '［' => known(tag(rest), Sign::Markup),
            '#' | '＃' if fresh_line => known(heading(rest), Sign::Markup),
            '!' | '！' => known(image(rest), Sign::Exfiltration),
            _ => None,
        };
        out.extend(found.map(|(length, sign)| Passage {
            range: at..at + length,
            sign,
        }));
        if matches!(c, '\u{e0020}'..='\u{e007e}') {
            unseen += 1;
            if unseen == UNSEEN && !flag {
                out.push(Passage {
                    range: at..at + c.len_utf8(),
                    sign: Sign::Unseen,
                });
            }
        } else {
            // The flags of some countries are a black flag and tags.
            (unseen, flag) = (0, c == '\u{1f3f4}');
        }
        fresh_line =
            c == '\n' || fresh_line && (c.is_whitespace() || matches!(c, '#' | '＃' | '>' | '*'));
    }
    out
}

/// What a character is read as in a mark: nothing, or some characters in lower case. Angles that look like those of a tag are these.
fn read(c: char) -> impl Iterator<Item = char> {
    let angle = match c {
        '‹' | '⟨' | '❮' | '˂' => '<',
        '›' | '⟩' | '❯' | '˃' => '>',
        c => c,
    };
    let plain = angle.is_ascii().then(|| angle.to_ascii_lowercase());
    let other = (!angle.is_ascii()).then(|| skeleton(angle));
    plain
        .into_iter()
        .chain(other.into_iter().flatten())
        .filter(|c| !c.is_whitespace())
}

fn known(length: Option<usize>, sign: Sign) -> Option<(usize, Sign)> {
    length.map(|length| (length, sign))
}

/// The beginning of a text without spaces and what is invisible, folded; with how many bytes of the text each character ends.
fn window(text: &str, most: usize) -> (String, Vec<usize>) {
    let mut folded = String::new();
    let mut ends = Vec::new();
    for (at, c) in text.char_indices().take(most) {
        let end = at + c.len_utf8();
        for c in read(c) {
            folded.push(c);
            ends.resize(folded.len(), end);
        }
    }
    (folded, ends)
}

/// How long a mark of a template is that a text begins with. No more is read than what can still become one.
fn tag(text: &str) -> Option<usize> {
    let mut folded = String::new();
    for (at, c) in text.char_indices().take(WINDOW) {
        let end = at + c.len_utf8();
        for c in read(c) {
            folded.push(c);
            if folded == "<|" {
                return chat(text);
            }
            let mut begun = TAGS.iter().filter(|tag| tag.starts_with(&folded));
            if begun.next()?.len() == folded.len() {
                return Some(end);
            }
        }
    }
    None
}

/// How long a mark of `ChatML` is that a text begins with.
fn chat(text: &str) -> Option<usize> {
    let (folded, ends) = window(text, WINDOW);
    let name = folded.strip_prefix("<|")?;
    let end = name.find("|>").filter(|end| *end >= 2)?;
    let named = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '▁');
    let length = name[..end].chars().all(named).then_some(end + 4);
    ends.get(length? - 1).copied()
}

/// Whether a mark that is a plain word is only talked of: "<system> tags". It is if it stands in the midst of a line.
fn is_talked_of(mark: &str, behind: &str) -> bool {
    let name = mark.trim_matches(['<', '/', '>']);
    if mark.starts_with("<<") || !name.bytes().all(|b| b.is_ascii_alphabetic()) {
        return false;
    }
    let behind = behind.trim_start_matches(['`', '"', '\'', '”', '’', ' ']);
    let word = behind.split(|c: char| !c.is_ascii_alphabetic()).next();
    word.is_some_and(|word| TALKED_OF.contains(&word)) || behind.starts_with("标签")
}

fn heading(text: &str) -> Option<usize> {
    let (folded, ends) = window(text, WINDOW);
    let name = folded.trim_start_matches(['#', '*']);
    let signs = folded.len() - name.len();
    let found = HEADINGS
        .iter()
        .find(|heading| name.starts_with(**heading))?;
    ends.get(signs + found.len() - 1).copied()
}

/// How long a Markdown image is that a text begins with, if its address carries something.
fn image(text: &str) -> Option<usize> {
    let alt = text.chars().take(WINDOW * 5);
    let mut opened = false;
    let mut length = 0;
    for c in alt {
        length += c.len_utf8();
        match c {
            '!' | '！' if !opened => {}
            '[' | '［' if !opened => opened = true,
            _ if !opened => return None,
            ']' | '］' => {
                let rest = text[length..].trim_start();
                let address = rest.strip_prefix(['(', '（'])?;
                return carries(address, ')').then_some(length);
            }
            '\n' => return None,
            _ => {}
        }
    }
    None
}

/// How long an HTML image is that a text begins with, if its address carries something.
fn picture(text: &str) -> Option<usize> {
    let begun = text.get(..4)?;
    if !begun.eq_ignore_ascii_case("<img") {
        return None;
    }
    let head: String = text.chars().take(WINDOW * 5).collect();
    let lower = head.to_ascii_lowercase();
    let from = lower.find("src=")? + 4;
    let address = text[from..].trim_start_matches(['"', '\'']);
    carries(address, '>').then_some(from)
}

/// Whether an address that ends at a space, or this mark, has a query with something of a conversation, or with a place to put it in.
fn carries(address: &str, end: char) -> bool {
    let address: String = address
        .trim_start()
        .chars()
        .take(ADDRESS)
        .take_while(|c| *c != '\n' && *c != end && *c != '"')
        .collect();
    let address = address.to_ascii_lowercase();
    if !address.starts_with("http") && !address.starts_with("//") {
        return false;
    }
    let Some((_, query)) = address.split_once('?') else {
        return false;
    };
    query
        .split('&')
        .filter_map(|part| part.split_once('='))
        .any(|(name, value)| {
            let empty = ["{", "[", "<", "%7b", "$", "...", "…"]
                .iter()
                .any(|mark| value.starts_with(mark));
            let told = [
                "conversation",
                "chat_history",
                "user_data",
                "system_prompt",
                "secret",
            ]
            .iter()
            .any(|word| value.contains(word));
            empty || told || CARRIED.contains(&name) && value.chars().any(|c| !c.is_ascii_digit())
        })
}
