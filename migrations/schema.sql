-- Generated: the schema after all migrations. See migrate_test.cc.

CREATE TABLE allocations (
  id INTEGER NOT NULL PRIMARY KEY,
  state TEXT NOT NULL CHECK (state IN ('REQUESTED', 'GRANTED', 'ACTIVE', 'RELEASING', 'ENDED')),
  body TEXT NOT NULL
) STRICT;

CREATE TABLE artifacts (
  id INTEGER NOT NULL PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES runs (id),
  file_name TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  is_late INTEGER NOT NULL CHECK (is_late IN (0, 1))
) STRICT;

CREATE INDEX artifacts_by_sha256 ON artifacts (sha256);

CREATE UNIQUE INDEX artifacts_judged ON artifacts (run_id, file_name) WHERE is_late = 0;

CREATE TABLE borrowings (
  own_id INTEGER NOT NULL PRIMARY KEY,
  submission_id INTEGER NOT NULL REFERENCES submissions (id) DEFERRABLE INITIALLY DEFERRED
) STRICT;

CREATE TABLE counters (
  name TEXT NOT NULL PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE datasets (
  id TEXT NOT NULL PRIMARY KEY,
  body TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE disclosures (
  submission_id INTEGER NOT NULL PRIMARY KEY REFERENCES submissions (id) DEFERRABLE INITIALLY DEFERRED,
  organization TEXT NOT NULL,
  published_at_us INTEGER NOT NULL
) STRICT;

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
, withdrawn_at_us INTEGER) STRICT;

CREATE INDEX entry_facts_by_benchmark ON entry_facts (benchmark);

CREATE INDEX entry_facts_by_organization ON entry_facts (organization);

CREATE INDEX entry_facts_by_round ON entry_facts (round);

CREATE INDEX entry_facts_by_system ON entry_facts (system);

CREATE TABLE events (
  seq INTEGER NOT NULL PRIMARY KEY,
  at_us INTEGER NOT NULL,
  type TEXT NOT NULL,
  version INTEGER NOT NULL,
  principal TEXT NOT NULL,
  submission_id INTEGER,
  run_id INTEGER,
  is_change INTEGER NOT NULL CHECK (is_change IN (0, 1)),
  body TEXT NOT NULL
, lines BLOB NOT NULL DEFAULT x'', chain BLOB NOT NULL DEFAULT x'') STRICT;

CREATE INDEX events_by_submission ON events (submission_id, seq) WHERE submission_id IS NOT NULL;

CREATE INDEX events_of_changes ON events (seq) WHERE is_change = 1;

CREATE TABLE hyperparameters (
  entry_id INTEGER NOT NULL REFERENCES entry_facts (id),
  key TEXT NOT NULL,
  number REAL,
  text TEXT,
  PRIMARY KEY (entry_id, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX hyperparameters_by_key ON hyperparameters (key, number);

CREATE TABLE imports (
  round TEXT NOT NULL,
  source_path TEXT NOT NULL,
  submission_id INTEGER NOT NULL REFERENCES submissions (id) DEFERRABLE INITIALLY DEFERRED,
  PRIMARY KEY (round, source_path)
) STRICT, WITHOUT ROWID;

CREATE TABLE log_identity (
  id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
  identity TEXT NOT NULL,
  is_marked INTEGER NOT NULL CHECK (is_marked IN (0, 1))
) STRICT;

CREATE TABLE node_rates (
  node_type TEXT NOT NULL,
  check_name TEXT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (node_type, check_name)
) STRICT, WITHOUT ROWID;

CREATE TABLE passed_preflights (
  submission_id INTEGER NOT NULL REFERENCES submissions (id) DEFERRABLE INITIALLY DEFERRED,
  node TEXT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (submission_id, node)
) STRICT, WITHOUT ROWID;

CREATE TABLE "requests" (
  role TEXT NOT NULL,
  organization TEXT NOT NULL,
  principal TEXT NOT NULL,
  request_id TEXT NOT NULL,
  made TEXT NOT NULL, at_us INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (role, organization, principal, request_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE rule_packs (
  digest TEXT NOT NULL PRIMARY KEY,
  pack TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE run_events (
  run_id INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  node_rank INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  line INTEGER NOT NULL,
  text BLOB NOT NULL,
  wall_us INTEGER NOT NULL,
  mono_ns INTEGER NOT NULL,
  receive_us INTEGER NOT NULL,
  finding TEXT, is_late INTEGER NOT NULL DEFAULT 0 CHECK (is_late IN (0, 1)), is_attributed INTEGER NOT NULL DEFAULT 0
  CHECK (is_attributed IN (0, 1)),
  PRIMARY KEY (run_id, ordinal)
) STRICT, WITHOUT ROWID;

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

CREATE INDEX run_facts_by_minutes ON run_facts (seconds / 60.0) WHERE seconds / 60.0 IS NOT NULL;

CREATE INDEX run_facts_by_organization ON run_facts (organization);

CREATE INDEX run_facts_by_round ON run_facts (round);

CREATE INDEX run_facts_by_system ON run_facts (system);

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

CREATE TABLE run_nodes (
  run_id INTEGER NOT NULL REFERENCES runs (id),
  node_rank INTEGER NOT NULL,
  worker TEXT NOT NULL,
  phase TEXT NOT NULL CHECK (phase IN ('NONE', 'EXECUTING', 'FINISHED')),
  exit_code INTEGER NOT NULL,
  reason TEXT NOT NULL,
  is_lost INTEGER NOT NULL CHECK (is_lost IN (0, 1)),
  is_released INTEGER NOT NULL CHECK (is_released IN (0, 1)),
  last_seq INTEGER NOT NULL, clock_offset_us INTEGER NOT NULL DEFAULT 0, clock_offset_uncertainty_us INTEGER NOT NULL DEFAULT 0, first_touch_us INTEGER, observed_touch_us INTEGER,
  PRIMARY KEY (run_id, node_rank)
) STRICT, WITHOUT ROWID;

CREATE TABLE runs (
  id INTEGER NOT NULL PRIMARY KEY,
  submission_id INTEGER NOT NULL REFERENCES submissions (id),
  number INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('QUEUED', 'ASSIGNED', 'RUNNING', 'UPLOADING', 'SUCCEEDED', 'FAILED', 'CANCELLED')),
  organization TEXT NOT NULL,
  body TEXT NOT NULL,
  UNIQUE (submission_id, number)
) STRICT;

CREATE INDEX runs_by_state ON runs (state);

CREATE TABLE submissions (
  id INTEGER NOT NULL PRIMARY KEY,
  state TEXT NOT NULL CHECK (state IN ('OPEN', 'RUNNING', 'CHECKING', 'VALID', 'INVALID', 'CANCELLED')),
  organization TEXT NOT NULL,
  system TEXT NOT NULL,
  benchmark TEXT NOT NULL,
  division TEXT NOT NULL,
  round TEXT NOT NULL,
  created_at_us INTEGER NOT NULL,
  ended_at_us INTEGER NOT NULL,
  body TEXT NOT NULL
) STRICT;

CREATE INDEX submissions_by_state ON submissions (state);

CREATE TABLE tokens (
  id INTEGER NOT NULL PRIMARY KEY,
  secret_sha256 TEXT NOT NULL,
  body TEXT NOT NULL
, is_forgotten INTEGER NOT NULL DEFAULT 0 CHECK (is_forgotten IN (0, 1))) STRICT;

CREATE TABLE views (
  role TEXT NOT NULL,
  organization TEXT NOT NULL,
  author TEXT NOT NULL,
  name TEXT NOT NULL,
  is_shared INTEGER NOT NULL CHECK (is_shared IN (0, 1)),
  body TEXT NOT NULL,
  PRIMARY KEY (role, organization, author, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE workers (
  name TEXT NOT NULL PRIMARY KEY,
  state TEXT NOT NULL CHECK (state IN ('ALIVE', 'SUSPECT', 'LOST', 'DRAINING', 'GONE')),
  run_id INTEGER REFERENCES runs (id),
  body TEXT NOT NULL
, allocation_id INTEGER REFERENCES allocations (id), is_forgotten INTEGER NOT NULL DEFAULT 0 CHECK (is_forgotten IN (0, 1))) STRICT, WITHOUT ROWID;

CREATE INDEX workers_by_allocation ON workers (allocation_id) WHERE allocation_id IS NOT NULL;
