//! Counting tokens, and cutting a text to a number of them.

/// Counts a model's tokens.
pub trait TokenCounter: Send + Sync {
    /// How many tokens the text has; 0 for an empty one.
    fn count(&self, text: &str) -> usize;

    /// The counts are estimates, because the model's tokenizer is unknown.
    fn is_estimate(&self) -> bool;
}

/// The estimate for models whose tokenizer is unknown (B18): a CJK character is 1.5 tokens, any other a quarter, the sum rounded up.
#[derive(Clone, Copy, Debug, Default)]
pub struct EstimateCounter;

impl TokenCounter for EstimateCounter {
    fn count(&self, text: &str) -> usize {
        let quarters: usize = text.chars().map(|c| if is_cjk(c) { 6 } else { 1 }).sum();
        quarters.div_ceil(4)
    }

    fn is_estimate(&self) -> bool {
        true
    }
}

/// Characters of Chinese, Japanese and Korean with their punctuation and full-width forms, by the blocks of Unicode.
fn is_cjk(c: char) -> bool {
    matches!(u32::from(c),
        0x1100..=0x11FF       // Hangul Jamo
        | 0x2E80..=0x31FF     // radicals, punctuation, kana, bopomofo, compatibility Jamo, strokes, phonetic extensions
        | 0x3200..=0x4DBF     // enclosed, compatibility, extension A
        | 0x4E00..=0x9FFF     // unified ideographs
        | 0xA960..=0xA97F     // Jamo extended A
        | 0xAC00..=0xD7FF     // Hangul syllables, Jamo extended B
        | 0xF900..=0xFAFF     // compatibility ideographs
        | 0xFE30..=0xFE4F     // compatibility forms
        | 0xFF00..=0xFFEF     // half-width and full-width forms
        | 0x20000..=0x3FFFF   // supplementary ideographs
    )
}

/// No token of the known tokenizers is longer on average, in characters. Ours: it bounds how much of a huge text is counted.
const LONGEST_TOKEN: usize = 16;

/// The text within `max_tokens`: unchanged if it fits, else its head and its tail, of equal length, with a marker between that tells
/// how many characters are missing. Where not even the marker fits, `…` alone; the empty text for no tokens.
pub fn cut_middle(text: &str, max_tokens: usize, counter: &dyn TokenCounter) -> String {
    if counter.count(text) <= max_tokens {
        return text.to_owned();
    }
    if max_tokens == 0 {
        return String::new();
    }
    let length = text.chars().count();
    // The counts of growing texts need not grow strictly; whatever is found has been counted.
    let mut best = None;
    let mut fits = 0;
    let mut too_long = length.min(max_tokens.saturating_mul(LONGEST_TOKEN));
    while fits < too_long {
        let kept = fits + (too_long - fits) / 2;
        let candidate = without_middle(text, length, kept);
        if counter.count(&candidate) <= max_tokens {
            best = Some(candidate);
            fits = kept + 1;
        } else {
            too_long = kept;
        }
    }
    best.unwrap_or_else(|| "…".to_owned())
}

fn without_middle(text: &str, length: usize, kept: usize) -> String {
    let tail = kept / 2;
    let at = |index: usize| {
        text.char_indices()
            .nth(index)
            .map_or(text.len(), |(i, _)| i)
    };
    format!(
        "{}\n[… {} characters left out …]\n{}",
        &text[..at(kept - tail)],
        length - kept,
        &text[at(length - tail)..]
    )
}
