//! A text as the patterns read it: words of a known vocabulary, whatever hides them from a program and not from a model.
//!
//! Compatibility forms, accents, case and letters of other scripts that look like Latin ones are folded, traditional characters of the
//! vocabulary are simplified, what is invisible is left out, tag characters are read as the letters they stand for. Digits in a word may
//! stand for letters, single letters in a row ("i g n o r e") and the parts of a word ("by-pass") are joined if they make words that are
//! known, and so are Han characters. So is a long run of letters parted ("ignoreallinstructions").

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::memory::analysis::is_han;

/// A word that is not known.
pub(super) const OTHER: u16 = 0;
/// The fewest single letters in a row that are read as words.
const SPELLED: usize = 4;
/// The fewest words in a row, each behind a comma or in a paragraph of its own, that are read as if spaces parted them.
const LISTED: usize = 4;
/// The longest reference to a character that is read, in bytes.
const REFERENCE: usize = 10;
/// A word that is not known and has so many letters may be several.
const GLUED: usize = 12;
/// The most parts of a word.
const PARTS: usize = 4;

/// Letters that look like Latin ones, by the Unicode list of confusables, in lower case.
#[rustfmt::skip]
const ALIKE: &[(char, char)] = &[
    ('а', 'a'), ('в', 'b'), ('с', 'c'), ('ԁ', 'd'), ('е', 'e'), ('һ', 'h'), ('н', 'h'), ('і', 'i'), ('ј', 'j'), ('к', 'k'), ('ӏ', 'l'), ('м', 'm'),
    ('о', 'o'), ('р', 'p'), ('ԛ', 'q'), ('ѕ', 's'), ('т', 't'), ('ѵ', 'v'), ('ԝ', 'w'), ('х', 'x'), ('у', 'y'), ('α', 'a'), ('ε', 'e'), ('η', 'n'),
    ('ι', 'i'), ('κ', 'k'), ('ν', 'v'), ('ο', 'o'), ('ρ', 'p'), ('τ', 't'), ('υ', 'u'), ('χ', 'x'), ('ı', 'i'), ('ɡ', 'g'), ('ɩ', 'i'), ('օ', 'o'),
    ('ո', 'n'), ('ս', 'u'), ('ᴏ', 'o'), ('ⅼ', 'l'), ('ᴀ', 'a'), ('ʙ', 'b'), ('ᴄ', 'c'), ('ᴅ', 'd'), ('ᴇ', 'e'), ('ꜰ', 'f'), ('ɢ', 'g'), ('ʜ', 'h'),
    ('ɪ', 'i'), ('ᴊ', 'j'), ('ᴋ', 'k'), ('ʟ', 'l'), ('ᴍ', 'm'), ('ɴ', 'n'), ('ᴘ', 'p'), ('ʀ', 'r'), ('ꜱ', 's'), ('ᴛ', 't'), ('ᴜ', 'u'), ('ᴠ', 'v'),
    ('ᴡ', 'w'), ('ʏ', 'y'), ('ᴢ', 'z'),
];
/// Characters of the vocabulary in their traditional form.
#[rustfmt::skip]
const TRADITIONAL: &[(char, char)] = &[
    ('無', '无'), ('視', '视'), ('規', '规'), ('則', '则'), ('統', '统'), ('詞', '词'), ('設', '设'), ('對', '对'), ('話', '话'), ('訴', '诉'),
    ('戶', '户'), ('說', '说'), ('這', '这'), ('個', '个'), ('從', '从'), ('現', '现'), ('開', '开'), ('後', '后'), ('們', '们'), ('給', '给'),
    ('請', '请'), ('記', '记'), ('憶', '忆'), ('歷', '历'), ('發', '发'), ('輸', '输'), ('顯', '显'), ('鑰', '钥'), ('碼', '码'), ('憑', '凭'),
    ('證', '证'), ('據', '据'), ('機', '机'), ('資', '资'), ('訊', '讯'), ('聽', '听'), ('別', '别'), ('離', '离'), ('獄', '狱'), ('員', '员'),
    ('瞞', '瞒'), ('隱', '隐'), ('內', '内'), ('達', '达'), ('過', '过'), ('濾', '滤'), ('審', '审'), ('約', '约'), ('準', '准'), ('為', '为'),
    ('變', '变'), ('傳', '传'), ('轉', '转'), ('遺', '遗'), ('拋', '抛'), ('棄', '弃'), ('繞', '绕'), ('違', '违'), ('隻', '只'), ('還', '还'),
    ('須', '须'), ('將', '将'), ('與', '与'), ('當', '当'), ('沒', '没'), ('處', '处'), ('進', '进'), ('於', '于'), ('畧', '略'),
];
/// Digits that stand for letters within a word.
const DIGITS: [(char, char); 6] = [
    ('0', 'o'),
    ('1', 'i'),
    ('3', 'e'),
    ('4', 'a'),
    ('5', 's'),
    ('7', 't'),
];

/// Characters that show nothing: zero-width ones, marks of direction, selectors, fillers, tags.
pub(in crate::memory) fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// The letter that a tag character stands for.
fn tagged(c: char) -> Option<char> {
    matches!(c, '\u{e0020}'..='\u{e007e}')
        .then(|| char::from_u32(c as u32 - 0xe0000))
        .flatten()
}

/// What a character is read as: nothing, or some characters in lower case.
pub(in crate::memory) fn skeleton(c: char) -> impl Iterator<Item = char> {
    let c = tagged(c).unwrap_or(c);
    let seen = (!is_invisible(c)).then_some(c);
    seen.into_iter()
        .nfkd()
        .filter(|&c| !is_combining_mark(c))
        .flat_map(char::to_lowercase)
        .map(plain)
}

/// The letter of a white one on black, counted from the one that stands for the first.
fn letter(c: char, first: char) -> char {
    let place = c as u32 - first as u32;
    char::from_u32('a' as u32 + place).unwrap_or(c)
}

fn plain(c: char) -> char {
    let of = |list: &[(char, char)]| list.iter().find(|(from, _)| *from == c).map(|(_, to)| *to);
    match c {
        '\0'..='\u{7f}' => c,
        '\u{4e00}'..='\u{9fff}' => of(TRADITIONAL).unwrap_or(c),
        '\u{1f150}'..='\u{1f169}' => letter(c, '\u{1f150}'),
        '\u{1f170}'..='\u{1f189}' => letter(c, '\u{1f170}'),
        _ => of(ALIKE).unwrap_or(c),
    }
}

/// What parts a word from the one before it, from the least to the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    /// Nothing, or a mark within a word.
    Within,
    /// Spaces.
    Space,
    /// Quotation marks, brackets and the like.
    Mark,
    /// The end of a line.
    Line,
    /// A mark within a sentence.
    Comma,
    /// The end of a paragraph.
    Paragraph,
    /// The end of a sentence.
    Stop,
}

/// A word of the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    /// Its number in the vocabulary.
    pub(super) word: u16,
    /// What stands before it.
    pub(super) gap: Gap,
    start: u32,
    end: u32,
}

/// The words that are known, by number.
#[derive(Debug, Default)]
pub(super) struct Words {
    numbers: HashMap<String, u16>,
    /// With which Han characters they begin.
    han: HashSet<char>,
    longest: usize,
}

impl Words {
    /// The number of a word, a new one for a new word.
    pub(super) fn add(&mut self, word: &str) -> u16 {
        let next = self.numbers.len() as u16 + 1;
        self.longest = self.longest.max(word.len());
        self.han.extend(word.chars().next().filter(|c| is_han(*c)));
        *self.numbers.entry(word.to_owned()).or_insert(next)
    }

    /// How many there are, with the one for what is not known.
    pub(super) fn count(&self) -> usize {
        self.numbers.len() + 1
    }

    fn number(&self, word: &str) -> Option<u16> {
        if word.len() > self.longest {
            return None;
        }
        self.numbers.get(word).copied()
    }
}

/// A run of letters and digits, or a Han character.
struct Piece {
    /// Where it stands in the folded text; the pieces stand there side by side.
    text: Range<usize>,
    /// Where it stands in the original.
    start: u32,
    end: u32,
    gap: Gap,
    kind: Kind,
    /// Something invisible stands within it.
    sewn: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Word,
    Letter,
    Han,
}

/// A text as words.
pub(super) struct Reading {
    pub(super) tokens: Vec<Token>,
}

impl Reading {
    pub(super) fn of(text: &str, words: &Words) -> Self {
        let (folded, mut pieces, seams) = pieces(text);
        enlist(&mut pieces);
        let mut tokens = Vec::with_capacity(pieces.len());
        let mut at = 0;
        while at < pieces.len() {
            at += push((&folded, &seams), &pieces[at..], words, &mut tokens);
        }
        Self { tokens }
    }

    /// Where some words stand in the original.
    pub(super) fn place(&self, tokens: Range<usize>) -> Range<usize> {
        let (first, last) = (&self.tokens[tokens.start], &self.tokens[tokens.end - 1]);
        first.start as usize..last.end as usize
    }
}

/// Adds the word or words that the first pieces make; answers how many pieces these are.
fn push(
    (folded, seams): (&str, &[usize]),
    pieces: &[Piece],
    words: &Words,
    tokens: &mut Vec<Token>,
) -> usize {
    let Some(first) = pieces.first() else {
        return 0;
    };
    let mut add = |word: u16, count: usize| {
        tokens.push(Token {
            word,
            gap: first.gap,
            start: first.start,
            end: pieces[count - 1].end,
        });
        count
    };
    let joined = |count: usize| &folded[first.text.start..pieces[count - 1].text.end];
    let run = |most: usize, goes_on: &dyn Fn(&Piece) -> bool| {
        1 + pieces[1..]
            .iter()
            .take(most - 1)
            .take_while(|p| goes_on(p))
            .count()
    };
    let longest = |most: usize| {
        let mut lengths = (1..=most).rev();
        lengths.find_map(|n| Some((words.number(joined(n))?, n)))
    };
    match first.kind {
        Kind::Han => {
            let run = run(words.longest / 3, &|p| {
                p.kind == Kind::Han && p.gap <= Gap::Line
            });
            let begins = joined(1).starts_with(|c| c == '@' || words.han.contains(&c));
            let (word, count) = begins.then(|| longest(run)).flatten().unwrap_or((OTHER, 1));
            add(word, count)
        }
        Kind::Letter => {
            let run = run(words.longest, &|p| {
                p.kind == Kind::Letter && p.gap <= Gap::Line
            });
            let spelled = (run >= SPELLED).then(|| longest(run)).flatten();
            let (word, count) = spelled
                .filter(|(_, count)| *count > 1)
                .unwrap_or_else(|| (words.number(joined(1)).unwrap_or(OTHER), 1));
            add(word, count)
        }
        Kind::Word => {
            let run = run(PARTS, &|p| p.kind != Kind::Han && p.gap == Gap::Within);
            if let Some((word, count)) = longest(run) {
                return add(word, count);
            }
            let word = joined(1);
            if let Some(number) = with_letters(word).and_then(|word| words.number(&word)) {
                return add(number, 1);
            }
            let unsewn = || {
                first
                    .sewn
                    .then(|| parted(folded, &first.text, seams, words))
            };
            match glued(word, words).or_else(unsewn) {
                Some(numbers) => {
                    for (place, number) in numbers.into_iter().enumerate() {
                        let gap = if place == 0 { first.gap } else { Gap::Within };
                        tokens.push(Token {
                            word: number,
                            gap,
                            start: first.start,
                            end: first.end,
                        });
                    }
                    1
                }
                None => add(OTHER, 1),
            }
        }
    }
}

/// A word with letters in place of the digits among its letters.
fn with_letters(word: &str) -> Option<String> {
    let mixed = word.len() <= 32
        && word.contains(|c: char| c.is_ascii_digit())
        && word.contains(|c: char| c.is_ascii_alphabetic());
    let letter = |c| {
        DIGITS
            .iter()
            .find(|(digit, _)| *digit == c)
            .map_or(c, |(_, letter)| *letter)
    };
    mixed.then(|| word.chars().map(letter).collect())
}

/// The known words that a long run of letters is made of, if of nothing else.
fn glued(word: &str, words: &Words) -> Option<Vec<u16>> {
    if word.len() < GLUED || word.len() > 128 || !word.is_ascii() {
        return None;
    }
    let mut numbers = Vec::new();
    let mut rest = word;
    while !rest.is_empty() {
        let most = rest.len().min(words.longest);
        let (number, length) = (1..=most)
            .rev()
            .find_map(|n| Some((words.number(&rest[..n])?, n)))?;
        numbers.push(number);
        rest = &rest[length..];
    }
    Some(numbers)
}

/// The words of a run of letters that something invisible stands between.
fn parted(folded: &str, text: &Range<usize>, seams: &[usize], words: &Words) -> Vec<u16> {
    let from = seams.partition_point(|seam| *seam <= text.start);
    let ends = seams[from..].iter().copied();
    let ends = ends.take_while(|seam| *seam < text.end).chain([text.end]);
    let mut start = text.start;
    ends.map(|end| {
        let word = &folded[start..end];
        start = end;
        words.number(word).unwrap_or(OTHER)
    })
    .collect()
}

/// Takes words that stand one by one, behind commas or in paragraphs, for words of one sentence.
fn enlist(pieces: &mut [Piece]) {
    let alone = |piece: &Piece| {
        piece.kind == Kind::Word && matches!(piece.gap, Gap::Comma | Gap::Paragraph)
    };
    let mut at = 0;
    while at < pieces.len() {
        let listed = pieces[at + 1..]
            .iter()
            .take_while(|piece| alone(piece))
            .count();
        if listed + 1 >= LISTED && pieces[at].kind == Kind::Word {
            for piece in &mut pieces[at + 1..=at + listed] {
                piece.gap = Gap::Space;
            }
        }
        at += listed + 1;
    }
}

/// The character that a text begins with a reference of, as HTML writes it, and how long that is.
fn referred(text: &str) -> Option<(char, usize)> {
    let name = text.strip_prefix('&')?;
    let length = name.bytes().take(REFERENCE).position(|b| b == b';')?;
    let name = &name[..length];
    let c = match name.strip_prefix('#') {
        Some(number) => {
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)?
        }
        None if matches!(name, "nbsp" | "ensp" | "emsp" | "thinsp") => ' ',
        None if matches!(name, "shy" | "zwnj" | "zwj") => '\u{ad}',
        None => return None,
    };
    Some((c, length + 2))
}

/// A text folded, its pieces, and where something invisible stood within these.
fn pieces(text: &str) -> (String, Vec<Piece>, Vec<usize>) {
    let mut reader = Reader {
        folded: String::with_capacity(text.len()),
        pieces: Vec::new(),
        seams: Vec::new(),
        gap: Gap::Stop,
        lines: 0,
        open: false,
    };
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let reference = (c == '&').then(|| referred(&text[at..])).flatten();
        let (c, length) = reference.unwrap_or((c, c.len_utf8()));
        let end = at + length;
        while chars.next_if(|(next, _)| *next < end).is_some() {}
        let after = chars.peek().map(|&(_, next)| next);
        if c.is_ascii() {
            reader.take(c.to_ascii_lowercase(), after, at..end);
        } else {
            if is_invisible(c) {
                reader.sew();
            }
            for folded in skeleton(c) {
                reader.take(folded, after, at..end);
            }
        }
    }
    reader.close();
    (reader.folded, reader.pieces, reader.seams)
}

struct Reader {
    folded: String,
    pieces: Vec<Piece>,
    seams: Vec<usize>,
    /// What was passed since the last piece.
    gap: Gap,
    lines: usize,
    /// The last piece may go on.
    open: bool,
}

impl Reader {
    fn take(&mut self, c: char, after: Option<char>, place: Range<usize>) {
        if is_han(c) || c == '@' {
            self.close();
            self.begin(c, Kind::Han, &place);
            self.open = false;
        } else if c.is_alphanumeric() {
            if self.open {
                self.folded.push(c);
                if let Some(piece) = self.pieces.last_mut() {
                    piece.text.end = self.folded.len();
                    piece.end = place.end as u32;
                }
            } else {
                self.begin(c, Kind::Word, &place);
                self.open = true;
            }
        } else if matches!(c, '\'' | '’' | '‘' | '`' | '\u{2bc}')
            && self.open
            && after.is_some_and(char::is_alphabetic)
        {
            // "don't" is a word.
        } else if !c.is_control() || c.is_whitespace() {
            self.close();
            self.gap = self.gap.max(self.between(c, after));
        }
    }

    /// Something invisible stands here: within a word, or between two.
    fn sew(&mut self) {
        if self.open
            && let Some(piece) = self.pieces.last_mut()
        {
            piece.sewn = true;
            self.seams.push(self.folded.len());
        }
    }

    fn begin(&mut self, c: char, kind: Kind, place: &Range<usize>) {
        let start = self.folded.len();
        self.folded.push(c);
        self.pieces.push(Piece {
            text: start..self.folded.len(),
            start: place.start as u32,
            end: place.end as u32,
            gap: self.gap,
            kind,
            sewn: false,
        });
        self.gap = Gap::Within;
        self.lines = 0;
    }

    fn close(&mut self) {
        self.open = false;
        if let Some(piece) = self.pieces.last_mut()
            && piece.kind == Kind::Word
            && self.folded[piece.text.clone()].chars().count() == 1
        {
            piece.kind = Kind::Letter;
        }
    }

    fn between(&mut self, c: char, after: Option<char>) -> Gap {
        match c {
            '\n' => {
                self.lines += 1;
                if self.lines > 1 {
                    Gap::Paragraph
                } else {
                    Gap::Line
                }
            }
            _ if c.is_whitespace() => Gap::Space,
            '!' | '?' | ';' | '。' | '…' | '；' => Gap::Stop,
            '.' if after
                .is_none_or(|c| c.is_whitespace() || matches!(c, '"' | '\'' | ')' | '”' | '’')) =>
            {
                Gap::Stop
            }
            ':' if after == Some('/') => Gap::Within,
            ',' | ':' | '，' => Gap::Comma,
            '.' | '-' | '_' | '*' | '~' | '/' | '\\' | '|' | '+' | '·' => Gap::Within,
            _ => Gap::Mark,
        }
    }
}
