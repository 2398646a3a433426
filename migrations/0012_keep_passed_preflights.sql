-- What the nodes of sets that have not ended were found to be: for the record of each run on them.
CREATE TABLE passed_preflights (
  submission_id INTEGER NOT NULL REFERENCES submissions (id) DEFERRABLE INITIALLY DEFERRED,
  node TEXT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (submission_id, node)
) STRICT, WITHOUT ROWID;
