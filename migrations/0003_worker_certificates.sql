-- From which generation on a worker's certificates are accepted. A program that does not look would
-- let revoked ones in, so it must not open the database any more.
UPDATE workers SET body = json_set(body, '$.certificate_generation', 0,
                                   '$.certificates_revoked_at_us', 0);
