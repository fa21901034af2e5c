//! Base 32 in lower case (RFC 4648, 6): letters and digits that a double click takes as one word.

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// The first `digits` digits of `bytes`, five bits each; the last may be filled up with zeros.
pub(super) fn encode(bytes: &[u8], digits: usize) -> String {
    let bit = |at: usize| {
        let byte = bytes.get(at / 8).copied().unwrap_or(0);
        usize::from(byte >> (7 - at % 8) & 1)
    };
    let digit = |at: usize| (0..5).fold(0, |value, i| value << 1 | bit(at * 5 + i));
    (0..digits)
        .map(|at| char::from(ALPHABET[digit(at)]))
        .collect()
}

/// Whether it is made of these digits alone.
pub(super) fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| ALPHABET.contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_of_the_rfc_hold() {
        for (bytes, text) in [
            ("f", "my"),
            ("foo", "mzxw6"),
            ("foob", "mzxw6yq"),
            ("fooba", "mzxw6ytb"),
            ("foobar", "mzxw6ytboi"),
        ] {
            assert_eq!(encode(bytes.as_bytes(), text.len()), text);
            assert!(is_digits(text));
        }
        assert!(!is_digits("a1") && !is_digits("A"));
    }
}
