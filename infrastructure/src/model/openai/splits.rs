//! Bodies cut by the network wherever it likes, and bodies of nonsense.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;
use tidemark_application::ports::model::ModelError;

use super::fixtures::{STOP, read, stream};

/// Bodies that between them use every branch of the reader.
fn bodies() -> Vec<Vec<u8>> {
    let mut bodies: Vec<Vec<u8>> = [
        concat!(
            "\u{feff}: c\r\n\r\nevent: message\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"你好🌊\"}}]}\r\n\r\n",
            "data: {\"choices\":[{\"delta\":{\"reasoning\":\"思\"}}]}\r\n\r\n",
            "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\r\n\r\ndata: [DONE]\r\n\r\n",
        ),
        concat!(
            "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"x\\\"\"}}]}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\":1}\"}}]},\"finish_reason\":\"stop\"}]}\n\n",
        ),
        "\u{feff} {\"choices\":[{\"message\":{\"content\":\"ganz\"},\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}",
        "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\nevent: error\ndata: {\"error\":{\"code\":\"e\"}}\n\n",
        "  <html>",
        "data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}",
    ]
    .iter()
    .map(|body| body.as_bytes().to_vec())
    .collect();
    bodies.push(
        b"data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: \xE4\xB8\n\n".to_vec(),
    );
    bodies
}

#[test]
fn every_single_cut_and_byte_by_byte_give_the_same_events() {
    for body in bodies() {
        let whole = read([body.as_slice()]);
        assert_eq!(read(body.chunks(1)), whole);
        for place in 0..=body.len() {
            let (left, right) = body.split_at(place);
            assert_eq!(read([left, right]), whole, "cut at {place}");
        }
    }
}

proptest! {
    #[test]
    fn cuts_anywhere_give_the_same_events(cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12)) {
        for body in bodies() {
            let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
            places.extend([0, body.len()]);
            places.sort_unstable();
            let pieces = places.windows(2).map(|w| &body[w[0]..w[1]]);
            prop_assert_eq!(read(pieces), read([body.as_slice()]));
        }
    }

    #[test]
    fn no_bytes_whatever_break_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..400), cut in any::<prop::sample::Index>()) {
        let (left, right) = bytes.split_at(cut.index(bytes.len() + 1));
        prop_assert_eq!(read([left, right]), read([bytes.as_slice()]));
    }

    #[test]
    fn no_json_whatever_breaks_the_reader(
        content in prop::sample::select(vec!["null", "[]", "{}", "\"\"", "\"x\"", "1", "[null]", "[{}]", "[[]]", "{\"a\":[]}"]),
        field in prop::sample::select(vec!["content", "reasoning", "tool_calls", "function_call", "refusal", "role"]),
        outer in prop::sample::select(vec!["delta", "message", "finish_reason", "usage", "index"]),
    ) {
        let chunks = [
            format!(r#"{{"choices":[{{"{outer}":{{"{field}":{content}}}}}]}}"#),
            format!(r#"{{"choices":[{{"{outer}":{content}}}],"usage":{content},"error":null}}"#),
            format!(r#"{{"choices":{content},"{outer}":{content}}}"#),
        ];
        for chunk in &chunks {
            let (_, result) = stream(&[chunk, STOP]);
            let nameless = matches!(&result, Err(ModelError::Protocol(what)) if what.contains("without a name"));
            prop_assert!(result.is_ok() || nameless, "{}: {:?}", chunk, result);
        }
    }
}
