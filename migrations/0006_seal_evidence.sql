-- What came of a run when its node had ended is kept apart from what was judged. A late artifact may
-- have the name of a judged one.
ALTER TABLE run_events ADD COLUMN is_late INTEGER NOT NULL DEFAULT 0 CHECK (is_late IN (0, 1));
ALTER TABLE artifacts RENAME TO artifacts_before;
CREATE TABLE artifacts (
  id INTEGER NOT NULL PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES runs (id),
  file_name TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  is_late INTEGER NOT NULL CHECK (is_late IN (0, 1))
) STRICT;
INSERT INTO artifacts (id, run_id, file_name, sha256, size_bytes, is_late)
SELECT id, run_id, file_name, sha256, size_bytes, 0 FROM artifacts_before;
DROP TABLE artifacts_before;
CREATE UNIQUE INDEX artifacts_judged ON artifacts (run_id, file_name) WHERE is_late = 0;
CREATE INDEX artifacts_by_sha256 ON artifacts (sha256);
