//! Texts as a model's tokens.

use tokenizers::{Tokenizer, TruncationParams};

/// A model's tokenizer, with its special tokens, cutting at the model's length and adding no padding.
pub(super) struct Tokens(Tokenizer);

impl Tokens {
    /// The error says what is wrong with the file.
    pub(super) fn load(file: &[u8], max_tokens: usize) -> Result<Self, String> {
        let mut tokenizer = Tokenizer::from_bytes(file).map_err(|error| error.to_string())?;
        tokenizer
            .with_padding(None)
            .with_truncation(Some(TruncationParams {
                max_length: max_tokens,
                ..TruncationParams::default()
            }))
            .map_err(|error| error.to_string())?;
        Ok(Self(tokenizer))
    }

    /// The tokens of a text, at least one; none where the tokenizer cannot read it.
    pub(super) fn of(&self, text: &str) -> Option<Vec<u32>> {
        let encoding = self.0.encode_fast(text, true).ok()?;
        Some(encoding.get_ids().to_vec()).filter(|ids| !ids.is_empty())
    }
}
