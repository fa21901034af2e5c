//! Reads one mark that may open or close a reasoning block: a tag, or a special token of a model's own form.

/// Names of the tags that models put around their reasoning, in lower case.
///
/// `think` (`DeepSeek`, Qwen, and most others), `thinking` and `antthinking` (Claude), `thought` (Gemma and the Reflection models,
/// with `reflection`), `reasoning`, `seed:think` (Seed-OSS), and the names that prompts for a scratch area commonly give.
/// Words of ordinary XML such as `reason`, `analysis` or `output` are left out: answers hold them.
const NAMES: [&str; 13] = [
    "think",
    "thinking",
    "thought",
    "thoughts",
    "reasoning",
    "reflection",
    "antthinking",
    "ant:thinking",
    "seed:think",
    "scratchpad",
    "inner_monologue",
    "internal_monologue",
    "chain_of_thought",
];

/// Marks that are special tokens, exactly as the models write them: Magistral, Kimi.
const TOKENS: [(&str, Tag); 4] = [
    ("[THINK]", Tag::Open(0)),
    ("[/THINK]", Tag::Close(0)),
    ("◁think▷", Tag::Open(0)),
    ("◁/think▷", Tag::Close(0)),
];

/// The tokens of the harmony format of gpt-oss: `<|start|>` and `<|channel|>` begin a header, `<|message|>` ends it, the others end the
/// message.
const HARMONY: [(&str, Tag); 6] = [
    ("<|start|>", Tag::Header),
    ("<|channel|>", Tag::Header),
    ("<|message|>", Tag::Message),
    ("<|end|>", Tag::Close(CHANNEL)),
    ("<|return|>", Tag::Close(CHANNEL)),
    ("<|call|>", Tag::Close(CHANNEL)),
];

/// The name of a harmony message that is no answer.
pub(super) const CHANNEL: u8 = NAMES.len() as u8;
/// The name of a harmony header.
pub(super) const HEADER: u8 = CHANNEL + 1;

/// A longer tag is text, in bytes. Ours: no model writes a longer one, and this much may be held back.
pub(super) const TAG_LIMIT: usize = 256;

/// A tag, with the index of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    /// Begins a block.
    Open(u8),
    /// Ends a block.
    Close(u8),
    /// Closes itself: a block without content.
    Empty,
    /// Begins a harmony header, and ends what came before.
    Header,
    /// Ends a harmony header.
    Message,
}

/// What a text that begins with `<` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// A whole tag of a reasoning block.
    Whole(Tag),
    /// It may still become one.
    Unfinished,
    /// Whatever follows, it will not become one.
    Never,
}

/// Whether a mark may begin so.
pub(super) fn begins(c: char) -> bool {
    matches!(c, '<' | '[' | '◁')
}

/// Reads `text`, which begins as [`begins`] has it and holds no other `<`.
///
/// White space may stand after `<`, around `/`, and before `>`. After the name anything may stand but backticks and tildes (so that no
/// tag swallows the start of a code block); the first `>` ends the tag, even in a quoted attribute: what is left of such an attribute
/// then lies within the reasoning and harms nobody.
pub(super) fn read(text: &str) -> Reading {
    if text.starts_with("<|") {
        return token(text, &HARMONY);
    }
    if !text.starts_with('<') {
        return token(text, &TOKENS);
    }
    let body = text.strip_prefix('<').unwrap_or(text).trim_start();
    let (closing, body) = match body.strip_prefix('/') {
        Some(rest) => (true, rest.trim_start()),
        None => (false, body),
    };
    let end = body
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':')
        .unwrap_or(body.len());
    let (name, rest) = body.split_at(end);
    if text.len() > TAG_LIMIT {
        return Reading::Never;
    }
    if rest.is_empty() {
        return if NAMES.iter().any(|n| starts_with(n, name)) {
            Reading::Unfinished
        } else {
            Reading::Never
        };
    }
    let Some(index) = NAMES.iter().position(|n| n.eq_ignore_ascii_case(name)) else {
        return Reading::Never;
    };
    if rest.contains(['`', '~'])
        || !rest.starts_with(|c: char| c.is_whitespace() || c == '/' || c == '>')
    {
        return Reading::Never;
    }
    match rest.strip_suffix('>') {
        None => Reading::Unfinished,
        Some(_) if closing => Reading::Whole(Tag::Close(index as u8)),
        Some(attributes) if attributes.trim_end().ends_with('/') => Reading::Whole(Tag::Empty),
        Some(_) => Reading::Whole(Tag::Open(index as u8)),
    }
}

/// The innermost mark in a text of begun ones that is one or may become one, and where it begins. No mark holds a `<`; an attribute may
/// hold what else begins one.
pub(super) fn innermost(text: &str) -> Option<(usize, Reading)> {
    for (at, c) in text.char_indices().rev().filter(|(_, c)| begins(*c)) {
        match read(&text[at..]) {
            Reading::Never if c == '<' => return None,
            Reading::Never => {}
            reading => return Some((at, reading)),
        }
    }
    None
}

fn token(text: &str, tokens: &[(&str, Tag)]) -> Reading {
    match tokens.iter().find(|(token, _)| token.starts_with(text)) {
        None => Reading::Never,
        Some((token, tag)) if *token == text => Reading::Whole(*tag),
        Some(_) => Reading::Unfinished,
    }
}

fn starts_with(name: &str, prefix: &str) -> bool {
    name.get(..prefix.len())
        .is_some_and(|head| head.eq_ignore_ascii_case(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_read_in_any_case_with_white_space_and_attributes() {
        for open in [
            "<think>",
            "<THINK>",
            "< Think >",
            "<think\n>",
            "<think type=\"deep\">",
            "<\tthink a b>",
        ] {
            assert_eq!(read(open), Reading::Whole(Tag::Open(0)), "{open}");
        }
        for close in ["</think>", "</ think >", "< / THINK\t>", "</think x>"] {
            assert_eq!(read(close), Reading::Whole(Tag::Close(0)), "{close}");
        }
        for empty in ["<think/>", "<think />", "<think a=1 / >"] {
            assert_eq!(read(empty), Reading::Whole(Tag::Empty), "{empty}");
        }
    }

    #[test]
    fn every_beginning_of_a_tag_is_unfinished() {
        for name in NAMES {
            for tag in [
                format!("<{name}>"),
                format!("</{name}>"),
                format!("< / {name} a=\"b\" >"),
            ] {
                assert!(matches!(read(&tag), Reading::Whole(_)), "{tag}");
                for end in 1..tag.len() {
                    assert_eq!(read(&tag[..end]), Reading::Unfinished, "{}", &tag[..end]);
                }
            }
        }
    }

    #[test]
    fn what_only_resembles_a_tag_is_refused_at_the_first_wrong_character() {
        for text in [
            "<b",
            "< b",
            "<3",
            "<thinker",
            "<think-",
            "<=",
            "<//",
            "<thé",
            "<think a`",
            "<!",
            "[t",
            "[THINKS",
            "[x",
            "◁x",
            "<|x",
            "<|end|x",
        ] {
            assert_eq!(read(text), Reading::Never, "{text}");
        }
    }

    #[test]
    fn special_tokens_are_read_as_they_are_written() {
        for (token, tag) in TOKENS.iter().chain(&HARMONY) {
            assert_eq!(read(token), Reading::Whole(*tag), "{token}");
            for (end, _) in token.char_indices().skip(1) {
                assert_eq!(
                    read(&token[..end]),
                    Reading::Unfinished,
                    "{}",
                    &token[..end]
                );
            }
        }
    }

    #[test]
    fn a_tag_above_the_limit_is_text() {
        let tag = |len: usize| format!("<think {}>", "a".repeat(len - 8));
        assert_eq!(read(&tag(TAG_LIMIT)), Reading::Whole(Tag::Open(0)));
        assert_eq!(read(&tag(TAG_LIMIT + 1)), Reading::Never);
    }
}
