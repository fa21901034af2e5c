//! Separates a model's reasoning from its answer while it streams (A4).
//!
//! One state machine serves the deltas, the stored answer and the texts of tool rounds: the answer pieces of a stream, however it is
//! split, concatenate to [`clean`] of the whole.
//!
//! **What is removed.** The blocks of the tags named in `reasoning/tag.rs`, in any case, with attributes, with white space inside the
//! tag, and of the special tokens there; nested (each opening tag needs its closing tag). A closing tag ends the innermost block of its name and all within; if no
//! open block has its name, the innermost block, since models confuse the names. A block that is never closed reaches to the
//! end. A closing tag outside every block, and a tag that closes itself, are removed alone. What is left when a tag is gone is read
//! again: `<thi<think/>nk>` does not leave a tag behind. Of messages in harmony format the channel `final` is the answer.
//!
//! **A closing tag without its opening one** stands alone where the prompt itself opened the block, as templates of reasoning models do.
//! If it is the first tag, with a line break on one side, and an answer follows, then all before it was reasoning. That is known only
//! when it has been shown: [`Piece::Void`] takes it back. Elsewhere such a tag is a leftover, and what was said before it stays.
//!
//! **What stays.** Tags in Markdown code, which are the user's: fenced blocks (backticks or tildes, also in list items and quotes) and code
//! spans. Code is judged in the answer as its reader sees it, without the reasoning; within reasoning nothing is code, so that no
//! fence hides the closing tag.
//!
//! **What is held back.** White space, until the next other character; `<` and what follows, while it may become a tag (at most 256
//! bytes); and, where a backtick run is still unmatched in its paragraph and a whole tag follows it, the text from that tag to the
//! matching run or the paragraph's end (at most 1,024 bytes, then the run counts as literal). All other text flows at once.
//!
//! **White space.** None leads or trails the answer. Of the white space before and after something removed, one side stays: the one
//! with more line breaks, or with as many, the one behind, unless it is empty. Two backtick
//! runs that would join are kept apart by a space, or the code would end elsewhere. A run of white space above 4,096 bytes is cut to that.

mod code;
mod tag;

use std::collections::VecDeque;

use code::{Code, closing_run};
use tag::{CHANNEL, HEADER, Reading, TAG_LIMIT, Tag};

/// A longer run of white space is cut, in bytes. Ours: models that fall into a loop write such runs.
const SPACE_LIMIT: usize = 4096;

/// How many bytes from a tag behind an unmatched backtick run are held back at most. Ours: longer than nearly every code span.
const HOLD_LIMIT: usize = 1024;

/// How many nested blocks keep their names; deeper ones are only counted. Ours.
const NAMED_DEPTH: usize = 64;

/// So much of a harmony header is read: its channel comes first. Ours.
const HEADER_LIMIT: usize = 64;

/// A part of what a model wrote, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// For the person. Never empty.
    Answer(String),
    /// Within a reasoning block, without the tags. Never empty.
    Reasoning(String),
    /// What was given out as answer so far was reasoning.
    Void,
}

/// Blocks that are open: the outer ones by the index of their name, the innermost by number.
#[derive(Clone, Debug, Default)]
struct Blocks {
    named: Vec<u8>,
    deeper: u64,
}

impl Blocks {
    fn is_empty(&self) -> bool {
        self.named.is_empty()
    }

    fn open(&mut self, name: u8) {
        if self.named.len() < NAMED_DEPTH {
            self.named.push(name);
        } else {
            self.deeper += 1;
        }
    }

    /// Ends the innermost block of that name and all within, if there is one.
    fn leave(&mut self, name: u8) -> bool {
        let index = self.named.iter().rposition(|n| *n == name);
        if let Some(index) = index {
            self.named.truncate(index);
            self.deeper = 0;
        }
        index.is_some()
    }

    fn close(&mut self, name: u8) {
        if self.deeper > 0 {
            self.deeper -= 1;
        } else if let Some(index) = self.named.iter().rposition(|n| *n == name) {
            self.named.truncate(index);
        } else {
            self.named.pop();
        }
    }
}

/// Whether a message with such a harmony header is for the person: in the channel `final`, or in none.
fn is_answer(header: &str) -> bool {
    let header = header.trim();
    header.starts_with("final") || header.is_empty() || header == "assistant"
}

/// A whole tag that may lie in a code span, and what was read from it on.
#[derive(Clone, Debug)]
struct Hold {
    tag: Tag,
    /// Where the tag begins in `AnswerFilter::candidate`, and how long it is.
    start: usize,
    length: usize,
    /// From the tag on.
    text: String,
    /// The state behind `text`, if it is all answer.
    code: Code,
    /// Unmatched runs before the tag.
    before: Vec<usize>,
    /// Runs behind it, with the end of each in `text`.
    behind: Vec<usize>,
    ends: Vec<usize>,
}

/// The streaming filter. Uses a few kilobytes however long the stream is.
#[derive(Clone, Debug, Default)]
pub struct AnswerFilter {
    /// The state behind the answer that was given out.
    code: Code,
    /// The last character that was given out.
    last: Option<char>,
    /// White space behind it.
    space: String,
    /// What may become a tag, behind `space`. Each [`tag::begins`] in it begins an inner one; when that is removed, the outer goes on.
    candidate: String,
    /// White space behind something removed; none when nothing was removed since the last other character.
    gap: Option<String>,
    hold: Option<Hold>,
    blocks: Blocks,
    /// A tag was removed already.
    tagged: bool,
    /// The last thing removed was a closing tag without an opening one; whether a line break came before it.
    lone: Option<bool>,
    /// The next of the answer voids what was given out.
    voids: bool,
    /// What may become a tag within a block.
    inner: String,
    /// The beginning of a harmony header.
    header: String,
    /// Characters to be read before the next of the stream.
    backlog: VecDeque<char>,
    pieces: Vec<Piece>,
}

/// The answer in a whole text, without reasoning, trimmed. Empty when there is none: such a turn fails.
///
/// Idempotent for texts that stay within the limits above.
pub fn clean(text: &str) -> String {
    let mut filter = AnswerFilter::new();
    let mut pieces = filter.push(text);
    pieces.extend(filter.finish());
    let mut answer = String::new();
    for piece in pieces {
        match piece {
            Piece::Answer(text) => answer.push_str(&text),
            Piece::Reasoning(_) => {}
            Piece::Void => answer.clear(),
        }
    }
    answer
}

impl AnswerFilter {
    /// A filter at the start of an answer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the next text of the stream and returns what is certain by now.
    pub fn push(&mut self, text: &str) -> Vec<Piece> {
        for c in text.chars() {
            self.step(c);
            self.drain();
        }
        std::mem::take(&mut self.pieces)
    }

    /// Ends the stream and returns what was held back. The filter is then at the start of another answer.
    pub fn finish(&mut self) -> Vec<Piece> {
        while let Some(mut hold) = self.hold.take() {
            // A line break ends a run, and matches no other text.
            hold.see('\n');
            self.judge(&hold);
            self.drain();
        }
        for c in std::mem::take(&mut self.inner).chars() {
            self.reason(c);
        }
        for c in std::mem::take(&mut self.candidate).chars() {
            self.answer(c);
        }
        std::mem::take(self).pieces
    }

    fn drain(&mut self) {
        while let Some(c) = self.backlog.pop_front() {
            self.step(c);
        }
    }

    fn step(&mut self, c: char) {
        if let Some(mut hold) = self.hold.take() {
            if hold.read(c) {
                self.judge(&hold);
            } else {
                self.hold = Some(hold);
            }
        } else if self.blocks.is_empty() {
            self.outside(c);
        } else {
            self.inside(c);
        }
    }

    fn inside(&mut self, c: char) {
        if self.inner.is_empty() && !tag::begins(c) {
            return self.reason(c);
        }
        if c == '<' {
            self.leave_inner();
        }
        self.inner.push(c);
        match tag::read(&self.inner) {
            Reading::Unfinished => {}
            Reading::Never => {
                // The character that ruled it out may begin a mark itself.
                let next = tag::begins(c) && self.inner.len() > c.len_utf8();
                if next {
                    self.inner.pop();
                }
                self.leave_inner();
                if next {
                    self.inner.push(c);
                }
            }
            Reading::Whole(tag) => {
                self.inner.clear();
                self.apply(tag);
            }
        }
    }

    fn leave_inner(&mut self) {
        for c in std::mem::take(&mut self.inner).chars() {
            self.reason(c);
        }
    }

    fn apply(&mut self, tag: Tag) {
        self.tagged = true;
        match tag {
            Tag::Open(name) => self.blocks.open(name),
            Tag::Close(name) => self.blocks.close(name),
            Tag::Empty => {}
            Tag::Header => {
                self.blocks.leave(HEADER);
                self.blocks.leave(CHANNEL);
                self.blocks.open(HEADER);
                self.header.clear();
            }
            Tag::Message => {
                if self.blocks.leave(HEADER) && !is_answer(&self.header) {
                    self.blocks.open(CHANNEL);
                }
            }
        }
    }

    fn outside(&mut self, c: char) {
        if let Some(gap) = &mut self.gap {
            if c.is_whitespace() {
                if gap.len() < SPACE_LIMIT {
                    gap.push(c);
                }
                return;
            }
            self.close_gap();
            let joins = c == '`' && self.last == Some(c);
            if joins && self.space.is_empty() && self.candidate.is_empty() {
                self.space.push(' ');
            }
        }
        if self.candidate.is_empty() {
            if tag::begins(c) && !self.here(c).is_fenced() {
                self.candidate.push(c);
            } else {
                self.answer(c);
            }
            return;
        }
        self.candidate.push(c);
        match tag::innermost(&self.candidate) {
            Some((start, Reading::Whole(tag))) => self.found(tag, start),
            Some(_) => self.bound_candidate(),
            None => self.leave_candidate(),
        }
    }

    /// A whole tag: removed, unless it may lie in a code span.
    fn found(&mut self, tag: Tag, start: usize) {
        // Up to the first character of the tag.
        let mut before = self.candidate[..start].chars();
        let first = self.candidate[start..].chars().next().unwrap_or('<');
        let mut code = self.here(before.next().unwrap_or(first));
        for c in before {
            code.feed(c);
        }
        if start > 0 {
            code.feed(first);
        }
        if code.open_runs().is_empty() {
            return self.remove(tag, start);
        }
        let mut hold = Hold {
            tag,
            start,
            length: self.candidate.len() - start,
            text: first.to_string(),
            before: code.open_runs().to_vec(),
            code,
            behind: Vec::new(),
            ends: Vec::new(),
        };
        let rest = self.candidate.split_off(start);
        let mut ended = false;
        for c in rest.chars().skip(1) {
            ended |= hold.read(c);
        }
        if ended {
            self.judge(&hold);
        } else {
            self.hold = Some(hold);
        }
    }

    fn judge(&mut self, hold: &Hold) {
        let kept = closing_run(&hold.before, &hold.behind).map(|index| hold.ends[index]);
        let rest = if let Some(end) = kept {
            self.leave_candidate();
            for c in hold.text[..end].chars() {
                self.answer(c);
            }
            &hold.text[end..]
        } else {
            self.remove(hold.tag, hold.start);
            &hold.text[hold.length..]
        };
        for c in rest.chars().rev() {
            self.backlog.push_front(c);
        }
    }

    fn remove(&mut self, tag: Tag, start: usize) {
        let is_lone =
            matches!(tag, Tag::Close(name) if name != CHANNEL) && !self.tagged && start == 0;
        self.lone = (is_lone && self.last.is_some()).then(|| self.space.contains('\n'));
        self.candidate.truncate(start);
        self.gap = Some(String::new());
        self.apply(tag);
    }

    /// Joins the white space on both sides of what was removed.
    fn close_gap(&mut self) {
        let Some(behind) = self.gap.take() else {
            return;
        };
        if self
            .lone
            .take()
            .is_some_and(|broken| broken || behind.contains('\n'))
        {
            self.voids = true;
            self.code = Code::default();
            self.last = None;
            self.space.clear();
            return;
        }
        let before = if self.candidate.is_empty() {
            &mut self.space
        } else {
            &mut self.candidate
        };
        let kept = before.trim_end().len();
        let breaks = |text: &str| text.matches('\n').count();
        if !behind.is_empty() && breaks(&behind) >= breaks(&before[kept..]) {
            before.truncate(kept);
            before.push_str(&behind);
        }
        if self.last.is_none() && self.candidate.is_empty() {
            self.space.clear();
        }
        if tag::innermost(&self.candidate).is_none() {
            self.leave_candidate();
        }
    }

    /// Gives up the outermost of too many nested beginnings of tags.
    fn bound_candidate(&mut self) {
        while self.candidate.len() > TAG_LIMIT {
            let mut behind = self.candidate.char_indices().skip(1);
            let inner = behind.find(|(_, c)| tag::begins(*c));
            let inner = inner.map_or(self.candidate.len(), |(i, _)| i);
            let rest = self.candidate.split_off(inner);
            self.leave_candidate();
            self.candidate = rest;
        }
    }

    fn leave_candidate(&mut self) {
        for c in std::mem::take(&mut self.candidate).chars() {
            self.answer(c);
        }
    }

    /// The state of the answer if white space and then `c` came next.
    fn here(&self, c: char) -> Code {
        let mut code = self.code.clone();
        for c in self.space.chars().chain([c]) {
            code.feed(c);
        }
        code
    }

    fn answer(&mut self, c: char) {
        if c.is_whitespace() {
            if self.last.is_some() && self.space.len() < SPACE_LIMIT {
                self.space.push(c);
            }
            return;
        }
        self.last = Some(c);
        if std::mem::take(&mut self.voids) {
            self.pieces.push(Piece::Void);
        }
        if !matches!(self.pieces.last(), Some(Piece::Answer(_))) {
            self.pieces.push(Piece::Answer(String::new()));
        }
        let Some(Piece::Answer(text)) = self.pieces.last_mut() else {
            return;
        };
        text.push_str(&self.space);
        text.push(c);
        for c in self.space.drain(..).chain([c]) {
            self.code.feed(c);
        }
    }

    fn reason(&mut self, c: char) {
        if self.blocks.named.last() == Some(&HEADER) {
            if self.header.len() < HEADER_LIMIT {
                self.header.push(c);
            }
        } else if let Some(Piece::Reasoning(text)) = self.pieces.last_mut() {
            text.push(c);
        } else {
            self.pieces.push(Piece::Reasoning(c.to_string()));
        }
    }
}

impl Hold {
    /// Goes on by one character; true when it is known whether the tag lies in a code span.
    fn read(&mut self, c: char) -> bool {
        let decided = self.see(c);
        self.text.push(c);
        decided || self.text.len() >= HOLD_LIMIT
    }

    fn see(&mut self, c: char) -> bool {
        let found = self.code.feed(c);
        if found.run > 0 {
            self.behind.push(found.run);
            self.ends.push(self.text.len());
        }
        found.ended || self.code.is_fenced() || self.before.first() == Some(&found.run)
    }
}

#[cfg(test)]
mod tests;
