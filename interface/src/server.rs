//! Taking connections: HTTP/1.1 and HTTP/2 on one port, with TLS where a certificate is configured, bounded in number, closed when they are silent.

pub mod tls;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use self::tls::Tls;

/// How long the head of a request may take, and how long a connection may be idle between two.
const HEAD_LIMIT: Duration = Duration::from_secs(30);

/// The most header lines of a request, and the most bytes they may have.
const MAX_HEADERS: usize = 100;
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// The most requests at once over one HTTP/2 connection.
const MAX_STREAMS: u32 = 256;

/// How often a silent HTTP/2 connection is asked whether it still lives.
const PING: Duration = Duration::from_secs(30);

/// How long to wait when a connection cannot be taken: most likely there are too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Takes connections until `stop`; whoever awaits what is returned waits for the requests that are being served.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    tls: Option<Arc<Tls>>,
    max_connections: usize,
    stop: &CancellationToken,
) -> GracefulShutdown {
    let permits = Arc::new(Semaphore::new(max_connections));
    let graceful = GracefulShutdown::new();
    let builder = builder();
    loop {
        let next = async {
            let permit = Arc::clone(&permits).acquire_owned().await;
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            () = stop.cancelled() => return graceful,
            next = next => next,
        };
        match (permit, accepted) {
            (Ok(permit), Ok((stream, _))) => {
                let connection = Connection {
                    builder: builder.clone(),
                    router: router.clone(),
                    asked: Arc::default(),
                    watcher: graceful.watcher(),
                    stop: stop.clone(),
                };
                tokio::spawn(connection.run(stream, tls.clone(), permit));
            }
            (_, Err(error)) => {
                tracing::warn!(%error, "a connection could not be taken");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
            (Err(_), _) => return graceful,
        }
    }
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEAD_BYTES as u32)
        .keep_alive_interval(PING)
        .keep_alive_timeout(PING);
    builder
}

struct Connection {
    builder: Builder<TokioExecutor>,
    router: Router,
    /// Whether a request has come.
    asked: Arc<AtomicBool>,
    watcher: Watcher,
    /// No more requests are taken.
    stop: CancellationToken,
}

impl Connection {
    async fn run(self, stream: TcpStream, tls: Option<Arc<Tls>>, permit: OwnedSemaphorePermit) {
        let _permit = permit;
        // Events are small and are to be seen at once.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY could not be set");
        }
        let asked = Arc::clone(&self.asked);
        tokio::select! {
            () = self.talk(stream, tls) => {}
            // Before the first request nobody else has a clock: the protocol is not even known.
            () = silent(&asked) => tracing::debug!("a connection without a request was closed"),
        }
    }

    async fn talk(self, stream: TcpStream, tls: Option<Arc<Tls>>) {
        let Some(tls) = tls else {
            return self.serve(stream).await;
        };
        let secured = tokio::select! {
            secured = tls.accept(stream) => secured,
            // Whoever has not even been greeted keeps nobody from ending.
            () = self.stop.cancelled() => return,
        };
        match secured {
            Ok(stream) => self.serve(stream).await,
            Err(error) => tracing::debug!(%error, "a connection could not be secured"),
        }
    }

    async fn serve<S>(self, stream: S)
    where
        S: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        let Self {
            builder,
            router,
            asked,
            watcher,
            stop: _,
        } = self;
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            asked.store(true, Ordering::Relaxed);
            router.clone().oneshot(request.map(Body::new))
        });
        let served = builder.serve_connection(TokioIo::new(stream), service);
        if let Err(error) = watcher.watch(served.into_owned()).await {
            tracing::debug!(%error, "a connection broke");
        }
    }
}

async fn silent(asked: &AtomicBool) {
    tokio::time::sleep(HEAD_LIMIT).await;
    if asked.load(Ordering::Relaxed) {
        std::future::pending::<()>().await;
    }
}
