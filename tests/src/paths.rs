//! Where things lie in the API, and what its resources say of themselves.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use crate::sse::Frame;

/// The `id` of a resource.
#[track_caller]
pub fn id_of(resource: &Value) -> String {
    resource["id"]
        .as_str()
        .unwrap_or_else(|| panic!("no id in {resource}"))
        .to_owned()
}

/// Whether a turn's status is a terminal one.
pub fn is_over(turn: &Value) -> bool {
    matches!(
        turn["status"].as_str(),
        Some("completed" | "failed" | "cancelled" | "interrupted")
    )
}

/// Path of a session's turns.
pub fn turns_of(session: &str) -> String {
    format!("/v1/sessions/{session}/turns")
}

/// Path of a session's messages.
pub fn messages_of(session: &str) -> String {
    format!("/v1/sessions/{session}/messages")
}

/// Path of a turn's events.
pub fn events_of(turn: &str) -> String {
    format!("/v1/turns/{turn}/events")
}

/// Path that starts a turn and streams it.
pub fn chat_stream(query: &str, session: Option<&str>, request_id: Option<&str>) -> String {
    let mut path = format!("/v1/chat/stream?query={}", encoded(query));
    for (name, value) in [("session_id", session), ("request_id", request_id)] {
        if let Some(value) = value {
            path = format!("{path}&{name}={}", encoded(value));
        }
    }
    path
}

/// Percent-encoded for a query.
pub fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect()
}

/// Whether a frame is the event of this type.
pub fn is_event(frame: &Frame, kind: &str) -> bool {
    matches!(frame, Frame::Event(event) if event.kind == kind)
}

/// Lets other users read a file, or look into a directory: some services run as a user of their own.
pub fn open_to_all(path: &Path) {
    let permissions = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(path, permissions).expect("permissions");
}
