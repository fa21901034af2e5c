//! Tickets: an `EventSource` sends no header, so it shows one, good for one turn.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use tidemark_tests::client::Client;
use tidemark_tests::database::Store;
use tidemark_tests::each_store;
use tidemark_tests::keys::{client_of, create, id_in, keyed, keys};
use tidemark_tests::model::Model;
use tidemark_tests::paths::{events_of, turns_of};
use tidemark_tests::server::{Server, Setup};
use tidemark_tests::wait::until;

each_store!(
    a_ticket_opens_the_events_of_its_turn_and_nothing_else,
    a_ticket_is_good_at_every_server_and_for_reconnects,
    a_ticket_ends_with_its_key,
    without_keys_a_ticket_names_the_user,
    no_ticket_is_ever_logged,
);

async fn served(store: Store) -> (Server, Model) {
    let model = Model::start().await;
    let server = keyed(store).model(&model).start().await;
    (server, model)
}

/// Posts a turn; gives its id, and the ticket that came with it.
async fn asked(client: &Client, session: &str, message: &str) -> (String, String) {
    let body = json!({"message": message});
    let accepted = client.post(&turns_of(session), &body).await.expect(202);
    let text = |field: &str| accepted[field].as_str().unwrap().to_owned();
    (text("turn_id"), text("ticket"))
}

fn with_ticket(turn: &str, ticket: &str) -> String {
    format!("{}?ticket={ticket}", events_of(turn))
}

async fn a_ticket_opens_the_events_of_its_turn_and_nothing_else(store: Store) {
    let (server, _model) = served(store).await;
    let ada = client_of(&server, "acme", "chat").await.as_user("ada");
    let session = ada.create_session().await;
    let (turn, ticket) = asked(&ada, &session, "What is new?").await;
    let (other, _) = asked(&ada, &session, "And else?").await;
    let nobody = server.client();
    let reading = nobody.read_to_end(&with_ticket(&turn, &ticket)).await;
    assert_eq!(reading.assert_one_done_last().data["status"], "completed");
    let path = format!("/v1/turns/{turn}/ticket");
    let another = ada.post(&path, &json!({})).await.expect(200);
    let url = another["events_url"].as_str().unwrap();
    assert_eq!(url, with_ticket(&turn, another["ticket"].as_str().unwrap()));
    nobody.read_to_end(url).await;
    // Whatever else the request says, the ticket names the user.
    nobody.as_user("bob").read_to_end(url).await;

    let mut forged = ticket.clone();
    let last = if forged.ends_with('A') { "B" } else { "A" };
    forged.replace_range(forged.len() - 9..forged.len() - 8, last);
    for path in [
        with_ticket(&other, &ticket),
        with_ticket(&turn, &forged),
        with_ticket(&turn, "tmt_x"),
        format!("/v1/turns/{turn}?ticket={ticket}"),
        format!("/v1/sessions?ticket={ticket}"),
        format!("/v1/chat/stream?query=x&ticket={ticket}"),
    ] {
        let refused = nobody.get(&path).await;
        assert_eq!(refused.expect_problem(401), "unauthenticated", "{path}");
    }
    let as_key = nobody.with_key(&ticket).get(&events_of(&turn)).await;
    as_key.expect_problem(401);
    // Nobody gets one for a turn that is not theirs.
    let stranger = client_of(&server, "other", "chat").await;
    for stranger in [stranger.as_user("ada"), ada.as_user("bob")] {
        stranger.post(&path, &json!({})).await.expect_problem(404);
    }
}

async fn a_ticket_is_good_at_every_server_and_for_reconnects(store: Store) {
    let (server, _model) = served(store).await;
    let ada = client_of(&server, "acme", "chat").await.as_user("ada");
    let session = ada.create_session().await;
    let (turn, ticket) = asked(&ada, &session, "Tell me more. [[tokens=30 delay_ms=100]]").await;
    let path = with_ticket(&turn, &ticket);
    let another = match store {
        Store::Sqlite => None,
        _ => Some(server.start_another().await),
    };
    let elsewhere = another.as_ref().unwrap_or(&server).client();
    let mut stream = elsewhere.open(&path).await;
    let first = stream
        .collect_until(Duration::from_secs(30), |_| true)
        .await;
    drop((stream, first));
    let whole = elsewhere
        .read_after(&path, Some(&format!("{turn}:1")))
        .await;
    assert_eq!(whole.done().unwrap().data["status"], "completed");
    let last = format!("{turn}:{}", whole.done().unwrap().seq);
    let request = elsewhere.request(Method::GET, &path);
    let over = elsewhere.send(request.header("last-event-id", last)).await;
    assert_eq!(over.status, 204);
}

async fn a_ticket_ends_with_its_key(store: Store) {
    let (server, _model) = served(store).await;
    let key = create(&server, &["--scopes", "chat", "--user", "ada"]).await;
    let ada = server.client().with_key(&key);
    let session = ada.create_session().await;
    let (turn, ticket) = asked(&ada, &session, "What is new?").await;
    let path = with_ticket(&turn, &ticket);
    server.client().read_to_end(&path).await;
    assert!(keys(&server, &["revoke", &id_in(&key)]).await.success);
    until(
        "the ticket to be refused",
        Duration::from_secs(10),
        || async {
            let answer = server.client().get(&path).await;
            (answer.status == 401).then(|| answer.expect_problem(401))
        },
    )
    .await;
}

async fn without_keys_a_ticket_names_the_user(store: Store) {
    let model = Model::start().await;
    let server = Setup::on(store).model(&model).start().await;
    let ada = server.client().as_user("ada");
    let session = ada.create_session().await;
    let (turn, ticket) = asked(&ada, &session, "What is new?").await;
    let nobody = server.client();
    nobody.get(&events_of(&turn)).await.expect_problem(404);
    let reading = nobody.read_to_end(&with_ticket(&turn, &ticket)).await;
    assert_eq!(reading.assert_one_done_last().data["status"], "completed");
}

async fn no_ticket_is_ever_logged(store: Store) {
    let model = Model::start().await;
    let setup = keyed(store).model(&model).with("TIDEMARK_LOG", "trace");
    let server = setup.start().await;
    let key = create(&server, &["--scopes", "chat"]).await;
    let client = server.client().with_key(&key);
    let session = client.create_session().await;
    let (turn, ticket) = asked(&client, &session, "What is new?").await;
    server
        .client()
        .read_to_end(&with_ticket(&turn, &ticket))
        .await;
    let refused = format!("{}x", with_ticket(&turn, &ticket));
    server.client().get(&refused).await.expect_problem(401);
    let log = server.log().text();
    assert!(log.contains(&turn), "the log tells of the turn");
    for secret in [&ticket[4..], &key[37..]] {
        let line = log.lines().find(|line| line.contains(secret));
        assert_eq!(line, None);
    }
}
