//! A change as it is shown.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use tidemark_domain::memory::Trust;
use tidemark_domain::memory::change::{Change, ChangeKind, Item, Op, Values};
use utoipa::ToSchema;
use uuid::Uuid;

macro_rules! mirror {
    ($(#[$doc:meta])* $view:ident of $name:ident as $schema:ident { $($(#[$vdoc:meta])* $variant:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
        #[serde(rename_all = "snake_case")]
        #[schema(as = $schema)]
        pub enum $view { $($(#[$vdoc])* $variant),+ }

        impl From<$name> for $view {
            fn from(value: $name) -> Self {
                match value { $($name::$variant => Self::$variant),+ }
            }
        }
    };
}

mirror!(
    /// What was done.
    ChangeKindView of ChangeKind as ChangeKind {
        /// Memories were given.
        Add,
        /// One was changed.
        Edit,
        /// One was forgotten; it cannot be brought back.
        Forget,
        /// Messages were imported.
        Import,
        /// What was said took the place of what was remembered.
        Index,
        /// Statements were learned from what was said.
        Consolidation,
        /// What was not used for long was archived.
        Archive,
        /// What was archived was shown in an answer, and is told again.
        Use,
        /// Another change was undone.
        Revert,
    }
);
mirror!(
    /// What became of a memory.
    OpView of Op as ChangeOp {
        /// It was made.
        Created,
        /// Somebody changed it.
        Updated,
        /// It was said once more.
        Strengthened,
        /// Another value took its place.
        Superseded,
        /// It ended, and nothing took its place.
        Closed,
        /// It contradicts what is better trusted.
        Refused,
        /// It holds again, or longer.
        Reopened,
        /// It had faded, and is told on request alone.
        Archived,
        /// It is told again.
        Restored,
        /// It was removed.
        Removed,
    }
);

/// What a change did to one memory.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = ChangeItem)]
pub struct ItemView {
    /// The memory.
    pub memory_id: Uuid,
    /// What became of it.
    pub op: OpView,
    /// The version it had then; absent when it was removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(examples(2))]
    pub version: Option<i64>,
    /// The values it lost, by name; absent when there are none, or the memory is gone.
    #[serde(skip_serializing_if = "Values::is_empty")]
    #[schema(value_type = Object, required = false)]
    pub before: Values,
    /// The values in their place.
    #[serde(skip_serializing_if = "Values::is_empty")]
    #[schema(value_type = Object, required = false)]
    pub after: Values,
}

impl From<Item> for ItemView {
    fn from(item: Item) -> Self {
        Self {
            memory_id: item.memory.0,
            op: item.op.into(),
            version: (item.op != Op::Removed).then_some(item.version),
            before: shown(item.before),
            after: shown(item.after),
        }
    }
}

/// Values as a memory shows them: nothing where there is none, trust as a number, and the end in `valid_to` alone.
fn shown(values: Values) -> Values {
    let mut shown = Values::new();
    for (name, value) in values {
        let trust = (name == "trust").then(|| serde_json::from_value::<Trust>(value.clone()));
        let value = match trust {
            Some(Ok(trust)) => Value::from(trust.weight()),
            _ => value,
        };
        if !value.is_null() && name != "ended_at" {
            shown.insert(name, value);
        }
    }
    shown
}

/// A change.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Change)]
pub struct ChangeView {
    /// Its id.
    pub id: Uuid,
    /// What was done.
    pub kind: ChangeKindView,
    /// The session it came from, or was made for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Uuid>,
    /// Of a consolidation the boundary before it; of an import the number of the last message before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(examples(0))]
    pub from_seq: Option<i64>,
    /// Of a consolidation the boundary after it; of an import the number of its last message.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(examples(20))]
    pub to_seq: Option<i64>,
    /// When.
    pub created_at: DateTime<Utc>,
    /// The change that undid it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reverted_by: Option<Uuid>,
    /// The change that it undid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reverts: Option<Uuid>,
    /// Whether it can be undone still.
    pub revertible: bool,
    /// What it did, memory by memory; of an import, what its messages have taught by now.
    pub items: Vec<ItemView>,
}

impl From<Change> for ChangeView {
    fn from(change: Change) -> Self {
        Self {
            id: change.id.0,
            kind: change.kind.into(),
            session_id: change.session_id.map(|id| id.0),
            from_seq: change.range.map(|(from, _)| from),
            to_seq: change.range.map(|(_, to)| to),
            created_at: change.created_at,
            reverted_by: change.reverted_by.map(|id| id.0),
            reverts: change.reverts.map(|id| id.0),
            revertible: change.kind.can_be_reverted() && change.reverted_by.is_none(),
            items: change.items.into_iter().map(Into::into).collect(),
        }
    }
}
