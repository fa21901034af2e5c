//! Fragments of tool calls, joined as real servers send them: by index, by id, or in no order that they state.

use std::collections::BTreeSet;

use tidemark_application::ports::model::ModelError;
use tidemark_domain::tool::ToolCall;

use super::wire::{Arguments, Fragment};

/// More calls than any answer makes; a server that sends more has lost its way.
const MOST: usize = 256;

/// The calls of an answer that is still coming.
#[derive(Debug, Default)]
pub(super) struct OpenCalls(Vec<OpenCall>);

#[derive(Debug, Default)]
struct OpenCall {
    index: Option<u64>,
    id: Option<String>,
    name: String,
    arguments: String,
}

impl OpenCall {
    fn is_whole(&self) -> bool {
        !self.name.is_empty()
            && serde_json::from_str::<serde::de::IgnoredAny>(&self.arguments).is_ok()
    }

    /// Whether a fragment goes on with this call, given that it bears the same index or none.
    fn goes_on_with(&self, fragment: &Fragment) -> bool {
        match (&self.id, &fragment.id, &fragment.name) {
            // Another id is another call, unless the server makes up a new one for every fragment: then it names no tool.
            (Some(mine), Some(theirs), named) => mine == theirs || named.is_none(),
            // A name once more: the next call if this one is whole, else a server that repeats the name.
            (_, None, Some(name)) => {
                !self.is_whole() && (self.name.is_empty() || self.name == *name)
            }
            (None, Some(_), Some(_)) => self.name.is_empty(),
            (_, _, None) => true,
        }
    }

    fn take(&mut self, fragment: Fragment) {
        self.index = self.index.or(fragment.index);
        if self.id.is_none() {
            self.id = fragment.id;
        }
        if let Some(name) = fragment.name
            && self.name != name
        {
            self.name.push_str(&name);
        }
        match fragment.arguments {
            Some(Arguments::Text(piece)) => self.arguments.push_str(&piece),
            Some(Arguments::Whole(all)) => self.arguments = all,
            None => {}
        }
    }
}

impl OpenCalls {
    /// Takes the next fragment.
    pub(super) fn push(&mut self, fragment: Fragment) -> Result<(), ModelError> {
        let open = self.0.iter().rposition(|call| match fragment.index {
            Some(index) => call.index == Some(index),
            None => fragment.id.is_some() && call.id == fragment.id,
        });
        let open = match (open, fragment.index) {
            (None, None) => self.0.len().checked_sub(1),
            (open, _) => open,
        };
        match open {
            Some(place) if self.0[place].goes_on_with(&fragment) => self.0[place].take(fragment),
            _ if self.0.len() == MOST => {
                return Err(ModelError::Protocol("too many tool calls".to_owned()));
            }
            _ => {
                let mut call = OpenCall::default();
                call.take(fragment);
                self.0.push(call);
            }
        }
        Ok(())
    }

    /// The calls, in the order in which they began, each with an id of its own.
    pub(super) fn close(self) -> Result<Vec<ToolCall>, ModelError> {
        let given: BTreeSet<String> = self.0.iter().filter_map(|call| call.id.clone()).collect();
        let mut used = BTreeSet::new();
        let mut next = 0_usize;
        let mut calls = Vec::with_capacity(self.0.len());
        for call in self.0 {
            if call.name.is_empty() {
                return Err(ModelError::Protocol(
                    "a tool call without a name".to_owned(),
                ));
            }
            let id = match call.id {
                Some(id) if !used.contains(&id) => id,
                _ => loop {
                    let made = format!("call_{next}");
                    next += 1;
                    if !given.contains(&made) {
                        break made;
                    }
                },
            };
            used.insert(id.clone());
            calls.push(ToolCall {
                id,
                name: call.name,
                arguments: if call.arguments.trim().is_empty() {
                    "{}".to_owned()
                } else {
                    call.arguments
                },
            });
        }
        Ok(calls)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn fragment(index: Option<u64>, id: &str, name: &str, arguments: &str) -> Fragment {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Fragment {
            index,
            id: given(id),
            name: given(name),
            arguments: given(arguments).map(Arguments::Text),
        }
    }

    fn joined(fragments: Vec<Fragment>) -> Vec<(String, String, String)> {
        let mut calls = OpenCalls::default();
        for fragment in fragments {
            calls.push(fragment).unwrap();
        }
        calls
            .close()
            .unwrap()
            .into_iter()
            .map(|c| (c.id, c.name, c.arguments))
            .collect()
    }

    fn two(first_id: &str, second_id: &str) -> Vec<(String, String, String)> {
        [
            (first_id, "f", r#"{"a":1}"#),
            (second_id, "g", r#"{"b":2}"#),
        ]
        .map(|(id, name, arguments)| (id.to_owned(), name.to_owned(), arguments.to_owned()))
        .to_vec()
    }

    #[test]
    fn fragments_are_joined_by_index_even_when_they_interleave() {
        let calls = joined(vec![
            fragment(Some(0), "x", "f", ""),
            fragment(Some(1), "y", "g", r#"{"b""#),
            fragment(Some(0), "", "", r#"{"a":"#),
            fragment(Some(1), "", "", ":2}"),
            fragment(Some(0), "", "", "1}"),
        ]);
        assert_eq!(calls, two("x", "y"));
    }

    #[test]
    fn a_new_id_begins_a_new_call_when_the_index_is_missing() {
        let calls = joined(vec![
            fragment(None, "x", "f", r#"{"a":"#),
            fragment(None, "", "", "1}"),
            fragment(None, "y", "g", ""),
            fragment(None, "y", "", r#"{"b":2}"#),
        ]);
        assert_eq!(calls, two("x", "y"));
    }

    #[test]
    fn a_new_id_begins_a_new_call_when_the_index_is_always_the_same() {
        let calls = joined(vec![
            fragment(Some(0), "x", "f", r#"{"a":1}"#),
            fragment(Some(0), "y", "g", r#"{"b":"#),
            fragment(Some(0), "", "", "2}"),
        ]);
        assert_eq!(calls, two("x", "y"));
    }

    #[test]
    fn an_id_made_up_for_every_fragment_does_not_tear_the_call() {
        let calls = joined(vec![
            fragment(Some(0), "x", "f", ""),
            fragment(Some(0), "x2", "", r#"{"a":"#),
            fragment(Some(0), "x3", "", "1}"),
            fragment(Some(1), "y", "g", r#"{"b":2}"#),
        ]);
        assert_eq!(calls, two("x", "y"));
    }

    #[test]
    fn a_name_repeated_on_every_fragment_does_not_tear_the_call() {
        for index in [None, Some(0)] {
            let calls = joined(vec![
                fragment(index, "", "f", r#"{"a":"#),
                fragment(index, "", "f", "1}"),
                fragment(index, "", "g", r#"{"b":2}"#),
            ]);
            assert_eq!(calls, two("call_0", "call_1"), "{index:?}");
        }
    }

    #[test]
    fn whole_calls_of_one_tool_without_index_or_id_are_kept_apart() {
        let calls = joined(vec![
            fragment(None, "", "f", r#"{"a":1}"#),
            fragment(None, "", "f", r#"{"a":1}"#),
        ]);
        assert_eq!(calls.len(), 2);
        assert_ne!(calls[0].0, calls[1].0);
    }

    #[test]
    fn missing_and_repeated_ids_are_replaced_by_ones_that_nobody_else_has() {
        let calls = joined(vec![
            fragment(Some(0), "", "f", "{}"),
            fragment(Some(1), "call_0", "f", "{}"),
            fragment(Some(2), "call_0", "f", "{}"),
        ]);
        let ids: Vec<&str> = calls.iter().map(|c| c.0.as_str()).collect();
        assert_eq!(ids, ["call_1", "call_0", "call_2"]);
    }

    #[test]
    fn a_call_without_arguments_has_an_empty_object() {
        assert_eq!(joined(vec![fragment(Some(0), "x", "f", "")])[0].2, "{}");
    }

    #[test]
    fn a_call_without_a_name_breaks_the_protocol() {
        let mut calls = OpenCalls::default();
        calls.push(fragment(Some(0), "x", "", "{}")).unwrap();
        assert!(matches!(calls.close(), Err(ModelError::Protocol(_))));
    }

    #[test]
    fn endless_calls_break_the_protocol() {
        let mut calls = OpenCalls::default();
        let refused = (0..10_000).find(|&n| calls.push(fragment(Some(n), "", "f", "{}")).is_err());
        assert_eq!(refused, Some(MOST as u64));
    }
}
