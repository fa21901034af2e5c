//! The checks of derived work themselves: in a store that loses the jobs of one kind they find what that leaves undone, and no more.

use serde_json::Value;
use sqlx::{Connection, PgConnection, SqliteConnection};
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::model::Model;
use tidemark_tests::server::Setup;

use crate::THRESHOLD;
use crate::derived::{self, Uses};
use crate::load::{self, Line, ONE_DUE_TURN, Place};

each_store!(a_lost_job_of_any_kind_is_found);

/// Makes the store drop every new job of this kind.
fn losing(store: Store, kind: &str) -> [String; 2] {
    let make = match store {
        Store::Sqlite => format!(
            "CREATE TRIGGER losing AFTER INSERT ON jobs WHEN new.kind = '{kind}' \
             BEGIN DELETE FROM jobs WHERE id = new.id; END"
        ),
        _ => format!(
            "CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; \
             CREATE TRIGGER losing BEFORE INSERT ON jobs FOR EACH ROW WHEN (new.kind = '{kind}') EXECUTE FUNCTION lose()"
        ),
    };
    let unmake = match store {
        Store::Sqlite => "DROP TRIGGER losing",
        _ => "DROP TRIGGER losing ON jobs; DROP FUNCTION lose()",
    };
    [make, unmake.to_owned()]
}

async fn a_lost_job_of_any_kind_is_found(store: Store) {
    let model = Model::start().await;
    let server = Setup::on(store)
        .model(&model)
        .with("TIDEMARK_LEARNING__THRESHOLD", &THRESHOLD.to_string())
        .start()
        .await;
    let line = Line::to(server.client());
    for kind in ["none", "index", "consolidate", "count_use"] {
        let [make, unmake] = losing(store, kind);
        store.execute(server.store_url(), &make).await;
        let found = found_after_a_turn(&line, kind).await;
        store.execute(server.store_url(), &unmake).await;
        let kinds: Vec<&str> = found
            .iter()
            .filter_map(|finding| finding.split(':').next())
            .collect();
        let expected = if kind == "none" { vec![] } else { vec![kind] };
        assert_eq!(kinds, expected, "{found:?}");
    }
}

/// What the checks find after one turn of a user of its own.
async fn found_after_a_turn(line: &Line, kind: &str) -> Vec<String> {
    let user = format!("user-{kind}");
    let mut shown = Uses::default();
    shown.give_preference(&line.client(), &user).await;
    let client = line.client().as_user(&user);
    let place = Place {
        user: user.clone(),
        session: client.create_session().await,
    };
    let message =
        format!("The crate{kind} stands in hall 7 beside the loading gate. {ONE_DUE_TURN}");
    let seen = load::one_turn(line, &place, format!("crate{kind}"), &message).await;
    shown.record(&user, &client.turn(&seen.turn).await);
    assert_eq!(
        shown.of_preferences(),
        1,
        "the turn was shown the preference"
    );
    assert_eq!(
        derived::failed_once_drained(&client).await,
        Vec::<Value>::new()
    );
    let mut found = shown.miscounted(&client).await;
    found.extend(derived::missing(&client, &place.session, &[&seen], THRESHOLD).await);
    found
}

/// How much derived work waits in a store whose server is down.
pub(crate) async fn open_jobs(store: Store, url: &str) -> i64 {
    let statement = "SELECT count(*) FROM jobs WHERE state <> 'failed'";
    if store == Store::Sqlite {
        let mut connection = SqliteConnection::connect(url).await.expect("a connection");
        let count = sqlx::query_scalar(statement).fetch_one(&mut connection);
        let count = count.await.expect("a count");
        connection.close().await.expect("an end");
        count
    } else {
        let mut connection = PgConnection::connect(url).await.expect("a connection");
        let count = sqlx::query_scalar(statement).fetch_one(&mut connection);
        let count = count.await.expect("a count");
        connection.close().await.expect("an end");
        count
    }
}
