-- The rules of every round that a submission may have been accepted by, once for each digest.
CREATE TABLE rule_packs (
  digest TEXT NOT NULL PRIMARY KEY,
  pack TEXT NOT NULL
) STRICT, WITHOUT ROWID;
