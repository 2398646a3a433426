-- A touch is by a process of the run, or by nobody knows whom. What was witnessed before is taken as
-- the run's, as it was judged.
ALTER TABLE run_events ADD COLUMN is_attributed INTEGER NOT NULL DEFAULT 0
  CHECK (is_attributed IN (0, 1));
UPDATE run_events SET is_attributed = 1 WHERE kind = 1;
ALTER TABLE run_nodes ADD COLUMN observed_touch_us INTEGER;
UPDATE runs SET body = json_set(
  body, '$.observed_touch', NULL, '$.first_touch',
  CASE WHEN json_extract(body, '$.first_touch_us') IS NULL THEN NULL
       ELSE json_object('at_us', json_extract(body, '$.first_touch_us'), 'uncertainty_us',
                        json_extract(body, '$.first_touch_uncertainty_us')) END);
