//! Follows a Markdown text and knows what of it is code.
//!
//! After `CommonMark` 0.31 (fenced code blocks 4.5, code spans 6.1, backslash escapes 2.4), as far as one pass without looking ahead
//! allows. Known differences: the line that opens with a fence is code as a whole, even where a later backtick shows that it was
//! no fence; such a line ends the paragraph; list items are known by the column of the innermost one alone.

/// How many backtick runs behind an unmatched one are remembered. Ours: a paragraph with more literal runs is no prose.
const RUNS: usize = 32;

/// What a character of the text made known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Length of the backtick run that ended before the character; 0 when none did.
    pub(super) run: usize,
    /// The paragraph ended: no run before it can pair with one after it.
    pub(super) ended: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Block {
    #[default]
    Paragraph,
    /// The line of an opening backtick fence: a fence unless another backtick comes.
    Info { length: usize },
    Fence {
        mark: char,
        length: usize,
        quoted: bool,
    },
}

/// How far the beginning of the line is understood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Line {
    #[default]
    Indent,
    Number(usize),
    Marker(usize),
    Heading(usize),
    /// So many marks of what may be an opening fence.
    Marks(char, usize),
    /// So many marks of what may be a closing fence.
    Closing(usize),
    /// White space behind a closing fence.
    Tail,
    Rest,
}

/// The state behind a prefix of the text.
#[derive(Clone, Debug, Default)]
pub(super) struct Code {
    block: Block,
    line: Line,
    column: usize,
    /// Column where the content of the innermost list item begins.
    item: usize,
    quoted: bool,
    quoted_before: bool,
    heading: bool,
    escaped: bool,
    /// Length of the run that is being read.
    run: usize,
    /// The paragraph's first unmatched run and all behind it.
    open: Vec<usize>,
}

impl Code {
    /// Within a fenced block.
    pub(super) fn is_fenced(&self) -> bool {
        self.block != Block::Paragraph
    }

    /// The unmatched run that may turn out to have opened a code span here, and the runs behind it.
    pub(super) fn open_runs(&self) -> &[usize] {
        &self.open
    }

    /// Goes on by one character.
    pub(super) fn feed(&mut self, c: char) -> Found {
        match self.block {
            Block::Paragraph => self.paragraph(c),
            Block::Info { length } => self.info(c, length),
            Block::Fence {
                mark,
                length,
                quoted,
            } => self.fence(c, mark, length, quoted),
        }
    }

    fn paragraph(&mut self, c: char) -> Found {
        let mut found = Found::default();
        if c != '`' && self.run > 0 {
            found.run = self.run;
            self.close_run();
        }
        match self.line {
            _ if c == '\n' => {
                found.ended = self.heading || matches!(self.line, Line::Indent | Line::Marker(_));
                self.next_line();
            }
            Line::Indent => found.ended = self.line_start(c),
            Line::Number(digits) if c.is_ascii_digit() && digits < 9 => {
                self.line = Line::Number(digits + 1);
            }
            Line::Number(digits) if matches!(c, '.' | ')') => {
                self.line = Line::Marker(digits + 1);
            }
            Line::Marker(width) if matches!(c, ' ' | '\t') => {
                self.column += width + 1;
                self.item = self.column;
                self.line = Line::Indent;
                found.ended = true;
            }
            Line::Heading(marks) if c == '#' && marks < 6 => self.line = Line::Heading(marks + 1),
            Line::Heading(_) if matches!(c, ' ' | '\t') => {
                self.heading = true;
                self.line = Line::Rest;
                found.ended = true;
            }
            Line::Marks(mark, count) if c == mark => found.ended = self.mark(mark, count + 1),
            _ => {
                self.line = Line::Rest;
                self.item = self.item.min(self.column);
                self.inline(c);
            }
        }
        if found.ended {
            self.open.clear();
        }
        found
    }

    /// Another mark of what may be an opening fence; true when it has become one.
    fn mark(&mut self, mark: char, count: usize) -> bool {
        self.line = Line::Marks(mark, count);
        if count < 3 {
            self.run = if mark == '`' { count } else { 0 };
            return false;
        }
        self.run = 0;
        self.block = if mark == '`' {
            Block::Info { length: count }
        } else {
            Block::Fence {
                mark,
                length: count,
                quoted: self.quoted,
            }
        };
        true
    }

    /// The first characters of a line of text; true when they end the paragraph before.
    fn line_start(&mut self, c: char) -> bool {
        let near = self.column < self.item + 4;
        match c {
            ' ' => self.column += 1,
            '\t' => self.column += 4 - self.column % 4,
            '\r' => {}
            '>' if near => {
                self.quoted = true;
                self.column = 0;
                if !self.quoted_before {
                    self.item = 0;
                    return true;
                }
            }
            '`' | '~' if near => {
                self.item = self.item.min(self.column);
                return self.mark(c, 1);
            }
            '-' | '*' | '+' if near => self.line = Line::Marker(1),
            '0'..='9' if near => self.line = Line::Number(1),
            '#' if near => self.line = Line::Heading(1),
            _ => {
                self.line = Line::Rest;
                self.item = self.item.min(self.column);
                self.inline(c);
            }
        }
        false
    }

    fn inline(&mut self, c: char) {
        // Within a code span a backslash is a backslash, and an unmatched run may have opened one.
        let escaped = self.escaped && self.open.is_empty();
        if c == '`' && !escaped {
            self.run += 1;
        }
        self.escaped = c == '\\' && !self.escaped;
    }

    fn info(&mut self, c: char, length: usize) -> Found {
        match (c, self.line) {
            ('`', Line::Marks(..)) => self.block = Block::Info { length: length + 1 },
            ('`', _) => {
                self.block = Block::Paragraph;
                self.open = vec![length];
                self.run = 1;
            }
            ('\n', _) => {
                self.block = Block::Fence {
                    mark: '`',
                    length,
                    quoted: self.quoted,
                };
                self.next_line();
            }
            _ => self.line = Line::Rest,
        }
        Found::default()
    }

    fn fence(&mut self, c: char, mark: char, length: usize, quoted: bool) -> Found {
        let outside_quote = quoted && !self.quoted;
        match (self.line, c) {
            (Line::Indent, ' ' | '\t' | '\r') => {
                self.column += usize::from(c != '\r');
            }
            (Line::Indent, '>') if outside_quote => {
                self.quoted = true;
                self.column = 0;
            }
            (Line::Indent, _) if outside_quote => {
                self.block = Block::Paragraph;
                self.item = 0;
                return self.paragraph(c);
            }
            (Line::Indent, _) if c == mark && self.column < self.item + 4 => {
                self.line = Line::Closing(1);
            }
            (Line::Closing(count), _) if c == mark => self.line = Line::Closing(count + 1),
            (Line::Closing(count), ' ' | '\t' | '\r') if count >= length => self.line = Line::Tail,
            (Line::Tail, ' ' | '\t' | '\r') => {}
            (Line::Closing(count), '\n') if count >= length => self.end_fence(),
            (Line::Tail, '\n') => self.end_fence(),
            (Line::Marks(..), _) if c == mark => {
                self.block = Block::Fence {
                    mark,
                    length: length + 1,
                    quoted,
                };
            }
            (_, '\n') => self.next_line(),
            _ => self.line = Line::Rest,
        }
        Found::default()
    }

    fn end_fence(&mut self) {
        self.block = Block::Paragraph;
        self.next_line();
    }

    fn close_run(&mut self) {
        match self.open.first() {
            Some(first) if *first == self.run => self.open.clear(),
            _ if self.open.len() < RUNS => self.open.push(self.run),
            _ => {}
        }
        self.run = 0;
    }

    fn next_line(&mut self) {
        self.line = Line::Indent;
        self.column = 0;
        self.quoted_before = self.quoted;
        self.quoted = false;
        self.heading = false;
        self.escaped = false;
    }
}

/// Whether a place lies within a code span, given the runs from the paragraph's first unmatched one up to the place, and those behind it
/// up to the paragraph's end: the index in `behind` of the run that closes the span. Runs pair from the left, each with the next of
/// its length; one without a match is literal.
pub(super) fn closing_run(before: &[usize], behind: &[usize]) -> Option<usize> {
    let mut at = 0;
    while let Some(length) = before.get(at) {
        if let Some(next) = before[at + 1..].iter().position(|l| l == length) {
            at += next + 2;
        } else if let Some(index) = behind.iter().position(|l| l == length) {
            return Some(index);
        } else {
            at += 1;
        }
    }
    None
}
