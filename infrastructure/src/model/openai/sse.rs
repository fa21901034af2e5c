//! Server-sent events, taken apart byte by byte.
//!
//! Follows the parsing rules of the HTML standard (<https://html.spec.whatwg.org/multipage/server-sent-events.html>), with one
//! deliberate difference: an event that the stream's end leaves without its blank line is given, since real model servers forget it.

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SseEvent {
    /// The `event:` field; empty when the event has none.
    pub(super) name: String,
    /// The `data:` lines, joined by line feeds.
    pub(super) data: String,
}

/// What came is no event stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SseError {
    /// A line, or the data of one event, is longer than the bound.
    TooLong,
    /// A line is not UTF-8.
    NotUtf8,
}

/// Takes bytes as they come and gives whole events.
#[derive(Debug)]
pub(super) struct SseDecoder {
    bound: usize,
    line: Vec<u8>,
    after_cr: bool,
    first_line: bool,
    name: String,
    data: Option<String>,
}

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

impl SseDecoder {
    /// A decoder that refuses lines and events longer than `bound` bytes.
    pub(super) fn new(bound: usize) -> Self {
        Self {
            bound,
            line: Vec::new(),
            after_cr: false,
            first_line: true,
            name: String::new(),
            data: None,
        }
    }

    /// Takes the next bytes and appends the events that they complete.
    pub(super) fn feed(&mut self, bytes: &[u8], out: &mut Vec<SseEvent>) -> Result<(), SseError> {
        let mut rest = bytes;
        while let Some(&first) = rest.first() {
            if self.after_cr {
                self.after_cr = false;
                if first == b'\n' {
                    rest = &rest[1..];
                    continue;
                }
            }
            let end = rest.iter().position(|b| matches!(b, b'\n' | b'\r'));
            let taken = end.unwrap_or(rest.len());
            if self.line.len() + taken > self.bound {
                return Err(SseError::TooLong);
            }
            self.line.extend_from_slice(&rest[..taken]);
            let Some(end) = end else { break };
            self.after_cr = rest[end] == b'\r';
            rest = &rest[end + 1..];
            self.end_line(out)?;
        }
        Ok(())
    }

    /// The stream has ended; gives the event that it left unfinished.
    pub(super) fn finish(&mut self, out: &mut Vec<SseEvent>) -> Result<(), SseError> {
        if !self.line.is_empty() {
            self.end_line(out)?;
        }
        self.dispatch(out);
        Ok(())
    }

    fn end_line(&mut self, out: &mut Vec<SseEvent>) -> Result<(), SseError> {
        let bytes = std::mem::take(&mut self.line);
        let mut line = std::str::from_utf8(&bytes).map_err(|_| SseError::NotUtf8)?;
        if std::mem::take(&mut self.first_line) && bytes.starts_with(BYTE_ORDER_MARK) {
            line = &line[BYTE_ORDER_MARK.len()..];
        }
        if line.is_empty() {
            self.dispatch(out);
            return Ok(());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => {
                let data = match self.data.take() {
                    Some(before) => before + "\n" + value,
                    None => value.to_owned(),
                };
                if data.len() > self.bound {
                    return Err(SseError::TooLong);
                }
                self.data = Some(data);
            }
            _ => {} // comments, ids, retry times, and fields that the standard does not know
        }
        Ok(())
    }

    fn dispatch(&mut self, out: &mut Vec<SseEvent>) {
        let name = std::mem::take(&mut self.name);
        if let Some(data) = self.data.take() {
            out.push(SseEvent { name, data });
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    fn decode(pieces: &[&[u8]]) -> Result<Vec<SseEvent>, SseError> {
        let mut decoder = SseDecoder::new(1 << 20);
        let mut out = Vec::new();
        for piece in pieces {
            decoder.feed(piece, &mut out)?;
        }
        decoder.finish(&mut out)?;
        Ok(out)
    }

    fn data(pieces: &[&[u8]]) -> Vec<String> {
        decode(pieces)
            .unwrap()
            .into_iter()
            .map(|e| e.data)
            .collect()
    }

    #[test]
    fn all_three_line_endings_end_a_line() {
        for text in [
            "data: a\n\ndata: b\n\n",
            "data: a\r\n\r\ndata: b\r\n\r\n",
            "data: a\r\rdata: b\r\r",
        ] {
            assert_eq!(data(&[text.as_bytes()]), ["a", "b"], "{text:?}");
        }
    }

    #[test]
    fn comments_ids_and_unknown_fields_are_passed_over() {
        assert_eq!(
            data(&[
                b": hello\nid: 7\nretry: 10\nnonsense\nother: x\ndata: a\n\n: only a comment\n\n"
            ]),
            ["a"]
        );
    }

    #[test]
    fn several_data_lines_are_one_event_and_one_space_is_dropped() {
        assert_eq!(data(&[b"data:  a\ndata:b\ndata\n\n"]), [" a\nb\n"]);
    }

    #[test]
    fn the_event_field_names_the_event_and_only_that_one() {
        let events = decode(&[b"event: error\ndata: x\n\ndata: y\n\n"]).unwrap();
        assert_eq!(events[0].name, "error");
        assert_eq!(events[1].name, "");
    }

    #[test]
    fn a_byte_order_mark_is_dropped_at_the_start_alone() {
        assert_eq!(data(&[b"\xEF\xBB\xBFdata: a\n\n"]), ["a"]);
        assert_eq!(data(&[b"\xEF", b"\xBB\xBF", b"data: a\n\n"]), ["a"]);
        assert_eq!(data(&[b"data: a\n\n\xEF\xBB\xBFdata: b\n\n"]), ["a"]);
    }

    #[test]
    fn the_last_event_needs_no_blank_line() {
        assert_eq!(data(&[b"data: a\n\ndata: b"]), ["a", "b"]);
        assert_eq!(data(&[b"data: a\n"]), ["a"]);
    }

    #[test]
    fn what_is_not_utf8_is_refused() {
        assert_eq!(decode(&[b"data: \xFF\n\n"]), Err(SseError::NotUtf8));
        assert_eq!(decode(&[b"data: \xE4\xB8"]), Err(SseError::NotUtf8));
    }

    #[test]
    fn a_line_without_end_is_refused_at_the_bound_and_not_kept() {
        let mut decoder = SseDecoder::new(100);
        let mut out = Vec::new();
        assert_eq!(decoder.feed(&[b'x'; 100], &mut out), Ok(()));
        assert_eq!(decoder.feed(b"x", &mut out), Err(SseError::TooLong));
    }

    #[test]
    fn an_event_without_end_is_refused_at_the_bound() {
        let mut decoder = SseDecoder::new(100);
        let mut out = Vec::new();
        let error = (0..100).find_map(|_| decoder.feed(b"data: 12345678\n", &mut out).err());
        assert_eq!(error, Some(SseError::TooLong));
    }

    proptest! {
        #[test]
        fn where_the_bytes_are_split_changes_nothing(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "data: ", "data:", "event: x", ": c", "\n", "\r", "\r\n", "\n\n", "你好", "🌊", "a", "\u{feff}", ":", "id: 3",
                ]),
                0..24,
            ),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let text = parts.concat();
            let bytes = text.as_bytes();
            let whole = decode(&[bytes]);
            let mut places: Vec<usize> = cuts.iter().map(|c| c.index(bytes.len() + 1)).collect();
            places.extend([0, bytes.len()]);
            places.sort_unstable();
            let pieces: Vec<&[u8]> = places.windows(2).map(|w| &bytes[w[0]..w[1]]).collect();
            prop_assert_eq!(&decode(&pieces), &whole);
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            prop_assert_eq!(&decode(&single), &whole);
        }
    }
}
