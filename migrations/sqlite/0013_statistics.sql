-- What the planner knows of tables that have just been filled: nothing to do here. SQLite plans by the indexes there are, and keeps no plan
-- that a fuller table would make slow (`sqlite/tests/plans.rs`).
SELECT 1;
