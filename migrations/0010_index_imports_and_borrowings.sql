-- Imports and borrowings have an index each; they were rows of requests that nobody had made.
CREATE TABLE imports (
  round TEXT NOT NULL,
  source_path TEXT NOT NULL,
  submission_id INTEGER NOT NULL REFERENCES submissions (id) DEFERRABLE INITIALLY DEFERRED,
  PRIMARY KEY (round, source_path)
) STRICT, WITHOUT ROWID;

-- In the place of `own_id` this submission borrows.
CREATE TABLE borrowings (
  own_id INTEGER NOT NULL PRIMARY KEY,
  submission_id INTEGER NOT NULL REFERENCES submissions (id) DEFERRABLE INITIALLY DEFERRED
) STRICT;

INSERT INTO imports (round, source_path, submission_id)
  SELECT submissions.round, json_extract(body, '$.source_path'), id
  FROM requests JOIN submissions ON id = CAST(substr(made, 3) AS INTEGER)
  WHERE role = ':import';

INSERT INTO borrowings (own_id, submission_id)
  SELECT CAST(substr(request_id, 3) AS INTEGER), CAST(substr(made, 3) AS INTEGER)
  FROM requests WHERE role = ':borrowing';

DELETE FROM requests WHERE role IN (':import', ':borrowing');
