//! A server's life: it binds, serves, and ends in order when it is told to.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpSocket};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::App;
use crate::config::Settings;
use crate::config::setting::AuthMode;
use crate::server::tls::{Tls, TlsError};
use crate::wiring::{OpenStore, Wired};
use crate::{app, server};

/// How often metrics are tidied.
const METRICS_UPKEEP: Duration = Duration::from_secs(5);

/// The most that is kept of the drain time to close turns as interrupted.
const MOST_FOR_LAST: Duration = Duration::from_secs(2);

/// The server cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Without authentication only this machine may connect.
    #[error(
        "listen is {0}, which is not a loopback address: without authentication (auth.mode is none) whoever can connect reads and \
         writes everything, so only an address such as 127.0.0.1:8080 is allowed; with auth.mode = \"keys\" or \"jwt\" any is"
    )]
    NotLoopback(SocketAddr),
    /// The address cannot be had.
    #[error("cannot listen on {address}")]
    Bind {
        /// Which.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// Connections cannot be secured.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Signals cannot be waited for.
    #[error("signals cannot be handled")]
    Signals(#[source] std::io::Error),
}

/// Binds the address of the settings.
///
/// # Errors
/// When it may not be used or cannot be had.
pub fn bind(settings: &Settings) -> Result<TcpListener, StartError> {
    let address = settings.server.listen;
    let loopback = address.ip().to_canonical().is_loopback();
    match settings.auth.mode {
        AuthMode::None if !loopback => return Err(StartError::NotLoopback(address)),
        AuthMode::Keys | AuthMode::Jwt if !loopback && settings.tls.cert.is_none() => {
            tracing::warn!(
                "keys and tokens come over plain HTTP to {address}: set tls.cert and tls.key, or have a proxy before it add TLS"
            );
        }
        AuthMode::None | AuthMode::Keys | AuthMode::Jwt => {}
    }
    listen(address).map_err(|source| StartError::Bind { address, source })
}

/// Connections that wait to be accepted. Thousands of readers may come back within a second, of a replica that went away; the system bounds it
/// further.
const BACKLOG: u32 = 4_096;

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // As `TcpListener::bind` does: a server that was restarted finds its port again.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves until SIGTERM or SIGINT; then drains and closes. A second signal ends the process at once.
///
/// # Errors
/// When it cannot begin.
pub async fn run(
    settings: &Settings,
    listener: TcpListener,
    wired: Wired,
    store: &OpenStore,
) -> Result<(), StartError> {
    let mut signals = Signals::new().map_err(StartError::Signals)?;
    let running = Running::start(settings, listener, wired)?;
    announce(running.scheme, running.address());
    let name = signals.next().await;
    tracing::info!(signal = name, "going down");
    tokio::spawn(async move {
        let name = signals.next().await;
        tracing::warn!(signal = name, "told again: ending at once");
        std::process::exit(1);
    });
    let drain = Duration::from_secs(settings.shutdown.drain_seconds);
    running.end(drain, store).await;
    Ok(())
}

/// A server that serves in tasks of this process.
#[derive(Debug)]
pub struct Running {
    app: App,
    scheme: &'static str,
    address: SocketAddr,
    stop: CancellationToken,
    tasks: TaskTracker,
    serving: JoinHandle<GracefulShutdown>,
}

impl Running {
    /// Starts the workers and takes connections.
    ///
    /// # Errors
    /// When the listener has no address, or the certificate cannot be used.
    pub fn start(
        settings: &Settings,
        listener: TcpListener,
        wired: Wired,
    ) -> Result<Self, StartError> {
        let tls = match (&settings.tls.cert, &settings.tls.key) {
            (Some(certificate), Some(key)) => Some(Arc::new(Tls::of(certificate, key)?)),
            _ => None,
        };
        let scheme = if tls.is_some() { "https" } else { "http" };
        let address = listener.local_addr().map_err(|source| StartError::Bind {
            address: settings.server.listen,
            source,
        })?;
        let Wired { app, workers } = wired;
        let stop = CancellationToken::new();
        let tasks = TaskTracker::new();
        workers.start(&tasks, &stop);
        {
            let (chat, until) = (app.chat.clone(), stop.clone());
            tasks.spawn(async move { chat.recover_until(until).await });
            let (chat, until) = (app.chat.clone(), stop.clone());
            tasks.spawn(async move { chat.heed_hints(until).await });
            let (metrics, until) = (app.metrics.clone(), app.draining.clone());
            tokio::spawn(async move {
                while timeout(METRICS_UPKEEP, until.cancelled()).await.is_err() {
                    metrics.run_upkeep();
                }
            });
        }
        if let Some(tls) = &tls {
            tasks.spawn(Arc::clone(tls).watch(stop.clone()));
        }
        tasks.close();
        let router = app::router(app.clone());
        let most = settings.limits.connections;
        let until = stop.clone();
        let serving =
            tokio::spawn(async move { server::serve(listener, router, tls, most, &until).await });
        Ok(Self {
            app,
            scheme,
            address,
            stop,
            tasks,
            serving,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes no more, lets what runs end within `drain`, and closes the store.
    pub async fn end(self, drain: Duration, store: &OpenStore) {
        self.stop.cancel();
        let until = Instant::now() + drain;
        let last = (drain / 5).min(MOST_FOR_LAST);
        self.app.draining.cancel();
        let grace = drain.saturating_sub(last * 2);
        let chat = async {
            self.app.chat.shut_down(grace, last).await;
            // Whoever follows a turn at another replica is told its end from here, not when it looks for it.
            let left = (until - last / 2).saturating_duration_since(Instant::now());
            if !self.app.events.flush(left).await {
                tracing::info!("what turns told last has not reached the other replicas");
            }
        };
        let connections = timeout_at(until - last / 2, async {
            match self.serving.await {
                Ok(connections) => connections.shutdown().await,
                Err(error) => tracing::error!(%error, "taking connections broke"),
            }
        });
        let tasks = timeout_at(until - last / 2, self.tasks.wait());
        let ((), connections, tasks) = tokio::join!(chat, connections, tasks);
        if connections.is_err() {
            tracing::warn!("some connections were cut");
        }
        if tasks.is_err() {
            tracing::warn!("some derived work was cut; it is done after the next start");
        }
        if timeout_at(until, store.close()).await.is_err() {
            tracing::warn!("the store could not be closed in time");
        }
        tracing::info!("ended");
    }
}

/// Tells where the server and its page are. Standard output may be closed; that is no reason not to serve.
fn announce(scheme: &str, address: SocketAddr) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "listening on {scheme}://{address}");
    let _ = writeln!(
        out,
        "the chat page is at {scheme}://{address}/ and the API reference at {scheme}://{address}/docs"
    );
    let _ = out.flush();
    tracing::info!(%address, "serving");
}

struct Signals {
    term: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            term: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.term.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
