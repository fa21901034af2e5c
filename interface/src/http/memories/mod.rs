//! Memories: what is remembered.

pub mod create;
pub mod delete;
pub mod get;
pub mod history;
pub mod list;
pub mod recall;
pub mod update;
pub mod view;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;

/// The operations.
pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(create::create_memories, list::list_memories))
        .routes(routes!(recall::recall_memories))
        .routes(routes!(
            get::get_memory,
            update::update_memory,
            delete::delete_memory
        ))
        .routes(routes!(history::get_memory_history))
}
