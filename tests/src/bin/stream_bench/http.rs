//! As much of HTTP/1.1 as the model and the clients need; a library would take more of the machine than what is measured.

/// Where the head of a message ends in `bytes`: behind its empty line.
pub(crate) fn end_of_head(bytes: &[u8]) -> Option<usize> {
    let mark = b"\r\n\r\n";
    let at = bytes.windows(mark.len()).position(|w| w == mark)?;
    Some(at + mark.len())
}

/// The value of a field in a head.
pub(crate) fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(found, _)| found.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim())
}

/// Takes the chunks of a body apart, wherever the bytes were cut.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    state: State,
}

#[derive(Debug, Default)]
enum State {
    /// The digits of a length so far.
    #[default]
    Start,
    Length(usize),
    Data(usize),
    /// Behind a chunk, or behind the last one's length.
    LineEnd,
    Last,
    Ended,
}

impl Chunks {
    /// Adds what the bytes hold of the body to `body`; `None` when they are no chunks.
    pub(crate) fn read(&mut self, mut bytes: &[u8], body: &mut Vec<u8>) -> Option<()> {
        while let Some(&byte) = bytes.first() {
            if let State::Data(left) = self.state {
                let (data, rest) = bytes.split_at(left.min(bytes.len()));
                body.extend_from_slice(data);
                bytes = rest;
                self.state = match left - data.len() {
                    0 => State::LineEnd,
                    left => State::Data(left),
                };
                continue;
            }
            bytes = &bytes[1..];
            let digit = char::from(byte).to_digit(16).map(|digit| digit as usize);
            self.state = match (&self.state, byte, digit) {
                (State::Start, _, Some(digit)) => State::Length(digit),
                (State::Length(length), _, Some(digit)) => {
                    State::Length(length.checked_mul(16)? + digit)
                }
                (State::Length(length), b'\r', _) => State::Length(*length),
                (State::Length(0), b'\n', _) | (State::Last, b'\r', _) => State::Last,
                (State::Length(length), b'\n', _) => State::Data(*length),
                (State::LineEnd, b'\r', _) => State::LineEnd,
                (State::LineEnd, b'\n', _) => State::Start,
                (State::Last, b'\n', _) => State::Ended,
                _ => return None,
            };
        }
        Some(())
    }

    /// Whether the last chunk has come.
    pub(crate) fn ended(&self) -> bool {
        matches!(self.state, State::Ended)
    }
}

/// Adds a chunk to a body.
pub(crate) fn put_chunk(body: &mut Vec<u8>, data: &str) {
    use std::io::Write as _;
    // Writing to memory does not fail.
    let _ = write!(body, "{:x}\r\n{data}\r\n", data.len());
}

/// The chunk that ends a body.
pub(crate) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_put_together_wherever_they_were_cut() {
        let parts = ["a", &"long ".repeat(70), "line\r\nbreaks\n\n"];
        let mut sent = Vec::new();
        for part in parts {
            put_chunk(&mut sent, part);
        }
        sent.extend_from_slice(LAST_CHUNK);
        for piece in [1, 2, 7, sent.len()] {
            let (mut chunks, mut body) = (Chunks::default(), Vec::new());
            for bytes in sent.chunks(piece) {
                assert!(!chunks.ended());
                chunks.read(bytes, &mut body).unwrap();
            }
            assert!(chunks.ended());
            assert_eq!(body, parts.concat().as_bytes());
        }
    }

    #[test]
    fn what_is_no_chunk_and_what_follows_the_last_one_is_refused() {
        for wrong in ["hello", "\r\n", "1\r\nab", "0\r\n\r\n0"] {
            let read = Chunks::default().read(wrong.as_bytes(), &mut Vec::new());
            assert_eq!(read, None, "{wrong:?}");
        }
    }

    #[test]
    fn a_field_is_found_whatever_its_case() {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n";
        assert_eq!(field(head, "content-length"), Some("12"));
        assert_eq!(field(head, "transfer-encoding"), None);
        assert_eq!(end_of_head(head.as_bytes()), Some(head.len()));
        assert_eq!(end_of_head(b"HTTP/1.1 200 OK\r\n"), None);
    }
}
