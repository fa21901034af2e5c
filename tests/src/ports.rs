//! Ports for what a test starts itself.

/// Below the range from which the system takes ports for outgoing connections, one of which could have it at the next start.
pub fn free_port() -> u16 {
    loop {
        let port = 20_000 + (uuid::Uuid::now_v7().as_u128() % 12_000) as u16;
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
