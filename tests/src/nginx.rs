//! nginx in front of some servers, as people put it there: buffering at its default, and an idle timeout.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::client::Client;
use crate::ports::free_port;
use crate::wait;

/// How long it may take to listen after its start.
const START_LIMIT: Duration = Duration::from_secs(20);

/// A running nginx; killed when dropped.
#[derive(Debug)]
pub struct Nginx {
    port: u16,
    _process: Child,
    _dir: TempDir,
}

impl Nginx {
    /// Starts one on a free port that gives each request to the next of the servers at these addresses, and cuts what is silent for `idle`.
    pub async fn start(addresses: &[&str], idle: Duration) -> Self {
        let (port, dir) = (free_port(), TempDir::new().expect("a directory"));
        let file = dir.path().join("nginx.conf");
        std::fs::write(&file, configuration(port, addresses, idle)).expect("a file");
        let process = Command::new(binary())
            .arg("-p")
            .arg(dir.path())
            .arg("-c")
            .arg(&file)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("nginx; scripts/test installs it");
        wait::until("nginx to listen", START_LIMIT, || async {
            TcpStream::connect(("127.0.0.1", port)).await.ok()
        })
        .await;
        Self {
            port,
            _process: process,
            _dir: dir,
        }
    }

    /// A client of the servers behind it.
    pub fn client(&self) -> Client {
        Client::new(&format!("http://127.0.0.1:{}", self.port))
    }
}

fn binary() -> PathBuf {
    let named = std::env::var_os("TIDEMARK_TEST_NGINX").map(PathBuf::from);
    named.unwrap_or_else(|| PathBuf::from("nginx"))
}

/// One process in the foreground. `proxy_buffering` is left at its default, which is on.
fn configuration(port: u16, addresses: &[&str], idle: Duration) -> String {
    let servers = addresses.join(";\n        server ");
    let idle = idle.as_secs();
    format!(
        "daemon off;
master_process off;
pid nginx.pid;
error_log stderr warn;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    upstream replicas {{
        server {servers};
    }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://replicas;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_set_header Host $http_host;
            proxy_read_timeout {idle}s;
        }}
    }}
}}
"
    )
}
