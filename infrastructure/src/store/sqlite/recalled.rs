//! What turns have shown: copies of memories, which go when the memories go.

use sqlx::SqliteConnection;
use tidemark_application::ports::store::StoreResult;
use tidemark_domain::ids::Owner;

use super::changes::Change;
use super::errors::store_error;
use super::rows::owned;
use super::statements::statements;

/// The id of a memory among those that a turn has shown.
macro_rules! shown_id {
    () => {
        "unhex(replace(r.value ->> 'id', '-', ''))"
    };
}

/// What was removed with change ?3, and the ids ?4.
macro_rules! gone {
    () => {
        "(SELECT d.memory_id FROM memory_removals d WHERE d.tenant_id = ?1 AND d.owner_id = ?2 AND d.change = ?3 \
          UNION ALL SELECT unhex(g.value) FROM json_each(?4) g)"
    };
}

statements! {
    WITHDRAW = concat!(
        "UPDATE turns SET recalled = ( \
             SELECT json_group_array(json(r.value)) FROM json_each(turns.recalled) r WHERE ", shown_id!(), " NOT IN ", gone!(), ") \
         WHERE tenant_id = ?1 AND owner_id = ?2 AND recalled <> '[]' AND EXISTS ( \
             SELECT 1 FROM json_each(turns.recalled) r WHERE ", shown_id!(), " IN ", gone!(), ")");
}

/// Of the memories in a parameter those that were not removed since they were found. One that is found before it is stored is only known by
/// its tombstone.
macro_rules! kept_sql {
    ($recalled:literal) => {
        concat!(
            "(SELECT json_group_array(json(r.value)) FROM (SELECT value, unhex(replace(value ->> 'id', '-', '')) AS id FROM json_each(",
            $recalled,
            ")) r WHERE EXISTS (SELECT 1 FROM memories m WHERE m.tenant_id = ?1 AND m.owner_id = ?2 AND m.id = r.id) \
                 OR NOT EXISTS (SELECT 1 FROM memory_removals d WHERE d.tenant_id = ?1 AND d.owner_id = ?2 AND d.memory_id = r.id) \
                 AND NOT EXISTS (SELECT 1 FROM tombstones b WHERE b.tenant_id = ?1 AND b.owner_id = ?2 AND b.memory_id = r.id))"
        )
    };
}
pub(super) use kept_sql;

/// Takes what this change has removed out of the turns that have shown it, and what has these ids (JSON, hexadecimal).
pub(super) async fn withdraw(
    connection: &mut SqliteConnection,
    owner: Owner,
    change: &Change,
    ids: &str,
) -> StoreResult<()> {
    owned(WITHDRAW, owner)
        .bind(change.number())
        .bind(ids)
        .execute(connection)
        .await
        .map_err(store_error)?;
    Ok(())
}
