-- A request is named by who asks as what: principals of the same name in two organisations are
-- different people. Who made the requests so far is known by name only, so a submission is found
-- again by its organisation's submitter and by an operator of that name, a token by an operator.
CREATE TABLE requests_by_standing (
  role TEXT NOT NULL,
  organization TEXT NOT NULL,
  principal TEXT NOT NULL,
  request_id TEXT NOT NULL,
  made TEXT NOT NULL,
  PRIMARY KEY (role, organization, principal, request_id)
) STRICT, WITHOUT ROWID;

INSERT INTO requests_by_standing (role, organization, principal, request_id, made)
SELECT principal, '', '', request_id, made
FROM requests
WHERE principal IN (':import', ':borrowing');

INSERT INTO requests_by_standing (role, organization, principal, request_id, made)
SELECT 'operator', '', principal, request_id, made
FROM requests
WHERE principal NOT IN (':import', ':borrowing');

INSERT INTO requests_by_standing (role, organization, principal, request_id, made)
SELECT 'submitter', submissions.organization, requests.principal, requests.request_id, requests.made
FROM requests
JOIN submissions ON submissions.id = CAST(substr(requests.made, 3) AS INTEGER)
WHERE requests.made LIKE 'e-%' AND requests.principal NOT IN (':import', ':borrowing');

DROP TABLE requests;
ALTER TABLE requests_by_standing RENAME TO requests;
