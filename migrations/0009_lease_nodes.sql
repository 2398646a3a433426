-- Leases of nodes, and what has left memory but is kept.
CREATE TABLE allocations (
  id INTEGER NOT NULL PRIMARY KEY,
  state TEXT NOT NULL CHECK (state IN ('REQUESTED', 'GRANTED', 'ACTIVE', 'RELEASING', 'ENDED')),
  body TEXT NOT NULL
) STRICT;

ALTER TABLE workers ADD COLUMN allocation_id INTEGER REFERENCES allocations (id);
ALTER TABLE workers ADD COLUMN is_forgotten INTEGER NOT NULL DEFAULT 0 CHECK (is_forgotten IN (0, 1));
ALTER TABLE tokens ADD COLUMN is_forgotten INTEGER NOT NULL DEFAULT 0 CHECK (is_forgotten IN (0, 1));
ALTER TABLE requests ADD COLUMN at_us INTEGER NOT NULL DEFAULT 0;

CREATE INDEX workers_by_allocation ON workers (allocation_id) WHERE allocation_id IS NOT NULL;

-- When they were answered is not known: as late as the last event at most.
UPDATE requests SET at_us = (SELECT COALESCE(MAX(at_us), 0) FROM events);
