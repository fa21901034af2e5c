//! Separates a model's reasoning from its answer while it streams (A4).
//!
//! One state machine serves the deltas, the stored answer and the texts of tool rounds: the answer pieces of a stream, however it is
//! split, concatenate to [`clean`] of the whole.
//!
//! **What is removed.** The blocks of the tags named in `reasoning/tag.rs`, in any case, with attributes, with white space inside the
//! tag, nested (each opening tag needs its closing tag). A closing tag ends the innermost block of its name and all within; if no
//! open block has its name, the innermost block, since models confuse the names. A block that is never closed reaches to the
//! end. A closing tag outside every block, and a tag that closes itself, are removed alone. What is left when a tag is gone is read
//! again: `<thi<think/>nk>` does not leave a tag behind.
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
use tag::{Reading, TAG_LIMIT, Tag};

/// A longer run of white space is cut, in bytes. Ours: models that fall into a loop write such runs.
const SPACE_LIMIT: usize = 4096;

/// How many bytes from a tag behind an unmatched backtick run are held back at most. Ours: longer than nearly every code span.
const HOLD_LIMIT: usize = 1024;

/// How many nested blocks keep their names; deeper ones are only counted. Ours.
const NAMED_DEPTH: usize = 64;

/// A part of what a model wrote, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// For the person. Never empty.
    Answer(String),
    /// Within a reasoning block, without the tags. Never empty.
    Reasoning(String),
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
    /// What may become a tag, behind `space`. Each `<` in it begins an inner one; when that is removed, the outer goes on.
    candidate: String,
    /// White space behind something removed; none when nothing was removed since the last other character.
    gap: Option<String>,
    hold: Option<Hold>,
    blocks: Blocks,
    /// What may become a tag within a block.
    inner: String,
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
    pieces
        .into_iter()
        .filter_map(|piece| match piece {
            Piece::Answer(text) => Some(text),
            Piece::Reasoning(_) => None,
        })
        .collect()
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
        if self.inner.is_empty() && c != '<' {
            return self.reason(c);
        }
        if c == '<' {
            self.leave_inner();
        }
        self.inner.push(c);
        match tag::read(&self.inner) {
            Reading::Unfinished => {}
            Reading::Never => self.leave_inner(),
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
        match tag {
            Tag::Open(name) => self.blocks.open(name),
            Tag::Close(name) => self.blocks.close(name),
            Tag::Empty => {}
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
            if c == '<' && !self.here(c).is_fenced() {
                self.candidate.push(c);
            } else {
                self.answer(c);
            }
            return;
        }
        self.candidate.push(c);
        let start = self.candidate.rfind('<').unwrap_or_default();
        match tag::read(&self.candidate[start..]) {
            Reading::Unfinished => self.bound_candidate(),
            Reading::Never => self.leave_candidate(),
            Reading::Whole(tag) => self.found(tag, start),
        }
    }

    /// A whole tag: removed, unless it may lie in a code span.
    fn found(&mut self, tag: Tag, start: usize) {
        let mut code = self.here('<');
        for c in self.candidate[..start].chars().skip(1) {
            code.feed(c);
        }
        if start > 0 {
            code.feed('<');
        }
        if code.open_runs().is_empty() {
            return self.remove(tag, start);
        }
        let mut hold = Hold {
            tag,
            start,
            length: self.candidate.len() - start,
            text: "<".to_owned(),
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
        self.candidate.truncate(start);
        self.gap = Some(String::new());
        self.apply(tag);
    }

    /// Joins the white space on both sides of what was removed.
    fn close_gap(&mut self) {
        let Some(behind) = self.gap.take() else {
            return;
        };
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
        let start = self.candidate.rfind('<').unwrap_or_default();
        if !self.candidate.is_empty() && tag::read(&self.candidate[start..]) == Reading::Never {
            self.leave_candidate();
        }
    }

    /// Gives up the outermost of too many nested beginnings of tags.
    fn bound_candidate(&mut self) {
        while self.candidate.len() > TAG_LIMIT {
            let inner = self.candidate[1..]
                .find('<')
                .map_or(self.candidate.len(), |i| i + 1);
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
        if let Some(Piece::Reasoning(text)) = self.pieces.last_mut() {
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
