-- Questions to the history under a name, of those who have saved them. Two of the same name with
-- other roles or organisations are different people.
CREATE TABLE views (
  role TEXT NOT NULL,
  organization TEXT NOT NULL,
  author TEXT NOT NULL,
  name TEXT NOT NULL,
  is_shared INTEGER NOT NULL CHECK (is_shared IN (0, 1)),
  body TEXT NOT NULL,
  PRIMARY KEY (role, organization, author, name)
) STRICT, WITHOUT ROWID;
