//! Secrets come from somewhere.

/// The system has no randomness to give.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no random bytes: {0}")]
pub struct NoEntropy(pub String);

/// A source of bytes that nobody can guess.
pub trait Entropy: Send + Sync + 'static {
    /// Fills `bytes`.
    ///
    /// # Errors
    /// [`NoEntropy`]; then nothing that was to be made of them may be used.
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoEntropy>;
}
