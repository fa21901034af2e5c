use std::time::Duration;

use tidemark_domain::ids::SessionId;
use tidemark_domain::memory::change::Item;
use tidemark_domain::memory::{Kind, Layer, Scope, State, Trust};
use uuid::Uuid;

use super::*;

fn at(hour: u64) -> Timestamp {
    Timestamp::UNIX_EPOCH + Duration::from_secs(3_600 * hour)
}

fn memory(content: &str, version: i64) -> Memory {
    Memory {
        id: MemoryId(Uuid::from_u128(1)),
        content: content.to_owned(),
        speaker: None,
        scope: Scope::ProjectContext,
        kind: Kind::Fact,
        layer: Layer::Semantic,
        state: State::Current,
        importance: 3,
        confidence: 1.0,
        trust: Trust::User,
        pinned: false,
        key: None,
        session_id: None,
        sources: Vec::new(),
        valid_from: at(0),
        valid_to: None,
        superseded_by: None,
        ended_at: None,
        expires_at: None,
        created_at: at(0),
        access_count: 0,
        last_access: at(0),
        version,
    }
}

fn change(number: u128, kind: ChangeKind, item: Item) -> Change {
    let id = ChangeId(Uuid::from_u128(number));
    Change::new(id, kind, at(number as u64), vec![item])
        .of_session(Some(SessionId(Uuid::from_u128(7))))
}

#[test]
fn the_versions_lead_back_to_the_first_words() {
    let (first, second, third) = (
        memory("The office is in Paris", 1),
        memory("The office is in Rome", 2),
        memory("The office is in Oslo", 3),
    );
    let changes = [
        change(1, ChangeKind::Add, Item::created(&first)),
        change(
            2,
            ChangeKind::Edit,
            Item::changed(&first, &second, Op::Updated),
        ),
        change(
            3,
            ChangeKind::Edit,
            Item::changed(&second, &third, Op::Updated),
        ),
    ];
    let told: Vec<(i64, String, Option<Op>)> = versions(third, &changes)
        .into_iter()
        .map(|v| (v.memory.version, v.memory.content, v.made.map(|m| m.op)))
        .collect();
    assert_eq!(
        told,
        [
            (3, "The office is in Oslo".to_owned(), Some(Op::Updated)),
            (2, "The office is in Rome".to_owned(), Some(Op::Updated)),
            (1, "The office is in Paris".to_owned(), Some(Op::Created)),
        ]
    );
}

#[test]
fn what_was_there_before_changes_were_kept_has_a_first_version_too() {
    let (first, second) = (memory("a", 1), memory("b", 2));
    let changes = [change(
        2,
        ChangeKind::Edit,
        Item::changed(&first, &second, Op::Updated),
    )];
    let told = versions(second, &changes);
    assert_eq!(told.len(), 2);
    assert_eq!((told[1].memory.content.as_str(), told[1].made), ("a", None));
}
