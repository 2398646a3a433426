-- The event log becomes a chain of hashes (server/store/chain.h): `chain` of each event covers its row
-- and the chain before it, `lines` the rows of run_events that it is about. The program fills in both
-- for the events that are there. `identity` tells this database from any other; once a high-water
-- mark has been written beside it (is_marked), it is not opened without one.
ALTER TABLE events ADD COLUMN lines BLOB NOT NULL DEFAULT x'';
ALTER TABLE events ADD COLUMN chain BLOB NOT NULL DEFAULT x'';
CREATE TABLE log_identity (
  id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
  identity TEXT NOT NULL,
  is_marked INTEGER NOT NULL CHECK (is_marked IN (0, 1))
) STRICT;
INSERT INTO log_identity (id, identity, is_marked) VALUES (1, lower(hex(randomblob(16))), 0);
