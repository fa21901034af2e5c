//! A way between a server and what it needs, which a test may cut, hold up, or let carry one direction only.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A port of 127.0.0.1 behind which another one is; gone when dropped.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    state: watch::Sender<State>,
    serving: JoinHandle<()>,
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// Connections of an earlier number are cut.
    generation: u64,
    requests_held: bool,
    replies_held: bool,
}

impl Proxy {
    /// A way to `target`.
    pub async fn to(target: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let state = watch::Sender::new(State::default());
        let states = state.clone();
        let serving = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, target, states.subscribe()));
            }
        });
        Self {
            port,
            state,
            serving,
        }
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Ends every connection; new ones are carried.
    pub fn cut(&self) {
        self.state.send_modify(|state| state.generation += 1);
    }

    /// Carries nothing, new connections included, and ends none.
    pub fn stall(&self) {
        self.hold(true, true);
    }

    /// Carries what is asked and holds what is answered: what was done is not told.
    pub fn mute(&self) {
        self.hold(false, true);
    }

    /// Carries again, first what it has held.
    pub fn go_on(&self) {
        self.hold(false, false);
    }

    fn hold(&self, requests: bool, replies: bool) {
        self.state.send_modify(|state| {
            state.requests_held = requests;
            state.replies_held = replies;
        });
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.serving.abort();
        self.cut();
    }
}

async fn carry(client: TcpStream, target: u16, state: watch::Receiver<State>) {
    let generation = state.borrow().generation;
    let Ok(server) = TcpStream::connect(("127.0.0.1", target)).await else {
        return;
    };
    for end in [&client, &server] {
        // Small messages go back and forth, and none may wait for another.
        drop(end.set_nodelay(true));
    }
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let mut cut = state.clone();
    tokio::select! {
        () = forward(from_client, to_server, state.clone(), |state| state.requests_held) => {}
        () = forward(from_server, to_client, state, |state| state.replies_held) => {}
        _ = cut.wait_for(|state| state.generation != generation) => {}
    }
}

async fn forward(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut state: watch::Receiver<State>,
    held: fn(&State) -> bool,
) {
    let mut buffer = vec![0; 16 << 10];
    while let Ok(count) = from.read(&mut buffer).await {
        if count == 0
            || state.wait_for(|state| !held(state)).await.is_err()
            || to.write_all(&buffer[..count]).await.is_err()
        {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A server that answers each byte with the next one, and tells what it was sent.
    async fn adder() -> (u16, tokio::sync::mpsc::UnboundedReceiver<u8>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tell, told) = tokio::sync::mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let tell = tell.clone();
                tokio::spawn(async move {
                    while let Ok(byte) = stream.read_u8().await {
                        tell.send(byte).ok();
                        if stream.write_u8(byte + 1).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        (port, told)
    }

    async fn soon<F: Future>(future: F) -> Option<F::Output> {
        tokio::time::timeout(Duration::from_millis(200), future)
            .await
            .ok()
    }

    #[tokio::test]
    async fn what_is_muted_is_done_and_told_later_and_what_is_cut_is_never_told() {
        let (port, mut done) = adder().await;
        let proxy = Proxy::to(port).await;
        let mut client = TcpStream::connect(("127.0.0.1", proxy.port()))
            .await
            .unwrap();
        client.write_u8(1).await.unwrap();
        assert_eq!(client.read_u8().await.unwrap(), 2);
        proxy.mute();
        client.write_u8(10).await.unwrap();
        assert_eq!((done.recv().await, done.recv().await), (Some(1), Some(10)));
        assert!(soon(client.read_u8()).await.is_none(), "it was told");
        proxy.go_on();
        assert_eq!(client.read_u8().await.unwrap(), 11);
        proxy.stall();
        client.write_u8(20).await.unwrap();
        assert!(soon(done.recv()).await.is_none(), "it was done");
        proxy.cut();
        proxy.go_on();
        assert!(client.read_u8().await.is_err(), "it was not cut");
        let mut next = TcpStream::connect(("127.0.0.1", proxy.port()))
            .await
            .unwrap();
        next.write_u8(30).await.unwrap();
        assert_eq!(next.read_u8().await.unwrap(), 31);
    }
}
