-- What nodes of one type have reached in their last pre-flights.
CREATE TABLE node_rates (
  node_type TEXT NOT NULL,
  check_name TEXT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (node_type, check_name)
) STRICT, WITHOUT ROWID;
