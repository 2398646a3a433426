-- What questions to the history compare, order and group by, in columns of their own. Written in
-- the commit of the event that changes an entry or run, and made anew from bodies when a program
-- finds them of an earlier version (counters, 'facts_version').

-- A row per submission. From epochs on: of its runs, once it has ended.
CREATE TABLE entry_facts (
  id INTEGER NOT NULL PRIMARY KEY REFERENCES submissions (id),
  organization TEXT NOT NULL,
  system TEXT NOT NULL,
  benchmark TEXT NOT NULL,
  division TEXT NOT NULL,
  round TEXT NOT NULL,
  category TEXT,
  scaling TEXT,
  metric TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('open', 'running', 'checking', 'valid', 'invalid', 'cancelled')),
  minutes REAL,
  normalized_minutes REAL,
  models_per_minute REAL,
  verdict TEXT,
  node_count INTEGER NOT NULL,
  ranks_per_node INTEGER NOT NULL,
  run_count INTEGER NOT NULL,
  is_imported INTEGER NOT NULL CHECK (is_imported IN (0, 1)),
  is_mlperf_result INTEGER NOT NULL CHECK (is_mlperf_result IN (0, 1)),
  is_staging_timed INTEGER NOT NULL CHECK (is_staging_timed IN (0, 1)),
  dataset TEXT,
  backend TEXT,
  submitter TEXT,
  rules_digest TEXT,
  created_at_us INTEGER NOT NULL,
  ended_at_us INTEGER,
  published_at_us INTEGER,
  epochs REAL,
  epoch_seconds REAL,
  quality REAL,
  staging_seconds REAL,
  energy_joules REAL,
  accelerators INTEGER,
  batch INTEGER,
  run_start_us INTEGER,
  is_converged INTEGER,
  is_compliant INTEGER,
  converged_count INTEGER
) STRICT;

CREATE INDEX entry_facts_by_benchmark ON entry_facts (benchmark, round);

CREATE INDEX entry_facts_by_organization ON entry_facts (organization);

CREATE INDEX entry_facts_by_round ON entry_facts (round);

CREATE INDEX entry_facts_by_system ON entry_facts (system);

-- A row per run, with what its entry is asked for most.
CREATE TABLE run_facts (
  id INTEGER NOT NULL PRIMARY KEY REFERENCES runs (id),
  entry_id INTEGER NOT NULL REFERENCES entry_facts (id),
  number INTEGER NOT NULL,
  organization TEXT NOT NULL,
  system TEXT NOT NULL,
  benchmark TEXT NOT NULL,
  division TEXT NOT NULL,
  round TEXT NOT NULL,
  published_at_us INTEGER,
  state TEXT NOT NULL CHECK (state IN ('queued', 'assigned', 'running', 'uploading', 'succeeded', 'failed', 'cancelled')),
  state_reason TEXT,
  seconds REAL,
  epochs INTEGER,
  epoch_seconds REAL,
  quality REAL,
  staging_seconds REAL,
  energy_joules REAL,
  touch_ms REAL,
  touch_assurance TEXT,
  node_count INTEGER,
  accelerators INTEGER,
  batch INTEGER,
  seed INTEGER,
  exit_code INTEGER,
  is_converged INTEGER,
  is_compliant INTEGER,
  run_start_us INTEGER,
  created_at_us INTEGER NOT NULL,
  started_at_us INTEGER,
  ended_at_us INTEGER,
  finding_count INTEGER NOT NULL
) STRICT;

CREATE INDEX run_facts_by_benchmark ON run_facts (benchmark, round);

CREATE INDEX run_facts_by_entry ON run_facts (entry_id);

CREATE INDEX run_facts_by_organization ON run_facts (organization);

CREATE INDEX run_facts_by_round ON run_facts (round);

CREATE INDEX run_facts_by_minutes ON run_facts (seconds / 60.0);

CREATE INDEX run_facts_by_system ON run_facts (system);

-- Of submissions. A number has no text, and a text no number; true and false are texts.
CREATE TABLE hyperparameters (
  entry_id INTEGER NOT NULL REFERENCES entry_facts (id),
  key TEXT NOT NULL,
  number REAL,
  text TEXT,
  PRIMARY KEY (entry_id, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX hyperparameters_by_key ON hyperparameters (key, number);

-- Of runs, and of sets as a whole: run_id is 0.
CREATE TABLE run_findings (
  entry_id INTEGER NOT NULL REFERENCES entry_facts (id),
  run_id INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  rule TEXT NOT NULL,
  severity TEXT NOT NULL CHECK (severity IN ('error', 'warning')),
  class TEXT,
  key TEXT,
  line INTEGER,
  expected TEXT,
  found TEXT,
  section TEXT,
  remedy TEXT,
  PRIMARY KEY (entry_id, run_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE INDEX run_findings_by_rule ON run_findings (rule);

CREATE INDEX run_findings_by_run ON run_findings (run_id, rule);
