//! The model's tokens: each carries its number and when it was sent, the first one also when its request came.
//!
//! `" river 7@5f3a;"` is the eighth, sent at 0x5f3a nanoseconds; `"river 0@5f3a@5f00;"` the first of an answer whose request came at 0x5f00.

/// Ordinary words, so that an answer is to a server what text is.
const WORDS: [&str; 16] = [
    "river", "stone", "morning", "letter", "garden", "window", "music", "winter", "paper",
    "island", "kitchen", "forest", "bridge", "summer", "market", "lantern",
];

/// The text of a token.
pub(crate) fn text(number: usize, sent: u64, arrived: u64) -> String {
    let word = WORDS[number % WORDS.len()];
    match number {
        0 => format!("{word} 0@{sent:x}@{arrived:x};"),
        _ => format!(" {word} {number}@{sent:x};"),
    }
}

/// What a token said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Which token of its answer.
    pub(crate) number: usize,
    /// When it was sent, in nanoseconds.
    pub(crate) sent: u64,
    /// Of the first token: when the request came to the model.
    pub(crate) arrived: Option<u64>,
}

/// Reads tokens out of text that may be cut anywhere.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    rest: String,
}

impl Reader {
    /// The tokens that this text completes; `None` when it is none of the model's.
    pub(crate) fn read(&mut self, text: &str, into: &mut Vec<Stamp>) -> Option<()> {
        self.rest.push_str(text);
        while let Some(end) = self.rest.find(';') {
            into.push(stamp(&self.rest[..end])?);
            self.rest.drain(..=end);
        }
        Some(())
    }
}

fn stamp(token: &str) -> Option<Stamp> {
    let (_, mark) = token.rsplit_once(' ')?;
    let (number, times) = mark.split_once('@')?;
    let hexadecimal = |text| u64::from_str_radix(text, 16).ok();
    let (sent, arrived) = match times.split_once('@') {
        Some((sent, arrived)) => (sent, Some(hexadecimal(arrived)?)),
        None => (times, None),
    };
    Some(Stamp {
        number: number.parse().ok()?,
        sent: hexadecimal(sent)?,
        arrived,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_read_back_wherever_their_text_was_cut() {
        let answer: String = (0..40).map(|n| text(n, 1_000 + n as u64, 7)).collect();
        for piece in [1, 5, 17, answer.len()] {
            let (mut reader, mut stamps) = (Reader::default(), Vec::new());
            for part in answer.as_bytes().chunks(piece) {
                reader
                    .read(std::str::from_utf8(part).unwrap(), &mut stamps)
                    .unwrap();
            }
            let expected = |n: usize| Stamp {
                number: n,
                sent: 1_000 + n as u64,
                arrived: (n == 0).then_some(7),
            };
            assert_eq!(stamps, (0..40).map(expected).collect::<Vec<_>>());
        }
    }

    #[test]
    fn text_that_is_none_of_the_models_is_told_apart() {
        let mut stamps = Vec::new();
        assert_eq!(Reader::default().read("I cannot; sorry", &mut stamps), None);
    }
}
