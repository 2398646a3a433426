-- What a node's clock was when it started its part of a run, and what it witnessed by that clock.
ALTER TABLE run_nodes ADD COLUMN clock_offset_us INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run_nodes ADD COLUMN clock_offset_uncertainty_us INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run_nodes ADD COLUMN first_touch_us INTEGER;
UPDATE runs SET body = json_set(body, '$.first_touch_uncertainty_us', 0);
