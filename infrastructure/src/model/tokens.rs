//! What an answer cost, where no server says so.

use tidemark_application::ports::model::ModelRequest;
use tidemark_domain::turn::Usage;
use tidemark_domain::window::TokenCounter;

/// The usage of a request and the text that answers it, by a counter; always marked as estimated.
pub fn estimated_usage(counter: &dyn TokenCounter, request: &ModelRequest, answer: &str) -> Usage {
    Usage {
        prompt_tokens: request.tokens(counter) as u64,
        completion_tokens: counter.count(answer) as u64,
        estimated: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::testing::asked;
    use tidemark_domain::window::EstimateCounter;

    #[test]
    fn an_estimate_says_so_and_grows_with_what_is_said() {
        let counter = EstimateCounter;
        let short = estimated_usage(&counter, &asked("hi"), "yes");
        let long = estimated_usage(
            &counter,
            &asked(&"hello there ".repeat(50)),
            &"yes indeed ".repeat(50),
        );
        assert!(short.estimated && long.estimated);
        assert!(long.prompt_tokens > short.prompt_tokens + 100);
        assert!(long.completion_tokens > short.completion_tokens + 100);
    }
}
