//! Tokens that turns use in a day, and what is refused for them.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use futures::future::join_all;
use tidemark_application::ports::store::Store;
use tidemark_application::ports::turns::{
    AcceptError, AcceptTurn, CloseTurn, CommitTurn, StartTurn, TokenLimits, TurnSession, Whose,
};
use tidemark_domain::ids::{KeyId, SessionId, TenantId, Timestamp};
use tidemark_domain::turn::{TurnStatus, Usage};

use super::world::{EVENT_BLOCK, LONG, World, key};

const UNLIMITED: TokenLimits = TokenLimits {
    tenant: None,
    key: None,
    user: None,
};

fn usage(tokens: u64) -> Usage {
    Usage {
        prompt_tokens: tokens - tokens / 3,
        completion_tokens: tokens / 3,
        estimated: false,
    }
}

/// A turn of a new session, in which the day's tokens are limited.
fn limited(w: &World, key: Option<KeyId>, max_tokens: TokenLimits) -> AcceptTurn {
    let session = w.new_session();
    let turn = w.turn(session.id);
    AcceptTurn {
        session: TurnSession::New(session),
        key,
        max_tokens,
        ..turn
    }
}

fn user(most: i64) -> TokenLimits {
    TokenLimits {
        user: Some(most),
        ..UNLIMITED
    }
}

fn tenant(most: i64) -> TokenLimits {
    TokenLimits {
        tenant: Some(most),
        ..UNLIMITED
    }
}

fn key_limit(most: i64) -> TokenLimits {
    TokenLimits {
        key: Some(most),
        ..UNLIMITED
    }
}

/// A turn that has used so many.
async fn used(w: &World, key: Option<KeyId>, tokens: u64, at: Timestamp) -> SessionId {
    let turn = limited(w, key, UNLIMITED);
    let session = w.store.accept_turn(turn).await.unwrap().turn.session_id;
    let started = w.start(session).await.unwrap();
    let commit = CommitTurn {
        usage: usage(tokens),
        counts_tokens: true,
        now: at,
        ..w.commit()
    };
    w.store.commit_turn(started.key, commit).await.unwrap();
    session
}

/// Whose limit refuses the turn, and how long is to be waited; none where it is accepted.
async fn refusal(w: &World, turn: AcceptTurn) -> Option<(Whose, Duration)> {
    match w.store.accept_turn(turn).await {
        Ok(_) => None,
        Err(AcceptError::TokensUsedUp { whose, wait }) => Some((whose, wait)),
        Err(error) => panic!("{error:?}"),
    }
}

async fn refused_by(w: &World, turn: AcceptTurn) -> Option<Whose> {
    refusal(w, turn).await.map(|(whose, _)| whose)
}

pub async fn a_user_a_key_and_a_tenant_may_use_so_many_tokens_a_day(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let other = w.another("other").await;
    let [first, second] = [KeyId(w.ids.uuid()), KeyId(w.ids.uuid())];
    let day = w.now();
    let limits = TokenLimits {
        tenant: Some(300),
        key: Some(200),
        user: Some(100),
    };
    used(&w, Some(first), 60, day).await;
    assert_eq!(refused_by(&w, limited(&w, Some(first), limits)).await, None);
    used(&w, Some(first), 40, day).await;
    let by = |w, key| refused_by(w, limited(w, key, limits));
    assert_eq!(by(&w, Some(first)).await, Some(Whose::User));
    assert_eq!(by(&w, None).await, Some(Whose::User), "whatever the key");
    assert_eq!(by(&other, Some(first)).await, None);
    used(&other, Some(first), 99, day).await;
    assert_eq!(by(&other, Some(first)).await, None, "199 of the key's 200");
    let third = w.another("third").await;
    used(&third, Some(first), 1, day).await;
    assert_eq!(by(&other, Some(first)).await, Some(Whose::Key));
    assert_eq!(by(&other, Some(second)).await, None);
    assert_eq!(by(&other, None).await, None, "no key, no limit of it");
    used(&third, None, 100, day).await;
    assert_eq!(by(&other, Some(second)).await, Some(Whose::Tenant));
    let elsewhere = w.owner_named(TenantId(w.ids.uuid()), "default").await;
    let turn = AcceptTurn {
        owner: elsewhere,
        ..limited(&w, Some(first), limits)
    };
    assert_eq!(refused_by(&w, turn).await, None, "another tenant");
    assert_eq!(by(&w, Some(first)).await, Some(Whose::User));
}

pub async fn what_was_used_on_a_day_is_over_with_it(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let midnight = w.now().date_naive().and_hms_opt(0, 0, 0).unwrap().and_utc();
    let at = |seconds| midnight + TimeDelta::seconds(seconds);
    used(&w, None, 10, at(3_600)).await;
    let turn = |seconds| AcceptTurn {
        now: at(seconds),
        ..limited(&w, None, user(10))
    };
    let hour = Duration::from_hours(1);
    let refused = refusal(&w, turn(23 * 3_600)).await;
    assert_eq!(refused, Some((Whose::User, hour)));
    assert_eq!(refused_by(&w, turn(86_399)).await, Some(Whose::User));
    assert_eq!(refusal(&w, turn(86_400)).await, None);
    // A day that is over is forgotten once another is counted: not the one before, which a late clock may still be in.
    used(&w, None, 10, at(86_400)).await;
    assert_eq!(refused_by(&w, turn(86_399)).await, Some(Whose::User));
    used(&w, None, 1, at(2 * 86_400)).await;
    assert_eq!(refusal(&w, turn(86_399)).await, None);
    assert_eq!(refused_by(&w, turn(86_400)).await, Some(Whose::User));
}

pub async fn a_turn_without_an_answer_counts_what_it_used_and_no_turn_is_cut(
    store: Arc<dyn Store>,
) {
    let w = World::new(store).await;
    let session = w.session().await;
    let turn = AcceptTurn {
        max_tokens: user(5),
        ..w.turn(session)
    };
    w.store.accept_turn(turn).await.unwrap();
    let running = w.start(session).await.unwrap();
    used(&w, None, 5, w.now()).await;
    let refused = refused_by(&w, limited(&w, None, user(5))).await;
    assert_eq!(refused, Some(Whose::User));
    // It began before, and ends as if nothing were limited.
    let close = CloseTurn {
        usage: Some(usage(7)),
        counts_tokens: true,
        ..w.close_with(TurnStatus::Cancelled, vec![w.partial("It is")])
    };
    w.store.close_turn(running.key, close).await.unwrap();
    let refused = refused_by(&w, limited(&w, None, user(12))).await;
    assert_eq!(refused, Some(Whose::User));
    assert_eq!(refusal(&w, limited(&w, None, user(13))).await, None);
    // One that told no usage, or whose end is another's, adds nothing.
    let started = w.started(w.session().await).await;
    let close = CloseTurn {
        counts_tokens: true,
        ..w.close_with(TurnStatus::Failed, Vec::new())
    };
    w.store.close_turn(started.key, close).await.unwrap();
    let commit = CommitTurn {
        counts_tokens: true,
        ..w.commit()
    };
    assert!(w.store.commit_turn(running.key, commit).await.is_err());
    assert_eq!(refusal(&w, limited(&w, None, user(13))).await, None);
}

pub async fn tokens_are_counted_only_where_they_are_limited(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    w.completed(w.session().await).await;
    w.ended(w.session().await, TurnStatus::Failed).await;
    assert_eq!(refusal(&w, limited(&w, None, user(1))).await, None);
}

pub async fn who_has_used_all_tokens_is_still_given_a_turn_that_is_known(store: Arc<dyn Store>) {
    let w = World::new(store).await;
    let turn = |session, name| AcceptTurn {
        idempotency: Some(key(name, 1)),
        max_tokens: user(1),
        ..w.turn(session)
    };
    let session = w.session().await;
    let first = w.store.accept_turn(turn(session, "one")).await.unwrap();
    used(&w, None, 10, w.now()).await;
    let again = w.store.accept_turn(turn(session, "one")).await.unwrap();
    assert!(again.replayed);
    assert_eq!(again.turn.id, first.turn.id);
    let refused = refused_by(&w, turn(session, "two")).await;
    assert_eq!(refused, Some(Whose::User));
    // Nothing of it is stored, its key neither.
    assert_eq!(w.store.open_turns(w.owner, None).await.unwrap().len(), 1);
    let later = AcceptTurn {
        now: w.now() + TimeDelta::days(1),
        ..turn(session, "two")
    };
    let accepted = w.store.accept_turn(later).await.unwrap();
    assert!(!accepted.replayed);
}

pub async fn tokens_of_many_turns_that_end_at_once_are_all_counted(store: Arc<dyn Store>) {
    const MANY: usize = 150;
    let w = World::new(store).await;
    let other = w.another("other").await;
    let id = KeyId(w.ids.uuid());
    let limits = TokenLimits {
        key: Some(1_000_000),
        ..tenant(1_000_000)
    };
    let started = join_all((0..MANY).map(|n| {
        let w = if n % 3 == 0 { &other } else { &w };
        let start = StartTurn {
            message: w.ids.message(),
            lease: LONG,
            event_block: EVENT_BLOCK,
        };
        let turn = AcceptTurn {
            start: Some(start),
            ..limited(w, (n % 2 == 0).then_some(id), limits)
        };
        w.store.accept_turn(turn)
    }))
    .await;
    let day = w.now();
    join_all(started.into_iter().map(|accepted| {
        let commit = CommitTurn {
            usage: usage(10),
            counts_tokens: true,
            now: day,
            ..w.commit()
        };
        let key = accepted.unwrap().started.unwrap().key;
        let store = &w.store;
        async move { store.commit_turn(key, commit).await.unwrap() }
    }))
    .await;
    let all = MANY as i64 * 10;
    for (whose, limits, enough) in [
        (Whose::Tenant, tenant(all), tenant(all + 1)),
        (Whose::Key, key_limit(all / 2), key_limit(all / 2 + 1)),
        (Whose::User, user(all * 2 / 3), user(all * 2 / 3 + 1)),
    ] {
        let refused = refused_by(&w, limited(&w, Some(id), limits)).await;
        assert_eq!(refused, Some(whose));
        assert_eq!(refusal(&w, limited(&w, Some(id), enough)).await, None);
    }
}

pub async fn an_erasure_leaves_what_a_tenant_and_its_keys_have_used_and_nobodys_name(
    store: Arc<dyn Store>,
) {
    let w = World::new(store).await;
    let known = w.added(TenantId::DEFAULT).await.key.id;
    for name in ["other", "third"] {
        let gone = w.another(name).await;
        let mut own = w.new_key(TenantId::DEFAULT);
        own.key.user = Some(name.parse().unwrap());
        w.store.add_key(own.clone()).await.unwrap();
        let own = own.key.id;
        used(&gone, Some(known), 30, w.now()).await;
        used(&gone, Some(own), 12, w.now()).await;
        let erased = w.store.erase(gone.owner, w.ids.uuid(), w.now()).await;
        let removed = erased.unwrap().unwrap().receipt.removed;
        assert_eq!(removed.get("token_days"), Some(&2));
        // A key that went with its user names nobody any more, here neither.
        let turn = limited(&w, Some(own), key_limit(1));
        assert_eq!(refused_by(&w, turn).await, None);
    }
    for (most, refused) in [(84, Some(Whose::Tenant)), (85, None)] {
        let turn = limited(&w, None, tenant(most));
        assert_eq!(refused_by(&w, turn).await, refused);
    }
    for (most, refused) in [(60, Some(Whose::Key)), (61, None)] {
        let turn = limited(&w, Some(known), key_limit(most));
        assert_eq!(refused_by(&w, turn).await, refused);
    }
    let anew = w.another("other").await;
    assert_eq!(refusal(&anew, limited(&anew, None, user(1))).await, None);
}
