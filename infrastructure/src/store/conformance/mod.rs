//! The suite that every store must pass: each test is a sentence that the ports promise, written against the ports alone.
//!
//! A store is held to it by [`conformance!`](crate::conformance), which makes a test of each function here:
//!
//! ```ignore
//! async fn open() -> (Arc<dyn Store>, impl Sized) { /* an empty store, and what must outlive it */ }
//! tidemark_infrastructure::conformance!(open);
//! ```
//!
//! To add a promise: a public function in the file of its port, with a name that says it, and a line in the list below; a test here fails
//! while the line is missing. What is particular to one store (opening, reopening, roles) is tested beside that store.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "this is a test suite that is compiled as a library, so that other crates can run it"
)]

pub mod cancel;
pub mod changes;
pub mod closing;
pub mod commit;
pub mod dropped;
pub mod embeddings;
pub mod ending;
pub mod expiry;
pub mod extraction;
pub mod fading;
pub mod forgetting;
pub mod idempotency;
pub mod index;
pub mod indexing;
pub mod jobs;
pub mod keys;
pub mod learning;
pub mod listing;
pub mod memories;
pub mod messages;
pub mod owners;
pub mod quarantine;
pub mod sessions;
pub mod superseding;
pub mod together;
pub mod tokens;
pub mod turns;
pub mod unindexed;
pub mod users;

mod world;

/// Makes a test of every promise, on stores that `open` makes.
///
/// `open` names an async function without arguments in the calling module. It returns an empty store and a value that is dropped after
/// the test.
#[macro_export]
macro_rules! conformance {
    ($open:ident) => {
        $crate::conformance! { @list tests $open }
    };
    (@list $($then:tt)+) => {
        $crate::conformance! { @$($then)+;
            changes {
                an_edit_is_a_new_version_that_is_found_by_its_words
                an_edit_of_what_has_moved_or_is_not_there_changes_nothing
                what_an_edit_says_of_a_key_ends_what_was_said_of_it
                what_a_fact_said_before_it_was_edited_is_believed_as_of_then
                what_a_fact_said_before_is_forgotten_by_itself_for_good
                an_edit_that_is_undone_leaves_its_message_to_teach
                messages_do_not_teach_again_what_an_edit_has_buried
                a_reverted_change_leaves_what_was_before_it
                what_a_reverted_change_had_learned_is_never_learned_again
                a_change_is_undone_once_and_as_a_whole
                an_import_is_undone_with_all_that_it_taught
                changes_are_listed_newest_first_in_parts_and_by_session
                no_change_keeps_the_words_of_what_is_gone
            }
            superseding {
                the_newest_value_holds_on_whatever_paths_they_come_and_in_whatever_order
                what_held_at_a_time_is_listed_as_of_it
                what_ended_a_fact_is_known_and_the_fact_is_a_new_version
                repeating_what_holds_adds_no_row_and_saying_it_anew_does
                a_fact_that_is_said_to_hold_earlier_holds_since_then
                another_key_or_another_owner_is_not_touched
                a_lower_trust_never_ends_what_a_higher_one_says
                what_a_withdrawn_message_had_ended_holds_again
                what_a_forgotten_or_expired_memory_had_ended_stays_ended
                a_consolidation_that_would_repeat_what_came_meanwhile_is_decided_again
                what_is_said_of_a_key_is_found_by_it
            }
            ending {
                what_ended_for_good_stays_so_whatever_is_said_meanwhile_and_taken_back
                an_end_that_was_shortened_for_good_stays_short
                what_an_edit_put_aside_for_good_stays_so_whatever_is_taken_back
                what_leaves_its_key_leaves_ended_what_it_had_ended
                what_left_its_key_and_is_gone_gives_nothing_back
            }
            quarantine {
                what_waits_is_kept_and_ends_nothing_on_whatever_path_it_comes
                no_prompt_knows_a_preference_or_a_key_that_waits
                saying_again_what_waits_gains_nothing
                two_that_say_the_same_at_once_wait_once
                what_is_confirmed_holds_from_then_on_and_its_revert_has_it_wait_again
                what_was_superseded_meanwhile_waits_again_when_its_confirmation_is_reverted
                an_index_pass_does_not_put_back_what_was_confirmed
                a_fact_that_is_worded_as_an_instruction_waits_and_leaves_its_key
                what_is_said_is_kept_though_the_same_words_wait_beside_it
            }
            owners {
                a_migrated_store_is_ready
                the_same_name_is_the_same_owner
                another_name_or_tenant_is_another_owner
                many_first_sights_at_once_make_one_owner
                a_number_means_nothing_in_another_tenant
                nobody_has_anything
            }
            sessions {
                a_new_session_is_read_as_it_was_made
                what_is_not_there_is_a_miss
                a_strangers_session_is_a_miss_and_stays_untouched
                a_change_touches_what_it_names_and_raises_the_version
                a_change_decided_on_an_older_version_is_stale_and_changes_nothing
                messages_move_the_time_of_a_session_but_not_its_version
                sessions_are_listed_by_their_last_change_newest_first
                a_walk_over_sessions_of_one_time_is_not_disturbed_by_new_ones
                a_page_that_ends_the_list_says_so
                a_title_is_found_by_its_letters_taken_literally
                titles_labels_and_channels_survive_whatever_they_hold
                deleting_removes_messages_turns_and_jobs_and_fences_the_runner
                deleting_and_forgetting_takes_what_was_learned_from_that_session_alone
                deleting_without_forgetting_keeps_every_memory
            }
            messages {
                imported_messages_are_read_as_they_were_given
                an_import_into_nothing_or_into_a_strangers_session_is_refused
                an_import_never_falls_into_a_running_turn
                an_import_enqueues_its_jobs
                messages_are_paged_upwards_from_a_number
                history_is_the_newest_before_a_number_in_ascending_order
                sessions_number_their_messages_apart
                numbers_have_no_gap_under_writers_at_once
                texts_survive_whatever_they_hold
                texts_of_a_hundred_thousand_characters_survive
            }
            together {
                many_turns_at_once_start_each_in_its_session
                turns_at_once_in_sessions_that_are_there_follow_what_was_said
                of_turns_at_once_in_one_session_one_starts_and_the_others_wait
                of_repetitions_at_once_one_is_made
                an_owners_bound_holds_against_many_that_start_at_once
                bounds_of_a_tenant_and_a_key_hold_against_many_that_start_at_once
                one_that_is_refused_among_many_takes_nothing_with_it
                many_answers_at_once_are_committed_each_with_its_own
                an_answer_that_is_committed_twice_at_once_is_there_once
                what_turns_are_made_from_is_read_at_once_as_one_by_one
            }
            tokens {
                a_user_a_key_and_a_tenant_may_use_so_many_tokens_a_day
                what_was_used_on_a_day_is_over_with_it
                a_turn_without_an_answer_counts_what_it_used_and_no_turn_is_cut
                tokens_are_counted_only_where_they_are_limited
                who_has_used_all_tokens_is_still_given_a_turn_that_is_known
                tokens_of_many_turns_that_end_at_once_are_all_counted
                an_erasure_leaves_what_a_tenant_and_its_keys_have_used_and_nobodys_name
            }
            turns {
                an_accepted_turn_is_queued_and_has_no_message_yet
                a_turn_of_a_new_session_makes_the_session
                a_refused_turn_of_a_new_session_leaves_no_session
                the_mode_that_a_turn_names_wins_over_its_sessions
                a_turn_for_nothing_or_for_a_strangers_session_is_refused
                a_strangers_turn_can_neither_be_read_nor_started_nor_cancelled
                a_full_queue_refuses_and_stores_nothing
                a_queue_for_nobody_still_lets_an_idle_session_begin
                the_queues_bound_holds_against_many_at_once
                an_owner_has_no_more_open_turns_than_allowed
                a_tenant_and_a_key_have_no_more_open_turns_than_allowed
                an_owners_bound_holds_against_many_sessions_at_once
                who_does_not_want_to_wait_is_refused_while_a_turn_is_open
                turns_of_a_session_start_one_after_another_in_their_order
                turns_start_in_the_order_of_their_acceptance_whatever_the_clocks_say
                a_start_takes_fence_and_numbers_and_stores_the_question
                of_many_starters_at_once_one_starts_one_turn
                sessions_with_a_waiting_turn_and_none_running_are_found
                waiting_and_lapsed_turns_of_every_tenant_are_found
                reserved_event_numbers_only_rise
                a_key_of_another_start_writes_nothing
                inputs_survive_whatever_they_hold
            }
            cancel {
                cancelling_a_waiting_turn_closes_it_and_the_next_one_starts
                cancelling_a_running_turn_marks_it_for_its_runner
                open_turns_are_those_that_have_not_ended_the_newest_first
                cancelling_what_has_ended_or_never_was_changes_nothing
                of_a_cancellation_and_a_start_at_once_each_is_told_what_happened
            }
            commit {
                a_tool_round_is_stored_in_protocol_order_before_the_next_step
                a_commit_stores_answer_state_usage_and_jobs_together
                a_commit_whose_answer_cannot_be_stored_changes_nothing
                a_commit_whose_job_cannot_be_enqueued_changes_nothing
                after_a_commit_nothing_else_may_write_to_the_turn
                jobs_of_a_refused_commit_are_not_enqueued
                a_runner_whose_lease_lapsed_unnoticed_still_commits
                of_a_commit_and_a_close_at_once_one_happens
                what_a_turn_keeps_survives_whatever_it_holds
            }
            closing {
                a_close_stores_what_was_shown_with_state_problem_and_jobs
                a_turn_that_showed_nothing_closes_without_a_message
                after_a_close_nothing_else_may_write_to_the_turn
                a_living_lease_protects_its_turn
                a_lapsed_lease_is_found_until_it_is_prolonged_or_the_turn_ends
                a_turn_closed_for_its_lapsed_lease_ends_above_every_reserved_number
                a_close_that_answers_open_calls_leaves_a_valid_transcript
                a_close_that_was_decided_before_the_late_runner_wrote_is_refused
                of_many_who_find_a_lapsed_lease_one_closes_the_turn
                a_replacement_removes_the_turn_and_what_came_after_it
                a_replacement_withdraws_what_was_learned_from_the_branch_alone
                a_replacement_sets_the_cursors_back_to_what_is_left
                a_replacement_voids_learning_that_has_read_what_it_removes
                only_a_started_turn_of_an_idle_session_can_be_replaced
                a_replacement_that_is_refused_removes_nothing
            }
            jobs {
                one_job_of_a_kind_is_pending_for_a_session
                many_enqueuers_at_once_leave_one_pending_job
                a_new_job_may_wait_while_one_of_its_kind_runs
                a_claim_takes_the_job_and_counts_the_attempt
                jobs_are_claimed_oldest_first_whoever_owns_them
                many_workers_at_once_never_claim_the_same_job
                a_lapsed_claim_is_given_to_another_and_the_first_has_lost
                a_lapsed_claim_that_nobody_took_is_still_valid
                a_claim_of_some_kinds_passes_over_the_others
                a_session_is_consolidated_and_extracted_by_one_worker_at_a_time
                a_renewed_claim_does_not_lapse
                a_claim_that_was_taken_over_cannot_be_renewed
                a_finished_job_is_gone_and_cannot_be_finished_again
                a_failure_that_is_retried_waits_its_time
                a_failure_that_is_retried_at_once_is_claimed_again
                a_failure_that_is_retried_merges_into_the_job_that_waits
                a_job_that_is_given_up_waits_for_a_person
                a_failed_job_does_not_keep_a_new_one_from_waiting
                a_retried_job_is_pending_with_fresh_attempts
                a_retried_job_gives_way_to_one_that_waits_already
                only_failed_jobs_are_retried
                failed_and_pending_jobs_can_be_dropped_but_not_running_ones
                jobs_are_listed_newest_first_by_state_and_page
                another_tenant_neither_sees_nor_touches_jobs
                a_tenant_sees_the_jobs_of_all_its_users
                jobs_are_counted_over_all_tenants_by_kind_and_state
            }
            learning {
                a_snapshot_is_of_the_session_as_it_is_now
                a_snapshot_of_nothing_or_of_a_strangers_session_is_a_miss
                taught_messages_tell_whether_their_turn_was_cancelled
                an_index_commit_stores_moves_and_removes_its_job_together
                indexing_the_same_messages_twice_stores_each_chunk_once
                a_forgotten_chunk_is_not_indexed_again
                a_message_does_not_teach_as_a_chunk_what_was_forgotten_as_a_fact
                an_index_decided_on_what_has_moved_is_a_conflict
                messages_that_arrive_meanwhile_are_no_conflict
                a_consolidation_stores_strengthens_and_moves_together
                a_consolidation_decided_on_what_has_moved_is_a_conflict
                a_consolidation_whose_known_memory_was_forgotten_is_a_conflict
                a_consolidation_whose_identity_was_taken_meanwhile_is_a_conflict
                a_chunk_of_the_same_words_does_not_stand_in_the_way_of_a_fact
                a_message_does_not_teach_again_what_was_forgotten
                a_claim_that_was_lost_applies_nothing
                learning_for_a_deleted_session_is_lost
                each_completed_turn_counts_once_for_each_memory_it_showed
                turns_that_did_not_complete_count_no_use
            }
            indexing {
                jobs_of_a_kind_and_owner_are_claimed_together
                what_was_begun_or_waits_or_belongs_to_another_is_not_claimed_with_others
                the_work_of_many_sessions_is_what_each_of_them_has
                indexes_are_applied_together_as_each_alone
                of_what_was_forgotten_nothing_is_indexed_with_others
                an_index_decided_on_before_an_erasure_is_a_conflict_and_others_are_not
                uses_are_counted_together_as_each_alone
                what_had_faded_is_told_again_by_uses_counted_together
                nothing_to_index_is_nothing_to_apply
            }
            extraction {
                a_consolidation_notes_what_a_model_has_yet_to_read
                of_many_unread_ranges_that_with_the_fewest_attempts_comes_first
                what_a_model_has_read_is_stored_and_no_longer_pending
                an_answer_that_is_still_bad_is_counted_and_its_job_waits_or_fails
                an_extraction_decided_on_what_has_moved_is_a_conflict
                a_message_of_which_something_was_forgotten_teaches_a_model_nothing
                what_a_model_worded_is_stored_once_beside_what_rules_found
                unread_messages_that_go_are_no_longer_to_be_read
                strangers_see_nothing_unread
                sessions_with_old_messages_are_to_be_consolidated
                a_consolidation_that_waits_runs_or_has_failed_is_not_looked_for_again
            }
            unindexed {
                what_is_committed_and_not_yet_indexed_is_told
                unindexed_messages_are_the_newest_and_whole
                what_is_indexed_is_no_longer_told
            }
            memories {
                a_memory_is_read_as_it_was_given
                every_scope_kind_layer_state_and_trust_is_kept
                the_same_content_again_is_the_same_memory
                the_answer_keeps_the_order_and_names_the_present_ones
                many_who_say_the_same_at_once_make_one_memory
                what_is_no_longer_told_does_not_stand_in_for_what_is_said_now
                owners_remember_apart
                a_strangers_memory_is_a_miss_everywhere
                memories_are_found_by_their_ids
                contents_survive_whatever_they_hold
                times_of_every_year_from_1_to_9999_survive
                preferences_are_the_recallable_ones_of_the_profile_newest_first
                memories_are_found_by_the_messages_behind_them_in_any_state
                memories_are_found_by_what_they_say_if_they_are_current_and_semantic
            }
            listing {
                a_list_keeps_what_the_filter_asks_for
                a_text_filter_is_taken_literally
                a_walk_over_memories_of_one_time_is_not_disturbed_by_new_ones
                a_list_of_a_session_holds_what_was_learned_in_it_or_given_for_it
            }
            forgetting {
                what_is_forgotten_is_gone_from_everywhere
                turns_show_no_longer_what_was_removed_since
                a_turn_that_ends_shows_nothing_that_was_removed_while_it_ran
                what_was_forgotten_can_be_said_anew
                only_the_version_that_was_seen_is_forgotten
                echoes_go_with_what_they_echo_and_are_not_learned_again
                what_is_buried_is_never_learned
                what_was_learned_meanwhile_from_buried_pairs_alone_goes_too
            }
            expiry {
                no_read_returns_what_has_expired
                each_write_of_memories_deletes_what_has_expired_by_its_time
                what_has_expired_can_be_learned_anew_but_not_said_again
                what_has_expired_can_neither_be_forgotten_nor_told_again
            }
            fading {
                what_has_faded_is_archived_as_one_change
                what_was_used_since_is_looked_at_again_later
                what_changed_since_it_was_looked_for_is_decided_on_as_it_is
                what_may_have_faded_is_told_in_parts_and_of_everybody
                nobody_archives_memories_of_somebody_else
                an_import_of_the_past_has_not_faded
                archiving_is_undone_as_a_whole_and_begins_anew
                what_has_faded_and_is_shown_in_a_turn_is_told_again
                what_was_archived_and_is_given_again_is_the_same_memory
                what_was_archived_and_is_said_again_is_the_same_memory
                a_chunk_in_the_archive_does_not_stand_in_the_way_of_a_statement
                replicas_that_sweep_at_once_archive_each_memory_once
            }
            index {
                whatever_writes_memories_is_followed
                a_number_is_raised_for_its_owner_alone
                an_owner_without_memories_has_nothing_to_follow
                parts_of_any_size_make_the_same_index
                who_knows_a_later_change_than_the_store_starts_anew
                ranking_over_what_was_followed_is_ranking_over_the_memories
                a_memory_is_found_by_the_request_after_it_was_given
                documents_and_speakers_survive_whatever_they_hold
                what_was_forgotten_of_a_message_is_told
                what_is_not_stored_yet_can_be_forgotten_before_it_is
            }
            embeddings {
                a_model_is_known_by_the_dimension_it_had_first
                of_many_that_adopt_a_model_at_once_one_is_right
                what_is_stored_can_be_enqueued_to_be_embedded_with_it
                memories_are_asked_for_until_the_model_has_been_asked_about_them
                vectors_are_followed_by_an_index_that_knows_their_memories
                a_vector_of_what_has_changed_or_gone_is_not_stored
                a_vector_goes_with_its_memory
                a_memory_that_says_something_else_loses_its_vector_and_is_embedded_anew
                who_has_lost_the_job_stores_and_drops_nothing
                vectors_of_models_that_were_adopted_earlier_are_dropped
                what_lies_before_a_mark_is_not_looked_at_again
                owners_with_something_to_do_are_found_until_it_is_enqueued_or_done
                a_postponed_job_waits_with_fresh_attempts
                speakers_are_those_by_whom_there_is_a_memory
            }
            idempotency {
                a_session_is_made_once_for_a_key_and_told_as_it_is_now
                a_key_with_another_body_is_a_mismatch_and_makes_nothing
                a_key_belongs_to_its_owner_and_operation
                a_key_is_kept_for_its_hours_and_free_afterwards
                a_turn_is_accepted_once_for_a_key_and_told_as_it_is_now
                a_replacement_is_done_once_for_a_key
                a_refused_turn_leaves_its_key_free
                a_turn_that_is_not_admitted_leaves_nothing_and_an_earlier_one_is_told
                memories_are_stored_once_for_a_key_and_told_in_their_order
                an_import_is_done_once_for_a_key_and_told_in_its_order
                without_a_key_nothing_is_repeated
                of_many_twins_at_once_one_makes_the_session
                of_many_twins_at_once_one_makes_the_turn_and_its_session
                of_many_twins_at_once_one_makes_the_import_and_the_memories
            }
            users {
                every_record_of_a_user_is_told_once_whatever_the_page
                what_is_told_of_a_record_is_what_was_stored
                an_unknown_user_is_not_made_by_looking
                an_erased_user_is_gone_and_the_others_are_not
                nothing_is_stored_for_an_erased_owner
            }
            keys {
                the_default_tenant_is_there_and_others_are_made_once
                a_key_is_found_by_its_id_alone_as_it_was_stored
                a_tenants_keys_are_listed_for_it_alone_newest_first
                a_key_that_was_rotated_ends_then_and_names_what_followed_it
                of_rotations_at_once_one_is_done
                a_key_is_taken_back_once_and_by_its_tenant_alone
                the_keys_of_an_erased_user_are_gone_and_no_others
                a_tenants_secret_of_passes_is_made_once_and_is_its_own
            }
        }
    };
    (@tests $open:ident; $($port:ident { $($promise:ident)+ })+) => {
        $(
            mod $port {
                $(
                    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                    async fn $promise() {
                        let (store, outlives) = super::$open().await;
                        $crate::store::conformance::$port::$promise(store).await;
                        drop(outlives);
                    }
                )+
            }
        )+
    };
    (@names; $($port:ident { $($promise:ident)+ })+) => {
        [$((stringify!($port), &[$(stringify!($promise)),+][..])),+]
    };
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_promise_is_in_the_list() {
        let sources = [
            include_str!("changes.rs"),
            include_str!("superseding.rs"),
            include_str!("ending.rs"),
            include_str!("quarantine.rs"),
            include_str!("owners.rs"),
            include_str!("sessions.rs"),
            include_str!("messages.rs"),
            include_str!("together.rs"),
            include_str!("tokens.rs"),
            include_str!("turns.rs"),
            include_str!("cancel.rs"),
            include_str!("commit.rs"),
            include_str!("closing.rs"),
            include_str!("jobs.rs"),
            include_str!("learning.rs"),
            include_str!("indexing.rs"),
            include_str!("extraction.rs"),
            include_str!("unindexed.rs"),
            include_str!("memories.rs"),
            include_str!("listing.rs"),
            include_str!("forgetting.rs"),
            include_str!("expiry.rs"),
            include_str!("fading.rs"),
            include_str!("index.rs"),
            include_str!("embeddings.rs"),
            include_str!("idempotency.rs"),
            include_str!("users.rs"),
            include_str!("keys.rs"),
        ];
        let listed = crate::conformance!(@list names);
        assert_eq!(listed.len(), sources.len());
        for ((port, promises), source) in listed.into_iter().zip(sources) {
            let written: Vec<&str> = source
                .lines()
                .filter_map(|line| line.strip_prefix("pub async fn ")?.split('(').next())
                .collect();
            assert_eq!(written, promises, "{port}");
        }
    }
}
