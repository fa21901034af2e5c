//! What an edited memory said before, kept as a memory of its own, so that it can be asked what was believed then.

use crate::ids::MemoryId;
use crate::memory::{Memory, State};

/// What a memory held until an edit had it say something else of its key: a memory of its own, over for good from then on, whatever becomes
/// of the edited one. None for an edit that leaves since when the memory holds: it corrects what never was so, or says the same.
pub fn former(before: &Memory, after: &Memory, id: MemoryId) -> Option<Memory> {
    let moved = before.state == State::Current && after.valid_from > before.valid_from;
    moved.then(|| Memory {
        id,
        state: State::Superseded,
        valid_to: Some(after.valid_from),
        superseded_by: None,
        ended_at: Some(after.valid_from),
        pinned: false,
        expires_at: after.expires_at,
        version: 1,
        ..before.clone()
    })
}

/// Whether what a memory said before holds no more place once it is put back to since when it holds: that it says itself again.
pub fn is_said_again(former: &Memory, restored: &Memory) -> bool {
    former.valid_from >= restored.valid_from
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{day, memory};
    use super::super::{Revision, revise};
    use super::*;
    use crate::memory::conflict::{key_of, verdicts};
    use uuid::Uuid;

    fn to(content: &str) -> Revision {
        Revision {
            content: Some(content.to_owned()),
            ..Revision::default()
        }
    }

    fn id(number: u128) -> MemoryId {
        MemoryId(Uuid::from_u128(number))
    }

    fn keyed(content: &str) -> Memory {
        let mut memory = memory(1, content);
        memory.key = key_of(&memory);
        assert!(memory.key.is_some());
        memory
    }

    #[test]
    fn what_an_edit_ends_is_over_for_good_from_then_on() {
        let first = keyed("Our budget is 300k");
        let second = revise(&first, to("Our budget is 400k"), day(3));
        let third = revise(&second, to("Our budget is 500k"), day(5));
        let kept = [
            former(&first, &second, id(7)).unwrap(),
            former(&second, &third, id(8)).unwrap(),
        ];
        assert_eq!(
            kept.each_ref()
                .map(|m| (m.content.as_str(), m.valid_from, m.valid_to)),
            [
                ("Our budget is 300k", first.valid_from, Some(day(3))),
                ("Our budget is 400k", day(3), Some(day(5))),
            ]
        );
        assert!(kept.iter().all(|m| m.ended_at == m.valid_to));
        // With the edited one and without it, they stand as they are.
        assert_eq!(verdicts(kept.iter().chain([&third])), []);
        assert_eq!(verdicts(&kept), []);
        assert!(is_said_again(&kept[1], &second) && !is_said_again(&kept[0], &second));
    }

    #[test]
    fn an_edit_that_corrects_or_says_the_same_leaves_nothing_behind() {
        let unkeyed = memory(1, "We met on Monday");
        let corrected = revise(&unkeyed, to("We met on Tuesday"), day(3));
        assert_eq!(former(&unkeyed, &corrected, id(7)), None);
        let keyed = keyed("Our budget is 300k");
        let same = revise(&keyed, to("The budget is 300k"), day(3));
        assert_eq!(former(&keyed, &same, id(7)), None);
        let mut archived = keyed.clone();
        archived.state = State::Archived;
        let edited = revise(&archived, to("Our budget is 400k"), day(3));
        assert_eq!(former(&archived, &edited, id(7)), None);
    }
}
