//! From the use cases' errors to problems: the one place that knows both.

use tidemark_application::chat::accept::InboundError;
use tidemark_application::chat::follow::FollowError;
use tidemark_application::ports::sessions::{CreateError, ImportError};
use tidemark_application::ports::store::StoreError;
use tidemark_application::ports::turns::{AcceptError, Whose};

use crate::problem::{Code, Problem};

/// What a client is told to wait when a queue is full.
const RETRY_MS: u64 = 1_000;

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        if matches!(error, StoreError::OwnerGone) {
            tracing::info!("the user was erased while the request was on its way");
        } else {
            let source = std::error::Error::source(&error).map(ToString::to_string);
            tracing::error!(%error, source, "the store failed a request");
        }
        match error {
            StoreError::OwnerGone => Self::new(
                Code::UserErased,
                "the user was erased meanwhile; nothing was stored",
            )
            .retry_after_ms(RETRY_MS),
            StoreError::Unavailable(_) => {
                Self::new(Code::StoreUnavailable, "the store cannot be reached")
                    .retry_after_ms(RETRY_MS)
            }
            StoreError::OutcomeUnknown(_) => {
                Self::new(Code::OutcomeUnknown, "whether it happened is unknown")
                    .retry_after_ms(RETRY_MS)
            }
            StoreError::Corrupt { .. } => Self::new(Code::Internal, "a defect of this server"),
        }
    }
}

fn idempotency_mismatch() -> Problem {
    Problem::new(
        Code::IdempotencyMismatch,
        "the idempotency key was used with another body",
    )
    .field("Idempotency-Key", "was used with another body")
}

fn session_busy() -> Problem {
    Problem::new(Code::SessionBusy, "a turn is running in this session").retry_after_ms(RETRY_MS)
}

impl From<CreateError> for Problem {
    fn from(error: CreateError) -> Self {
        match error {
            CreateError::IdempotencyMismatch => idempotency_mismatch(),
            CreateError::Store(error) => error.into(),
        }
    }
}

impl From<ImportError> for Problem {
    fn from(error: ImportError) -> Self {
        match error {
            ImportError::SessionNotFound => Self::not_found("session"),
            ImportError::SessionBusy => session_busy(),
            ImportError::IdempotencyMismatch => idempotency_mismatch(),
            ImportError::Store(error) => error.into(),
        }
    }
}

impl From<InboundError> for Problem {
    fn from(error: InboundError) -> Self {
        let detail = error.to_string();
        match error {
            InboundError::ShuttingDown => {
                Self::new(Code::ShuttingDown, detail).retry_after_ms(RETRY_MS)
            }
            InboundError::NotKnown => Self::not_found("turn"),
            InboundError::Overloaded => {
                Self::new(Code::Overloaded, detail).retry_after_ms(RETRY_MS)
            }
            InboundError::Accept(error) => error.into(),
        }
    }
}

impl From<AcceptError> for Problem {
    fn from(error: AcceptError) -> Self {
        let detail = error.to_string();
        match error {
            AcceptError::SessionNotFound => Self::not_found("session"),
            AcceptError::SessionBusy => session_busy(),
            AcceptError::NotAdmitted => {
                Self::new(Code::Overloaded, detail).retry_after_ms(RETRY_MS)
            }
            AcceptError::QueueFull => Self::new(Code::QueueFull, detail)
                .retry_after_ms(RETRY_MS)
                .by_limit("queue_per_session"),
            AcceptError::TooManyTurns => Self::new(Code::TooManyTurns, detail)
                .retry_after_ms(RETRY_MS)
                .by_limit("turns_per_user"),
            AcceptError::TooManyOfTenant => Self::new(Code::TooManyTurns, detail)
                .retry_after_ms(RETRY_MS)
                .by_limit("turns_per_tenant"),
            AcceptError::TooManyOfKey => Self::new(Code::TooManyTurns, detail)
                .retry_after_ms(RETRY_MS)
                .by_limit("turns_per_key"),
            AcceptError::TokensUsedUp { whose, wait } => Self::new(Code::TooManyTokens, detail)
                .retry_after_ms(wait.as_micros().div_ceil(1_000) as u64)
                .by_limit(match whose {
                    Whose::Tenant => "tenant_tokens_per_day",
                    Whose::Key => "key_tokens_per_day",
                    Whose::User => "user_tokens_per_day",
                }),
            AcceptError::ReplacedNotFound => Self::unacceptable("replaces", detail),
            AcceptError::IdempotencyMismatch => idempotency_mismatch(),
            AcceptError::Store(error) => error.into(),
        }
    }
}

impl From<FollowError> for Problem {
    fn from(error: FollowError) -> Self {
        match error {
            FollowError::NotFound => Self::not_found("turn"),
            FollowError::BeyondEnd => Self::new(
                Code::InvalidPosition,
                "the position lies beyond the end of the turn",
            ),
            FollowError::Store(error) => error.into(),
        }
    }
}
