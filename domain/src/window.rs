//! The token window: what of a session's history a model is shown (B18, B19, A16).
//!
//! The window is filled from the newest message back, exchange by exchange, whatever the consolidation boundary is (A16). An exchange begins
//! at a user or system message and runs to the next one; it is shown whole or not at all. One that alone takes more than 30 % of
//! the window is cut to fit these 30 %: its long texts keep their head and tail, and only if its calls themselves are too long,
//! the oldest tool rounds go. So every window is a transcript that a model API accepts (A14). What was dropped or cut is told (B17).

mod exchange;
mod tokens;

pub use tokens::{EstimateCounter, TokenCounter, cut_middle};

use crate::session::{Message, Role, validate_transcript};
use exchange::Fitted;

/// Tokens that a message or a tool call costs besides its texts: the marks around it in the model's own format. Three or four in
/// `OpenAI`'s published counting example ("How to count tokens with tiktoken"), rounded up.
pub const OVERHEAD: usize = 4;

/// How a model's input is shared out, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// All of the input: the model's context less the room for its answer.
    pub window: usize,
    /// For the history, 70 % (B18).
    pub history: usize,
    /// For instructions and the descriptions of tools, 20 %.
    pub system: usize,
    /// For recalled memory, 10 %.
    pub recall: usize,
}

impl Budget {
    /// The shares of a model with a context of `context_tokens`, of which `max_output_tokens` are kept for the answer. All are rounded
    /// down, and 0 when the answer takes everything.
    pub fn of(context_tokens: usize, max_output_tokens: usize) -> Self {
        let window = context_tokens.saturating_sub(max_output_tokens);
        let share = |percent: usize| (window as u128 * percent as u128 / 100) as usize;
        Self {
            window,
            history: share(70),
            system: share(20),
            recall: share(10),
        }
    }

    /// The most that one exchange may take: 30 % of the window (B18).
    pub fn exchange(&self) -> usize {
        (self.window as u128 * 30 / 100) as usize
    }
}

/// Why messages are not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// The history's share was used up.
    OverBudget,
    /// The beginning of their exchange lies before the messages that were given.
    IncompleteExchange,
    /// No model API would accept their exchange: a tool call without its result, or a result without its call.
    BrokenExchange,
    /// Tool rounds of an exchange whose calls alone are too long.
    LongExchange,
}

impl DropReason {
    /// Every reason.
    pub const ALL: [Self; 4] = [
        Self::OverBudget,
        Self::IncompleteExchange,
        Self::BrokenExchange,
        Self::LongExchange,
    ];

    /// The name used in logs and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OverBudget => "over_budget",
            Self::IncompleteExchange => "incomplete_exchange",
            Self::BrokenExchange => "broken_exchange",
            Self::LongExchange => "long_exchange",
        }
    }
}

/// Messages that are not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// The first of them.
    pub from_seq: i64,
    /// The last of them.
    pub to_seq: i64,
    /// Why.
    pub reason: DropReason,
}

/// What of the history is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// The messages, ascending; a valid transcript.
    pub messages: Vec<Message>,
    /// What they cost, [`OVERHEAD`] included.
    pub tokens: usize,
    /// What of the given messages is left out, ascending.
    pub dropped: Vec<Dropped>,
    /// The messages whose text was shortened, ascending.
    pub cut: Vec<i64>,
    /// Nothing older can be added: the caller need not read further back.
    pub full: bool,
}

/// Fills the window with the newest of `messages`, which are the end of a session's history, ascending, beginning at any place.
///
/// The newest exchange is always shown, if need be cut to a few tokens; only where the budget does not even hold these is it
/// exceeded. In an exchange that is broken (no stored one is) the newest keeps its valid beginning, any other is left out.
/// Messages at the start without the user message that they answer are left out, unless the history itself begins with them.
pub fn select(messages: &[Message], budget: &Budget, counter: &dyn TokenCounter) -> Window {
    let mut window = Window::default();
    let mut left = messages;
    let mut newest = true;
    while let Some(last) = left.last() {
        let start = left.iter().rposition(begins).unwrap_or(0);
        let exchange = &left[start..];
        let first = exchange.first().unwrap_or(last).seq;
        let drop = |reason| Dropped {
            from_seq: first,
            to_seq: last.seq,
            reason,
        };
        if !begins(&exchange[0]) && first > 1 {
            window.dropped.push(drop(DropReason::IncompleteExchange));
            break;
        }
        let limit = if newest {
            budget.exchange().min(budget.history)
        } else {
            budget.exchange()
        };
        let valid = valid_beginning(exchange);
        if valid < exchange.len() && !newest {
            window.dropped.push(drop(DropReason::BrokenExchange));
        } else {
            let fitted = exchange::fit(&exchange[..valid], limit, counter);
            if !newest && window.tokens + fitted.tokens > budget.history {
                window.dropped.push(Dropped {
                    from_seq: left[0].seq,
                    ..drop(DropReason::OverBudget)
                });
                window.full = true;
                break;
            }
            if let Some(broken) = exchange.get(valid) {
                window.dropped.push(Dropped {
                    from_seq: broken.seq,
                    ..drop(DropReason::BrokenExchange)
                });
            }
            window.add(fitted);
        }
        newest = false;
        left = &left[..start];
    }
    window.full |=
        messages.first().is_none_or(|m| m.seq <= 1) || window.tokens + OVERHEAD >= budget.history;
    window.messages.sort_by_key(|m| m.seq);
    window.cut.sort_unstable();
    window.dropped.sort_by_key(|d| d.from_seq);
    window
}

impl Window {
    fn add(&mut self, fitted: Fitted) {
        self.tokens += fitted.tokens;
        self.messages.extend(fitted.messages);
        self.cut.extend(fitted.cut);
        self.dropped.extend(fitted.dropped);
    }
}

fn begins(message: &Message) -> bool {
    matches!(message.role, Role::User | Role::System)
}

/// Length of the longest beginning that is a valid transcript.
fn valid_beginning(exchange: &[Message]) -> usize {
    (0..=exchange.len())
        .rev()
        .find(|end| validate_transcript(&exchange[..*end]).is_ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests;
