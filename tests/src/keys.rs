//! API keys, as an operator makes them: with the commands of the binary.

use std::time::Duration;

use crate::client::Client;
use crate::database::Store;
use crate::server::{Server, Setup, command};
use crate::wait::within;

/// How long a command may take.
const COMMAND_LIMIT: Duration = Duration::from_mins(1);

/// Every scope.
pub const ALL_SCOPES: &str = "chat,memory:read,memory:write,tasks,admin";

/// What a command said.
#[derive(Debug)]
pub struct Said {
    /// It did what it was asked to do.
    pub success: bool,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

/// A setup whose server asks for keys.
pub fn keyed(store: Store) -> Setup {
    Setup::on(store).with("TIDEMARK_AUTH__MODE", "keys")
}

/// Runs `tidemark keys` with these arguments on the data of `server`, which may be running.
pub async fn keys(server: &Server, arguments: &[&str]) -> Said {
    let mut process = command(server.settings());
    process
        .arg("keys")
        .args(arguments)
        .current_dir(server.dir());
    let output = within("the command to end", COMMAND_LIMIT, process.output()).await;
    let output = output.expect("the command runs");
    Said {
        success: output.status.success(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Makes a key.
pub async fn create(server: &Server, arguments: &[&str]) -> String {
    let said = keys(server, &[&["create"], arguments].concat()).await;
    assert!(said.success, "{arguments:?}: {}", said.err);
    said.out.trim().to_owned()
}

/// A client of `server` with a new key of that tenant.
pub async fn client_of(server: &Server, tenant: &str, scopes: &str) -> Client {
    let key = create(server, &["--tenant", tenant, "--scopes", scopes]).await;
    server.client().with_key(&key)
}

/// The id within a key.
pub fn id_in(key: &str) -> String {
    let id = key.split('_').nth(1).expect("an id in the key");
    uuid::Uuid::parse_str(id).expect("a UUID").to_string()
}
