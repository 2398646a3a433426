-- When an entry was withdrawn, for questions; filled when facts are made anew (facts version 2).
ALTER TABLE entry_facts ADD COLUMN withdrawn_at_us INTEGER;
