-- Who may see a submission, apart from its body, so that a question may look at all rows: its
-- organisation, and from when on anybody may see it (0: never). What was imported before stays with
-- its organisation until an operator publishes it.
CREATE TABLE disclosures (
  submission_id INTEGER NOT NULL PRIMARY KEY REFERENCES submissions (id) DEFERRABLE INITIALLY DEFERRED,
  organization TEXT NOT NULL,
  published_at_us INTEGER NOT NULL
) STRICT;

INSERT INTO disclosures (submission_id, organization, published_at_us)
  SELECT id, organization, 0 FROM submissions;
