//! Reading what Redis answers. Whatever is not of the expected form is nothing: somebody else may write there too.

use redis::{RedisError, RedisResult, Value};

use super::wire::{self, Content, EntryId};

/// The entries of a stream.
pub(super) fn entries(reply: Value) -> Vec<(EntryId, Content)> {
    let Value::Array(entries) = reply else {
        return Vec::new();
    };
    entries.into_iter().filter_map(entry).collect()
}

fn entry(value: Value) -> Option<(EntryId, Content)> {
    let [id, fields] = pair(value)?;
    let id = EntryId::parse(&text(id)?)?;
    let content = field(fields).map_or(Content::Unreadable, |(name, value)| {
        wire::read(&name, value)
    });
    Some((id, content))
}

/// The first field of an entry and its value.
fn field(fields: Value) -> Option<(String, String)> {
    let Value::Array(fields) = fields else {
        return None;
    };
    let mut fields = fields.into_iter();
    Some((text(fields.next()?)?, text(fields.next()?)?))
}

/// The streams that a read has something of, by their keys.
pub(super) fn streams(reply: Value) -> Vec<(String, Value)> {
    let Value::Array(streams) = reply else {
        return Vec::new();
    };
    let streams = streams.into_iter();
    streams
        .filter_map(|stream| {
            let [key, entries] = pair(stream)?;
            Some((text(key)?, entries))
        })
        .collect()
}

/// The entries of the stream that all replicas read: ids, first fields and their values, where they can be read.
pub(super) fn messages(reply: Value) -> Vec<(EntryId, Option<(String, String)>)> {
    let Value::Array(entries) = reply else {
        return Vec::new();
    };
    let entries = entries.into_iter();
    entries
        .filter_map(|entry| {
            let [id, fields] = pair(entry)?;
            Some((EntryId::parse(&text(id)?)?, field(fields)))
        })
        .collect()
}

fn pair(value: Value) -> Option<[Value; 2]> {
    match value {
        Value::Array(values) => values.try_into().ok(),
        _ => None,
    }
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes).ok(),
        Value::SimpleString(text) => Some(text),
        _ => None,
    }
}

/// The entry is there already, or a newer fence writes, or nothing may follow any more. Redis has no code for it, only words.
pub(super) fn is_refusal(reply: &Value) -> bool {
    let Value::ServerError(error) = reply else {
        return false;
    };
    error.details().is_some_and(|details| {
        details.contains("equal or smaller") || details.contains("exhausted the last possible ID")
    })
}

/// The key holds something other than a stream.
pub(super) fn is_wrong_type(reply: &Value) -> bool {
    matches!(reply, Value::ServerError(error) if error.code() == "WRONGTYPE")
}

/// The same of a single command.
pub(super) fn is_of_wrong_type(error: &RedisError) -> bool {
    error.code() == Some("WRONGTYPE")
}

/// Whether a command was carried out, each of a transaction too. That something was there already is no failure.
pub(super) fn taken(reply: Value) -> RedisResult<()> {
    match reply {
        Value::Array(replies) => replies.into_iter().try_for_each(taken),
        reply if is_refusal(&reply) => Ok(()),
        reply => reply.extract_error().map(|_| ()),
    }
}

#[cfg(test)]
mod tests {
    use tidemark_domain::event::TurnEvent;

    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    #[test]
    fn entries_are_read_and_what_is_none_is_passed_over() {
        let entry = |id: &str, fields: &[&str]| {
            let fields = fields.iter().map(|text| bulk(text)).collect();
            Value::Array(vec![bulk(id), Value::Array(fields)])
        };
        let reply = Value::Array(vec![
            entry("1-2", &["m", "hello"]),
            entry("x", &["m", "hello"]),
            Value::Nil,
            entry("1-3", &["unknown", "hello"]),
            entry("1-4", &[]),
            Value::Array(vec![
                bulk("1-5"),
                Value::Array(vec![bulk("m"), Value::BulkString(vec![0xff])]),
            ]),
        ]);
        let token = "hello".to_owned();
        let id = |seq| EntryId { fence: 1, seq };
        assert_eq!(
            entries(reply),
            [
                (id(2), Content::Event(TurnEvent::Message { token })),
                (id(3), Content::Unreadable),
                (id(4), Content::Unreadable),
                (id(5), Content::Unreadable),
            ]
        );
        assert_eq!(entries(Value::Nil), []);
        assert!(streams(Value::Nil).is_empty() && messages(Value::Int(1)).is_empty());
    }
}
