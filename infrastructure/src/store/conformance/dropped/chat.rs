//! Owners, sessions, messages, turns, and all of a user.

use tidemark_application::ports::context::{ContextWanted, RecallWanted};
use tidemark_application::ports::sessions::SessionChange;
use tidemark_application::ports::turns::{StartTurn, Started, TurnSession};
use tidemark_application::ports::users::{Part, Place};
use tidemark_domain::ids::{SessionId, TenantId, UserName};
use tidemark_domain::session::Role;
use tidemark_domain::turn::TurnStatus;

use super::super::world::{ALL, EVENT_BLOCK, LONG, World, key};
use super::{Call, Operation, operation};

async fn started(w: &World) -> Started {
    let session = w.session().await;
    w.started(session).await
}

/// A session with a message.
async fn spoken(w: &World) -> SessionId {
    let session = w.session().await;
    w.said(session, "The budget is 400k.").await;
    session
}

fn name(w: &World) -> UserName {
    w.ids.uuid().to_string().parse().unwrap()
}

pub(super) fn operations() -> Vec<Operation> {
    let mut all = owners_and_sessions();
    all.extend(turns());
    all.extend(users());
    all
}

fn owners_and_sessions() -> Vec<Operation> {
    vec![
        operation!(w.ready() after {}),
        operation!(w.resolve_owner(TenantId::DEFAULT, &name) after { let name = name(&w); }),
        operation!(w.create_session(w.owner, session, Some(key)) after {
            let (session, key) = (w.new_session(), key(&w.ids.uuid().to_string(), 1));
        }),
        operation!(w.session(w.owner, session) after { let session = w.session().await; }),
        operation!(w.list_sessions(w.owner, Some("a"), None, ALL) after {}),
        operation!(w.update_session(w.owner, session, None, change, now) after {
            let (session, now) = (w.session().await, w.now());
            let change = SessionChange { title: Some(None), ..SessionChange::default() };
        }),
        operation!(w.delete_session(w.owner, session, true) after { let session = spoken(&w).await; }),
        operation!(w.messages(w.owner, session, 0, ALL) after { let session = spoken(&w).await; }),
        operation!(w.history(w.owner, session, None, ALL) after { let session = spoken(&w).await; }),
        operation!(w.import_messages(w.owner, session, import, Some(key)) after {
            let session = w.session().await;
            let import = w.importing(vec![w.past(Role::User, "It is for tea.")], Vec::new());
            let key = key(&w.ids.uuid().to_string(), 1);
        }),
    ]
}

fn turns() -> Vec<Operation> {
    vec![
        operation!(w.accept_turn(turn) after {
            let session = w.session().await;
            let mut turn = w.turn(session);
            turn.idempotency = Some(key(&w.ids.uuid().to_string(), 1));
        }),
        operation!(w.accept_turn(turn) after {
            let session = w.new_session();
            let mut turn = w.turn(session.id);
            turn.session = TurnSession::New(session);
        }),
        operation!(w.accept_turn(turn) after {
            let session = w.session().await;
            let mut turn = w.turn(session);
            turn.start = Some(StartTurn {
                message: w.ids.message(),
                lease: LONG,
                event_block: EVENT_BLOCK,
            });
        }),
        operation!(w.start_turn(w.owner, session, message, LONG, EVENT_BLOCK, now) after {
            let session = w.session().await;
            w.accepted(session).await;
            let (message, now) = (w.ids.message(), w.now());
        }),
        operation!(w.renew_turn(started.key, LONG) after { let started = started(&w).await; }),
        operation!(w.reserve_events(started.key, 2 * EVENT_BLOCK) after { let started = started(&w).await; }),
        operation!(w.append_step(started.key, step, now) after {
            let (started, now) = (started(&w).await, w.now());
            let step = vec![w.calling(&["a"]), w.result("a")];
        }),
        operation!(w.commit_turn(started.key, commit) after {
            let (started, commit) = (started(&w).await, w.commit());
        }),
        operation!(w.commit_and_look(started.key, commit) after {
            let (started, commit) = (started(&w).await, w.commit());
        }),
        operation!(w.turn_context(w.owner, wanted) after {
            let recall = RecallWanted { unindexed: ALL, preferences: ALL, now: w.now() };
            let (session, messages) = (spoken(&w).await, ALL);
            let wanted = ContextWanted { session, messages, recall: Some(recall) };
        }),
        operation!(w.close_turn(started.key, close) after {
            let started = started(&w).await;
            let close = w.close_with(TurnStatus::Cancelled, vec![w.partial("It")]);
        }),
        operation!(w.turn(w.owner, started.turn.id) after { let started = started(&w).await; }),
        operation!(w.request_cancel(w.owner, turn.id, now) after {
            let session = w.session().await;
            let (turn, now) = (w.accepted(session).await, w.now());
        }),
        operation!(w.open_turns(w.owner, None) after {}),
        operation!(w.lapsed_turns(ALL) after {}),
        operation!(w.waiting_sessions(ALL) after {}),
    ]
}

fn users() -> Vec<Operation> {
    vec![
        operation!(w.find_user(TenantId::DEFAULT, &name) after { let name = name(&w); }),
        Operation {
            name: "records",
            prepare: |w| {
                Box::pin(async move {
                    spoken(&w).await;
                    Call(Box::pin(async move {
                        for part in Part::ALL {
                            let start = Place::default();
                            let records = w.store.records(w.owner, part, &start, 10).await;
                            records.unwrap();
                        }
                    }))
                })
            },
        },
        operation!(w.erase(other.owner, receipt, now) after {
            let other = w.another(&w.ids.uuid().to_string()).await;
            spoken(&other).await;
            let (receipt, now) = (w.ids.uuid(), w.now());
        }),
        operation!(w.overwrite_erased() after {
            let other = w.another(&w.ids.uuid().to_string()).await;
            w.store.erase(other.owner, w.ids.uuid(), w.now()).await.unwrap();
        }),
    ]
}
