-- What was said to an agent while it ran is its next run: those that are still to be begun are few.

ALTER TABLE tasks ADD COLUMN follows INTEGER NOT NULL DEFAULT 0 CHECK (follows IN (0, 1));
CREATE INDEX tasks_following ON tasks (seq) WHERE follows = 1;
