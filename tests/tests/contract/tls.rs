//! TLS where a certificate is configured: the same server over HTTP/2 and HTTP/1.1, and a certificate that may be renewed.

use std::path::Path;
use std::time::Duration;

use reqwest::{Certificate, Method, Version};
use tempfile::TempDir;
use tidemark_tests::client::Client;
use tidemark_tests::database::Store;
use tidemark_tests::model::Model;
use tidemark_tests::paths::chat_stream;
use tidemark_tests::server::{Server, Setup};
use tidemark_tests::wait::until;

/// Writes a new certificate with its key, and gives the certificate.
fn certify(folder: &Path) -> String {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let pem = made.cert.pem();
    std::fs::write(folder.join("certificate.pem"), &pem).unwrap();
    std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    pem
}

async fn secured(folder: &Path) -> (Server, Model) {
    let model = Model::start().await;
    let file = |name: &str| folder.join(name).display().to_string();
    let server = Setup::on(Store::Sqlite)
        .model(&model)
        .with("TIDEMARK_TLS__CERT", &file("certificate.pem"))
        .with("TIDEMARK_TLS__KEY", &file("key.pem"))
        .start()
        .await;
    (server, model)
}

/// A client that trusts that certificate alone.
fn trusting(server: &Server, pem: &str, http1: bool) -> Client {
    // It installs what secures connections.
    drop(server.client());
    let certificate = Certificate::from_pem(pem.as_bytes()).unwrap();
    let mut builder = reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only([certificate])
        .connect_timeout(Duration::from_secs(10));
    if http1 {
        builder = builder.http1_only();
    }
    let base = server.base_url().replace("http://", "https://");
    Client::through(&base, builder.build().unwrap())
}

#[tokio::test]
async fn the_server_is_the_same_over_tls_by_http_2_and_by_http_1() {
    let folder = TempDir::new().unwrap();
    let pem = certify(folder.path());
    let (server, _model) = secured(folder.path()).await;
    for (http1, version) in [(false, Version::HTTP_2), (true, Version::HTTP_11)] {
        let client = trusting(&server, &pem, http1);
        let answer = client.request(Method::GET, "/readyz").send().await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.version()), (200, version));
        let path = chat_stream("Hello [[tokens=5]]", None, Some(&format!("tls-{http1}")));
        let reading = client.read_to_end(&path).await;
        reading.assert_one_done_last();
    }
    let plain = server.client();
    let refused = plain.request(Method::GET, "/readyz").send().await;
    assert!(
        refused.is_err(),
        "nothing is served in the clear: {refused:?}"
    );
}

#[tokio::test]
async fn browsers_are_told_to_come_back_by_tls_but_not_to_all_that_this_machine_serves() {
    let folder = TempDir::new().unwrap();
    let pem = certify(folder.path());
    let (server, _model) = secured(folder.path()).await;
    let client = trusting(&server, &pem, true);
    let here = client.get("/").await;
    assert_eq!(here.status, 200);
    assert_eq!(here.header("strict-transport-security"), "");
    let named = client.request(Method::GET, "/");
    let named = client.send(named.header("host", "chat.example.org")).await;
    let said = named.header("strict-transport-security");
    assert_eq!(said, "max-age=31536000");
}

#[tokio::test]
async fn a_renewed_certificate_is_used_and_a_broken_one_is_not() {
    let folder = TempDir::new().unwrap();
    let first = certify(folder.path());
    let (server, _model) = secured(folder.path()).await;
    trusting(&server, &first, false)
        .get("/readyz")
        .await
        .expect(200);

    std::fs::write(folder.path().join("certificate.pem"), "half written").unwrap();
    until(
        "the broken file to be seen",
        Duration::from_secs(20),
        || async {
            trusting(&server, &first, false)
                .get("/readyz")
                .await
                .expect(200);
            server.log().text().contains("cannot be used").then_some(())
        },
    )
    .await;

    let second = certify(folder.path());
    until(
        "the new certificate to be served",
        Duration::from_secs(20),
        || async {
            let client = trusting(&server, &second, false);
            let answer = client
                .try_send(client.request(Method::GET, "/readyz"))
                .await;
            answer.map(|answer| assert_eq!(answer.status, 200))
        },
    )
    .await;
    let outdated = trusting(&server, &first, false);
    let answer = outdated
        .try_send(outdated.request(Method::GET, "/readyz"))
        .await;
    assert!(
        answer.is_none(),
        "the first certificate is no longer served"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_connects_and_never_greets_keeps_nobody_from_ending() {
    let folder = TempDir::new().unwrap();
    let pem = certify(folder.path());
    let (mut server, _model) = secured(folder.path()).await;
    trusting(&server, &pem, true)
        .get("/readyz")
        .await
        .expect(200);
    let mute = tokio::net::TcpStream::connect(server.address()).await;
    let _mute = mute.unwrap();
    // It has been taken before the next one is served.
    trusting(&server, &pem, true)
        .get("/readyz")
        .await
        .expect(200);
    let (status, took) = server.terminate(Duration::from_secs(30)).await;
    assert!(status.success(), "{status}");
    assert!(took < Duration::from_secs(4), "{took:?}");
}
