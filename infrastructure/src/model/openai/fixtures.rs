//! Bodies as real servers send them, and what becomes of them, however the network splits them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use tidemark_application::ports::model::{ModelError, ModelEvent};
use tidemark_domain::tool::ToolCall;
use tidemark_domain::turn::{FinishReason, Usage};

use super::body::{BodyReader, MAX_LINE};

pub(super) type Told = (Vec<ModelEvent>, Result<(), ModelError>);

pub(super) fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Told {
    let mut reader = BodyReader::new(8 << 20);
    let mut told = Vec::new();
    for piece in pieces {
        let (progress, result) = reader.feed(piece);
        told.extend(progress.events);
        if result.is_err() {
            return (told, result);
        }
        if reader.is_done() {
            break;
        }
    }
    let (rest, result) = reader.end();
    told.extend(rest);
    (told, result)
}

/// The events of chunks in ordinary framing.
pub(super) fn stream(chunks: &[&str]) -> Told {
    let lines: Vec<String> = chunks.iter().map(|c| format!("data: {c}\n\n")).collect();
    read([lines.concat().as_bytes()])
}

fn good(told: Told) -> Vec<ModelEvent> {
    told.1.unwrap();
    told.0
}

fn text(text: &str) -> ModelEvent {
    ModelEvent::Text(text.to_owned())
}

fn reasoning(text: &str) -> ModelEvent {
    ModelEvent::Reasoning(text.to_owned())
}

fn call(id: &str, name: &str, arguments: &str) -> ModelEvent {
    ModelEvent::ToolCall(ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    })
}

fn end(reason: FinishReason) -> ModelEvent {
    ModelEvent::Finished {
        reason,
        usage: None,
    }
}

fn stop() -> ModelEvent {
    end(FinishReason::Stop)
}

fn stop_with(prompt_tokens: u64, completion_tokens: u64) -> ModelEvent {
    ModelEvent::Finished {
        reason: FinishReason::Stop,
        usage: Some(Usage {
            prompt_tokens,
            completion_tokens,
            estimated: false,
        }),
    }
}

pub(super) const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;

#[test]
fn the_published_form_is_read() {
    let told = good(stream(&[
        r#"{"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"Good "},"finish_reason":null}],"usage":null}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"day"},"finish_reason":null}],"usage":null}"#,
        STOP,
        r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}"#,
        "[DONE]",
    ]));
    assert_eq!(told, [text("Good "), text("day"), stop_with(7, 2)]);
}

#[test]
fn reasoning_comes_under_either_name_and_once_when_under_both() {
    for field in [
        r#""reasoning_content":"hm""#,
        r#""reasoning":"hm""#,
        r#""reasoning":"hm","reasoning_content":"hm""#,
        r#""reasoning_content":"","reasoning":"hm""#,
    ] {
        let chunk = format!(r#"{{"choices":[{{"delta":{{"content":null,{field}}}}}]}}"#);
        assert_eq!(
            good(stream(&[&chunk, STOP])),
            [reasoning("hm"), stop()],
            "{field}"
        );
    }
}

#[test]
fn reasoning_in_inline_tags_is_left_in_the_text() {
    let chunk = r#"{"choices":[{"delta":{"content":"<think>hm</think>yes"}}]}"#;
    assert_eq!(
        good(stream(&[chunk, STOP])),
        [text("<think>hm</think>yes"), stop()]
    );
}

#[test]
fn content_may_be_a_list_of_parts() {
    let chunk = r#"{"choices":[{"delta":{"content":[
        {"type":"thinking","thinking":[{"type":"text","text":"hm"}]},
        {"type":"text","text":"yes"},"!",{"type":"image_url","image_url":{}},{"type":"reasoning","text":"so"}]}}]}"#
        .replace('\n', " ");
    assert_eq!(
        good(stream(&[&chunk, STOP])),
        [
            reasoning("hm"),
            text("yes"),
            text("!"),
            reasoning("so"),
            stop()
        ]
    );
}

#[test]
fn chunks_that_say_nothing_are_passed_over() {
    let told = good(stream(&[
        r#"{"choices":[]}"#,
        r#"{"id":"x"}"#,
        r#"{"choices":null}"#,
        r#"{"choices":[{"delta":null}]}"#,
        r#"{"choices":[{"index":0}]}"#,
        r#"{"choices":[{"delta":{"role":"assistant"}}]}"#,
        r#"{"choices":[{"delta":{"content":null,"tool_calls":null}}]}"#,
        r#"{"choices":[{"delta":{"content":""},"finish_reason":""}]}"#,
        r#"{"choices":[{"delta":{"content":17}}]}"#,
        "",
        r#"{"choices":[{"delta":{"content":"x"}}]}"#,
        STOP,
    ]));
    assert_eq!(told, [text("x"), stop()]);
}

#[test]
fn other_choices_than_the_first_are_not_mixed_in() {
    let told = good(stream(&[
        r#"{"choices":[{"index":1,"delta":{"content":"other"}}]}"#,
        r#"{"choices":[{"index":1,"delta":{"content":"other"}},{"index":0,"delta":{"content":"mine"}}]}"#,
        STOP,
    ]));
    assert_eq!(told, [text("mine"), stop()]);
}

#[test]
fn a_message_may_stand_in_place_of_the_delta() {
    let told = good(stream(&[
        r#"{"choices":[{"message":{"content":"ha"}}]}"#,
        r#"{"choices":[{"delta":null,"message":{"content":"ha"}}]}"#,
        r#"{"choices":[{"message":{},"finish_reason":"stop"}]}"#,
    ]));
    assert_eq!(told, [text("ha"), text("ha"), stop()]);
}

#[test]
fn a_message_beside_the_delta_does_not_repeat_it() {
    let told = good(stream(&[
        r#"{"choices":[{"delta":{"content":"Good "},"message":{"content":"Good "}}]}"#,
        r#"{"choices":[{"delta":{"content":"day"},"message":{"content":"Good day"}}]}"#,
        STOP,
    ]));
    assert_eq!(told, [text("Good "), text("day"), stop()]);
}

#[test]
fn usage_may_come_last_on_every_chunk_inside_the_choice_or_not_at_all() {
    let word = r#"{"choices":[{"delta":{"content":"a"}}]}"#;
    let with = |n: u64| {
        format!(
            r#"{{"choices":[{{"delta":{{"content":"a"}}}}],"usage":{{"prompt_tokens":3,"completion_tokens":{n}}}}}"#
        )
    };
    let every = [with(1), with(2)];
    assert_eq!(
        good(stream(&[&every[0], &every[1], STOP])),
        [text("a"), text("a"), stop_with(3, 2)]
    );
    let inside = r#"{"choices":[{"delta":{},"finish_reason":"stop","usage":{"input_tokens":3,"output_tokens":1}}]}"#;
    assert_eq!(good(stream(&[word, inside])), [text("a"), stop_with(3, 1)]);
    let last = r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}"#;
    assert_eq!(
        good(stream(&[word, STOP, last])),
        [text("a"), stop_with(3, 1)]
    );
    assert_eq!(good(stream(&[word, STOP])), [text("a"), stop()]);
}

#[test]
fn tool_calls_come_in_fragments_by_index() {
    let told = good(stream(&[
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"find","arguments":""}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"q\":"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"now","arguments":""}},{"index":0,"function":{"arguments":"1}"}}]}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
        "[DONE]",
    ]));
    assert_eq!(
        told,
        [
            call("a", "find", r#"{"q":1}"#),
            call("b", "now", "{}"),
            end(FinishReason::ToolCalls)
        ]
    );
}

#[test]
fn tool_calls_come_by_new_ids_with_the_index_missing_or_always_the_same() {
    for index in ["", r#""index":0,"#] {
        let fragment = |id: &str, name: &str| {
            format!(
                r#"{{"choices":[{{"delta":{{"tool_calls":[{{{index}"id":"{id}","function":{{"name":"{name}","arguments":"{{}}"}}}}]}}}}]}}"#
            )
        };
        let chunks = [fragment("a", "find"), fragment("b", "find")];
        assert_eq!(
            good(stream(&[&chunks[0], &chunks[1], STOP])),
            [
                call("a", "find", "{}"),
                call("b", "find", "{}"),
                end(FinishReason::ToolCalls)
            ]
        );
    }
}

#[test]
fn a_tool_call_may_come_whole_with_arguments_as_an_object_and_without_an_id_and_end_with_stop() {
    let told = good(stream(&[
        r#"{"choices":[{"delta":{"tool_calls":[{"function":{"name":"find","arguments":{"q":"水"}}},{"function":{"name":"now","arguments":{}}}]},"finish_reason":"stop"}]}"#,
    ]));
    assert_eq!(
        told,
        [
            call("call_0", "find", r#"{"q":"水"}"#),
            call("call_1", "now", "{}"),
            end(FinishReason::ToolCalls)
        ]
    );
}

#[test]
fn the_older_function_call_is_a_tool_call() {
    let told = good(stream(&[
        r#"{"choices":[{"delta":{"function_call":{"name":"find","arguments":"{\"q\""}}}]}"#,
        r#"{"choices":[{"delta":{"function_call":{"arguments":":1}"}},"finish_reason":"function_call"}]}"#,
    ]));
    assert_eq!(
        told,
        [
            call("call_0", "find", r#"{"q":1}"#),
            end(FinishReason::ToolCalls)
        ]
    );
}

#[test]
fn the_end_needs_a_finish_reason_but_no_done() {
    let word = r#"{"choices":[{"delta":{"content":"half"}}]}"#;
    assert_eq!(
        stream(&[word]),
        (vec![text("half")], Err(ModelError::Truncated))
    );
    assert_eq!(
        stream(&[word, "[DONE]"]),
        (vec![text("half")], Err(ModelError::Truncated))
    );
    assert_eq!(read([]), (vec![], Err(ModelError::Truncated)));
    assert_eq!(
        read([b" \r\n".as_slice()]),
        (vec![], Err(ModelError::Truncated))
    );
    assert_eq!(good(stream(&[word, STOP])), [text("half"), stop()]);
}

#[test]
fn nothing_is_read_after_done() {
    let after = r#"{"choices":[{"delta":{"content":"ghost"}}]}"#;
    assert_eq!(good(stream(&[STOP, "[DONE]", after])), [stop()]);
}

#[test]
fn an_error_after_a_good_status_is_reported_by_its_code_and_never_by_its_message() {
    let word = r#"{"choices":[{"delta":{"content":"half"}}]}"#;
    for (error, code) in [
        (
            r#"{"error":{"message":"my secret prompt","type":"server_error","code":null}}"#,
            "server_error",
        ),
        (
            r#"{"error":{"message":"my secret prompt","code":"overloaded"}}"#,
            "overloaded",
        ),
        (
            r#"{"error":{"message":"my secret prompt","code":502},"choices":[]}"#,
            "502",
        ),
        (
            r#"{"error":{"message":"my secret prompt","code":"my secret prompt"}}"#,
            "unspecified",
        ),
        (r#"{"error":"my secret prompt"}"#, "unspecified"),
        (
            r#"{"object":"error","message":"my secret prompt","type":"BadRequest"}"#,
            "BadRequest",
        ),
        (
            r#"[{"error":{"message":"my secret prompt","status":"UNAVAILABLE"}}]"#,
            "UNAVAILABLE",
        ),
    ] {
        let reported = Err(ModelError::Reported(code.to_owned()));
        assert_eq!(
            stream(&[word, error]),
            (vec![text("half")], reported.clone()),
            "data line"
        );
        assert_eq!(read([error.as_bytes()]), (vec![], reported), "plain body");
    }
}

#[test]
fn an_event_named_error_is_an_error_whatever_it_holds() {
    for (data, code) in [
        (
            r#"{"error":{"type":"overloaded_error"}}"#,
            "overloaded_error",
        ),
        (r#"{"message":"my secret prompt","code":"x1"}"#, "x1"),
        ("my secret prompt", "unspecified"),
    ] {
        let body = format!("event: error\ndata: {data}\n\n");
        assert_eq!(
            read([body.as_bytes()]),
            (vec![], Err(ModelError::Reported(code.to_owned())))
        );
    }
}

#[test]
fn a_finish_reason_error_is_an_error() {
    let chunk = r#"{"choices":[{"delta":{},"finish_reason":"error"}]}"#;
    assert!(matches!(stream(&[chunk]).1, Err(ModelError::Reported(_))));
}

#[test]
fn a_server_that_does_not_stream_is_read_too() {
    let body = r#"
        {"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Good day","reasoning_content":"hm",
        "tool_calls":[{"id":"a","type":"function","function":{"name":"find","arguments":"{}"}}]},"finish_reason":"tool_calls"}],
        "usage":{"prompt_tokens":7,"completion_tokens":2}}"#;
    let told = good(read([body.as_bytes()]));
    assert_eq!(
        told[..3],
        [reasoning("hm"), text("Good day"), call("a", "find", "{}")]
    );
    let unfinished = body.replace(r#""finish_reason":"tool_calls""#, r#""finish_reason":null"#);
    assert_eq!(read([unfinished.as_bytes()]).1, Err(ModelError::Truncated));
    let half = &body.as_bytes()[..body.len() - 20];
    assert!(matches!(read([half]).1, Err(ModelError::Protocol(_))));
}

#[test]
fn framing_may_be_anything_that_the_standard_allows() {
    let body = concat!(
        "\u{feff}: OPENROUTER PROCESSING\r\n\r\n",
        "event: ping\r\ndata: not json\r\n\r\n",
        "id: 1\r\nretry: 5\r\nevent: message\r\n",
        "data:{\"choices\":[{\"delta\":\r\n",
        "data: {\"content\":\"你好\"}}]}\r\n\r\n",
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\r\n\r\n",
        "data:  [DONE] \r\n\r\n",
    );
    assert_eq!(good(read([body.as_bytes()])), [text("你好"), stop()]);
}

#[test]
fn what_is_no_answer_breaks_the_protocol() {
    for body in [
        b"data: hello\n\n".as_slice(),
        b"data: 17\n\n",
        b"data: {\"choices\"\n\n",
        b"data: \xFF\xFE\n\n",
        b"{\"choices\":\xFF}",
        b"<!doctype html><p>hello",
        b"{not json}",
    ] {
        assert!(
            matches!(read([body]), (told, Err(ModelError::Protocol(_))) if told.is_empty()),
            "{body:?}"
        );
    }
}

#[test]
fn what_precedes_a_broken_line_in_the_same_piece_is_still_told() {
    let body = b"data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\ndata: \xFF\n\n";
    let (told, result) = read([body.as_slice()]);
    assert_eq!(told, [text("half")]);
    assert!(matches!(result, Err(ModelError::Protocol(_))));
}

#[test]
fn a_line_and_an_answer_have_a_longest_length() {
    let long = format!("data: {}", "x".repeat(MAX_LINE));
    assert!(matches!(
        read([long.as_bytes()]).1,
        Err(ModelError::Protocol(_))
    ));
    let mut reader = BodyReader::new(1_000);
    let refused = (0..100).find(|_| reader.feed(b": a comment of 26 bytes...\n").1.is_err());
    assert_eq!(refused, Some(37));
    let mut reader = BodyReader::new(1_000);
    let refused = (0..1_000).find(|_| reader.feed(b"{\"a\": ").1.is_err());
    assert_eq!(refused, Some(166));
}
