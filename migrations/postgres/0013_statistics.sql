-- What the planner knows of tables that have just been filled.

-- Analyzes tables that hold at least that many rows and were never analyzed; how many those were. Who finds another one at it leaves it.
CREATE FUNCTION tidemark_analyze_unseen(from_rows bigint)
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp
AS $$
DECLARE
    unseen name;
    done bigint := 0;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext('tidemark_analyze_unseen')) THEN
        RETURN 0;
    END IF;
    FOR unseen IN
        SELECT s.relname FROM pg_stat_user_tables s
        WHERE s.schemaname = 'public' AND s.last_analyze IS NULL AND s.last_autoanalyze IS NULL AND s.n_mod_since_analyze >= from_rows
    LOOP
        EXECUTE format('ANALYZE public.%I', unseen);
        done := done + 1;
    END LOOP;
    RETURN done;
END
$$;
REVOKE ALL ON FUNCTION tidemark_analyze_unseen(bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tidemark_analyze_unseen(bigint) TO tidemark_app;

-- How few sessions have messages that are not indexed yet: of a comparison of two columns the planner expects a third.
ALTER TABLE sessions ADD COLUMN unindexed boolean NOT NULL GENERATED ALWAYS AS (indexed_seq < message_count) STORED;
DROP INDEX sessions_unindexed;
CREATE INDEX sessions_unindexed ON sessions (tenant_id, owner_id, id) WHERE unindexed;
