-- Each submission wrote into indexes that no question needs: lists by organisation, system, round
-- and benchmark walk those of entry_facts, and nothing asks for the runs of an organisation.
DROP INDEX submissions_by_organization;
DROP INDEX submissions_by_system;
DROP INDEX submissions_by_benchmark;
DROP INDEX submissions_by_round;
DROP INDEX runs_by_organization;

-- By benchmark alone the entries come in their order.
DROP INDEX entry_facts_by_benchmark;
CREATE INDEX entry_facts_by_benchmark ON entry_facts (benchmark);

-- Runs that have not ended have no minutes.
DROP INDEX run_facts_by_minutes;
CREATE INDEX run_facts_by_minutes ON run_facts (seconds / 60.0) WHERE seconds / 60.0 IS NOT NULL;
