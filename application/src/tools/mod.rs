//! The tools a model may call, and how they are called.

pub mod search_memory;

use std::sync::Arc;

use tidemark_domain::tool::{ToolCall, ToolSpec};

use crate::ports::tools::{Tool, ToolContext, ToolError};

/// The longest result that is kept of a tool, in bytes; what is beyond is cut and marked.
const MAX_RESULT_BYTES: usize = 64 * 1024;

/// The tools of this server.
#[derive(Clone, Default)]
pub struct Toolbox {
    tools: Vec<(ToolSpec, Arc<dyn Tool>)>,
}

impl std::fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.tools.iter().map(|(spec, _)| &spec.name))
            .finish()
    }
}

impl Toolbox {
    /// Of these tools.
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        Self {
            tools: tools.into_iter().map(|t| (t.spec(), t)).collect(),
        }
    }

    /// Of these, those named; all when no names are given.
    #[must_use]
    pub fn only(&self, names: Option<&[String]>) -> Self {
        let tools = self.tools.iter();
        Self {
            tools: match names {
                None => tools.cloned().collect(),
                Some(names) => tools
                    .filter(|(spec, _)| names.contains(&spec.name))
                    .cloned()
                    .collect(),
            },
        }
    }

    /// Names of all of them.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|(spec, _)| spec.name.as_str())
    }

    /// What the model of this turn is told.
    pub fn specs(&self, context: &ToolContext) -> Vec<ToolSpec> {
        self.tools
            .iter()
            .filter(|(_, tool)| tool.allowed(context))
            .map(|(spec, _)| spec.clone())
            .collect()
    }

    /// Calls a tool within its time. Called by the model's word alone, so what it may not or cannot call is an answer that it can read.
    ///
    /// # Errors
    /// Why there is no result.
    pub async fn call(&self, context: &ToolContext, call: &ToolCall) -> Result<String, ToolError> {
        let Some((spec, tool)) = self
            .tools
            .iter()
            .find(|(spec, tool)| spec.name == call.name && tool.allowed(context))
        else {
            return Err(ToolError::Failed("there is no such tool".to_owned()));
        };
        let limit = spec.policy.timeout.limit();
        match tokio::time::timeout(limit, tool.call(context, &call.arguments)).await {
            Ok(result) => result.map(cut),
            Err(_) => Err(ToolError::Failed(format!(
                "no result within {} s; try again later",
                limit.as_secs()
            ))),
        }
    }
}

fn cut(mut result: String) -> String {
    if result.len() > MAX_RESULT_BYTES {
        let mut end = MAX_RESULT_BYTES;
        while !result.is_char_boundary(end) {
            end -= 1;
        }
        result.truncate(end);
        result.push_str("\n[cut]");
    }
    result
}
