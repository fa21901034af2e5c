//! Following changes: what is known by way of deltas must be what is stored, or recall would tell what is gone.

use std::sync::Arc;

use chrono::TimeDelta;
use tidemark_application::ports::jobs::JobKind;
use tidemark_application::ports::learning::{ConsolidationCommit, IndexCommit, Strengthened};
use tidemark_application::ports::memories::{ChangePosition, Forgetting};
use tidemark_application::ports::store::Store;
use tidemark_application::ports::turns::{AcceptTurn, CommitTurn};
use tidemark_domain::ids::{SessionId, Timestamp};
use tidemark_domain::memory::index::search::search;
use tidemark_domain::memory::index::{Entry, OwnerIndex, View};
use tidemark_domain::memory::{Kind, Layer, Memory, Scope, State};

use super::world::{
    ALL, CENTURY, Follower, HARD_TEXTS, Random, World, asked, found, indexed, later, shown, source,
};

const WORDS: [&str; 16] = [
    "budget",
    "Budgets",
    "the",
    "TEA",
    "café",
    "2026-05-02",
    "May 2nd",
    "预算",
    "项目预算",
    "万",
    "naïve",
    "e\u{301}tude",
    "😀",
    "100%",
    "\"quoted\"",
    "дом",
];

const CORPORA: u64 = 6;
const LARGEST_CORPUS: usize = 40;
const QUERIES: usize = 8;

/// The index is the one that the stored rows make, down to the ranking of whatever is asked.
async fn check(w: &World, follower: &mut Follower, after: &str) {
    let known = follower.change;
    let before = (known, follower.index.len());
    follower.catch_up(w).await;
    let newest = w.store.memory_change(follower.owner).await.unwrap();
    assert_eq!(follower.change, newest, "{after}");
    let rows = w.memories().await;
    assert_eq!(follower.index.len(), rows.len(), "{after}, from {before:?}");
    for row in &rows {
        let entry = follower.index.get(row.id);
        assert_eq!(entry, Some(&Entry::from(row)), "{after}");
    }
    let anew = OwnerIndex::of(&rows);
    for text in ["budget tea", "预算 2026", "round blue colour"] {
        let query = asked(text, later(w.now(), 1));
        assert_eq!(
            search(&View::of(&follower.index), &query),
            search(&View::of(&anew), &query),
            "{after}"
        );
    }
}

/// A session with a turn that has shown these memories.
async fn shows(w: &World, session: SessionId, memories: &[&Memory]) {
    let started = w.started(session).await;
    let commit = CommitTurn {
        recalled: memories.iter().copied().map(shown).collect(),
        ..w.commit()
    };
    w.store.commit_turn(started.key, commit).await.unwrap();
}

pub async fn whatever_writes_memories_is_followed(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let follower = &mut Follower::of(w.owner);
    let (session, other) = (w.session().await, w.session().await);
    let elsewhere = w.said(other, "The budget is 400k.").await;

    let given = w.remembered(w.memory("The budget is 400k")).await;
    let expires_at = later(w.now(), CENTURY);
    let expiring = Memory {
        expires_at: Some(expires_at),
        ..w.memory("Tea at five")
    };
    let expiring = w.remembered(expiring).await;
    check(&w, follower, "remember").await;
    let known = follower.change;
    w.remembered(w.memory("the budget is 400k!")).await;
    check(&w, follower, "remember what is known").await;
    assert!(follower.change >= known);
    let told = |content: &str| Memory {
        key: Some("tea".to_owned()),
        ..w.memory(content)
    };
    w.remembered(told("Tea is green")).await;
    w.remembered(told("Tea is black")).await;
    check(&w, follower, "supersede").await;

    let said = w
        .said(session, "The budget is 500k. The colour is blue.")
        .await;
    let claim = w.claimed(session, JobKind::Index).await;
    let chunks = vec![
        w.chunk("The budget is 500k.", &said),
        w.chunk("Blue.", &said),
    ];
    let commit = w.index(session, chunks.clone()).await;
    w.store.commit_index(&claim, commit).await.unwrap();
    check(&w, follower, "index").await;

    let claim = w.claimed(session, JobKind::Consolidate).await;
    let fact = w.learned("The colour is blue", &[&said]);
    let commit = ConsolidationCommit {
        strengthened: vec![Strengthened {
            id: given.id,
            version: given.version,
            confidence: 0.95,
            sources: vec![source(&elsewhere)],
        }],
        ..w.consolidation(session, vec![fact.clone()]).await
    };
    w.store.commit_consolidation(&claim, commit).await.unwrap();
    check(&w, follower, "consolidate and strengthen").await;
    let strengthened = follower.index.get(given.id).unwrap();
    assert_eq!(&*strengthened.sources, [source(&elsewhere)]);

    shows(&w, session, &[&fact, &given]).await;
    let claim = w.claimed(session, JobKind::CountUse).await;
    let counted = w.store.commit_use(&claim, w.ids.change(), w.now());
    counted.await.unwrap();
    check(&w, follower, "count use").await;
    assert_eq!(follower.index.get(fact.id).unwrap().access_count, 1);

    assert_eq!(w.forget(w.forgetting(chunks[0].id)).await, 1);
    check(&w, follower, "forget").await;
    assert_eq!(follower.index.get(chunks[0].id), None);

    assert!(follower.index.get(expiring.id).is_some());
    let stored = w.store.remember(
        w.owner,
        Vec::new(),
        Vec::new(),
        w.ids.change(),
        None,
        expires_at,
    );
    stored.await.unwrap();
    check(&w, follower, "expire").await;
    assert_eq!(follower.index.get(expiring.id), None);

    let turn = w.completed(session).await;
    let history = w.history(session).await;
    let question = history.iter().rfind(|m| m.turn_id == Some(turn.id));
    let branch = w.learned("The shape is round", &[question.unwrap()]);
    let shared = w.learned("Tea is round", &[question.unwrap(), &elsewhere]);
    let branch = w.remembered(branch).await;
    let shared = w.remembered(shared).await;
    check(&w, follower, "remember more").await;
    let replacing = AcceptTurn {
        replaces: Some(turn.id),
        ..w.turn(session)
    };
    w.store.accept_turn(replacing).await.unwrap();
    check(&w, follower, "replace").await;
    assert_eq!(follower.index.get(branch.id), None);
    let left = follower.index.get(shared.id).unwrap();
    assert_eq!(&*left.sources, [source(&elsewhere)]);

    let deleted = w.store.delete_session(w.owner, session, true);
    assert!(deleted.await.unwrap().is_some());
    check(&w, follower, "delete a session").await;
    assert_eq!(follower.index.get(fact.id), None);
    let kept = w.store.delete_session(w.owner, other, false);
    assert!(kept.await.unwrap().is_some());
    check(&w, follower, "delete a session and keep its memories").await;
}

pub async fn a_number_is_raised_for_its_owner_alone(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let strangers = w.strangers().await;
    let before = w.store.memory_change(w.owner).await.unwrap();
    w.remembered(w.memory("The budget is 400k")).await;
    assert!(w.store.memory_change(w.owner).await.unwrap() > before);
    for stranger in strangers {
        assert_eq!(w.store.memory_change(stranger).await.unwrap(), 0);
        let mut follower = Follower::of(stranger);
        follower.catch_up(&w).await;
        assert!(follower.index.is_empty());
    }
}

pub async fn an_owner_without_memories_has_nothing_to_follow(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    assert_eq!(w.store.memory_change(w.owner).await.unwrap(), 0);
    let delta = w
        .store
        .index_delta(w.owner, ChangePosition::START, ALL, &[])
        .await
        .unwrap();
    assert_eq!((delta.change, delta.reset, delta.next), (0, false, None));
    assert!(delta.delta.upserts.is_empty() && delta.delta.removed.is_empty());
}

pub async fn parts_of_any_size_make_the_same_index(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let mut behind = Follower::of(w.owner);
    let mut stored = Vec::new();
    for round in 0..5 {
        let items = (0..6).map(|n| indexed(w.memory(&format!("budget {round} tea {n}"))));
        let items = items.collect();
        let added = w
            .store
            .remember(w.owner, items, Vec::new(), w.ids.change(), None, w.now())
            .await;
        stored.extend(added.unwrap().value);
        if round == 1 {
            behind.catch_up(&w).await;
        }
        if round >= 2 {
            for _ in 0..3 {
                let gone = stored.remove(round);
                assert_eq!(w.forget(w.forgetting(gone.id)).await, 1);
            }
        }
    }
    for page in [1, 2, 3, 7, 20, ALL] {
        for start in [
            Follower::of(w.owner),
            Follower {
                index: behind.index.clone(),
                models: behind.models.clone(),
                ..behind
            },
        ] {
            let mut follower = Follower { page, ..start };
            let parts = follower.catch_up(&w).await;
            assert!(if page == ALL {
                parts == 1
            } else {
                page > 7 || parts > 1
            });
            check(&w, &mut follower, "parts").await;
        }
    }
}

pub async fn who_knows_a_later_change_than_the_store_starts_anew(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let stored = w.remembered(w.memory("The budget is 400k")).await;
    let mut follower = Follower::of(w.owner);
    follower.change = 1_000;
    let stranger = OwnerIndex::of([&w.memory("From another time")]);
    follower.index = stranger;
    follower.catch_up(&w).await;
    assert_eq!(follower.index.len(), 1);
    assert!(follower.index.get(stored.id).is_some());
    check(&w, &mut follower, "starting anew").await;
}

fn text(random: &mut Random) -> String {
    let words: Vec<_> = (0..random.below(12)).map(|_| random.of(&WORDS)).collect();
    words.join(" ")
}

fn any_memory(w: &World, random: &mut Random, now: Timestamp) -> Memory {
    let expiry = random.below(4) as i64;
    Memory {
        scope: random.of(Scope::ALL),
        kind: random.of(Kind::ALL),
        layer: random.of(&[Layer::Semantic, Layer::Episodic]),
        state: random.of(&[
            State::Current,
            State::Current,
            State::Current,
            State::Archived,
        ]),
        speaker: random.of(&[None, None, Some("Melanie")]).map(str::to_owned),
        expires_at: (expiry < 3).then(|| now + TimeDelta::microseconds(expiry - 1)),
        ..w.memory(&text(random))
    }
}

/// Both stores are held to the domain's ranking of the same memories, and so to each other's.
pub async fn ranking_over_what_was_followed_is_ranking_over_the_memories(store: Arc<dyn Store>) {
    let mut w = World::new(store).await;
    let mut hits = 0;
    for corpus in 0..CORPORA {
        let random = &mut Random(corpus);
        w.owner = w
            .owner_named(w.owner.tenant, &format!("owner-{corpus}"))
            .await;
        let now = later(w.now(), 1);
        let memories: Vec<_> = (0..random.below(LARGEST_CORPUS))
            .map(|_| indexed(any_memory(&w, random, now)))
            .collect();
        let stored = w
            .store
            .remember(w.owner, memories, Vec::new(), w.ids.change(), None, w.now())
            .await;
        let mut stored = stored.unwrap().value;
        stored.sort_by_key(|memory| memory.id);
        stored.dedup_by_key(|memory| memory.id);
        let mut follower = Follower::of(w.owner);
        for number in 0..QUERIES {
            let mut query = asked(&text(random), now);
            query.filter.scopes = Scope::ALL[..number % (Scope::ALL.len() + 1)].to_vec();
            follower.catch_up(&w).await;
            let found = search(&View::of(&follower.index), &query);
            let made = OwnerIndex::of(&stored);
            assert_eq!(found, search(&View::of(&made), &query));
            hits += found.found.len();
            if number % 3 == 2
                && let Some(at) = (stored.iter()).position(|m| m.expires_at.is_none_or(|e| e > now))
            {
                let what = w.forgetting(stored.remove(at).id);
                assert_eq!(w.forget(Forgetting { now, ..what }).await, 1);
                stored.retain(|m| m.expires_at.is_none_or(|e| e > now));
            }
        }
    }
    assert!(hits > 100, "the corpora hardly meet the queries: {hits}");
}

pub async fn a_memory_is_found_by_the_request_after_it_was_given(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let mut follower = Follower::of(w.owner);
    for number in 0..20 {
        let memory = w.remembered(w.memory(&format!("secret{number}"))).await;
        follower.catch_up(&w).await;
        let query = asked(&memory.content, later(w.now(), 1));
        let search = search(&View::of(&follower.index), &query);
        assert_eq!(found(&search), [memory.id]);
    }
}

pub async fn documents_and_speakers_survive_whatever_they_hold(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let longest = "ж".repeat(64);
    for text in HARD_TEXTS.into_iter().chain([longest.as_str(), ""]) {
        let memory = Memory {
            speaker: Some(text.to_owned()),
            ..w.memory(text)
        };
        let item = indexed(memory);
        let document = item.document.clone();
        let before = w.store.memory_change(w.owner).await.unwrap();
        let stored = w
            .store
            .remember(
                w.owner,
                vec![item],
                Vec::new(),
                w.ids.change(),
                None,
                w.now(),
            )
            .await;
        let stored = stored.unwrap().value.remove(0);
        let after = ChangePosition::behind(before);
        let delta = w.store.index_delta(w.owner, after, ALL, &[]).await.unwrap();
        let upsert = &delta.delta.upserts[0];
        assert_eq!(upsert.document, document, "{text}");
        assert_eq!(upsert.entry, Entry::from(&stored), "{text}");
        assert_eq!(stored.speaker.as_deref(), Some(text));
    }
}

pub async fn what_was_forgotten_of_a_message_is_told(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let said = w.said(session, "I like tea. The budget is 400k.").await;
    let other = w.said(session, "I like tea.").await;
    let fact = w.remembered(w.learned("I like tea", &[&said])).await;
    let tea = indexed(fact.clone()).identity;
    let budget = indexed(w.memory("The budget is 400k")).identity;
    let pairs = [
        (said.id, tea.clone()),
        (said.id, budget.clone()),
        (other.id, tea.clone()),
    ];
    assert!(w.store.buried(w.owner, &pairs).await.unwrap().is_empty());
    w.forget(w.forgetting(fact.id)).await;
    assert_eq!(
        w.store.buried(w.owner, &pairs).await.unwrap(),
        [(said.id, tea)]
    );
    for stranger in w.strangers().await {
        assert!(w.store.buried(stranger, &pairs).await.unwrap().is_empty());
    }
}

pub async fn what_is_not_stored_yet_can_be_forgotten_before_it_is(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let session = w.session().await;
    let said = w.said(session, "I like tea. The budget is 400k.").await;
    let chunk = w.chunk("I like tea. The budget is 400k.", &said);
    let wish = Forgetting {
        fresh: true,
        buried: vec![(said.id, indexed(chunk.clone()).identity)],
        ..w.forgetting(chunk.id)
    };
    assert_eq!(w.forget(wish.clone()).await, 0);
    let other = w.chunk("Something else", &said);
    let claim = w.claimed(session, JobKind::Index).await;
    let commit = w.index(session, vec![chunk.clone(), other.clone()]).await;
    let commit = IndexCommit {
        now: later(w.now(), 1),
        ..commit
    };
    w.store.commit_index(&claim, commit).await.unwrap();
    assert_eq!(w.memories().await, std::slice::from_ref(&other));
    // Whoever was faster: a memory that is there already goes.
    let wish = Forgetting {
        fresh: true,
        ..w.forgetting(other.id)
    };
    assert_eq!(w.forget(wish).await, 1);
    assert!(w.memories().await.is_empty());
}
