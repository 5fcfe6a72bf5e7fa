-- What people look for: who works, what it is called, where, and how long it took.
-- `words` is the title with its case folded, so that a search finds every letter, not ASCII alone.

ALTER TABLE tasks ADD COLUMN agent TEXT;
ALTER TABLE tasks ADD COLUMN words TEXT;
ALTER TABLE tasks ADD COLUMN session TEXT;
ALTER TABLE tasks ADD COLUMN duration REAL;
UPDATE tasks SET (agent, words, session, duration) =
  (SELECT looked(body, 0), looked(body, 1), looked(body, 2), looked(body, 3));
-- Few are cleared: what is shown is counted as all of an index, less these.
CREATE INDEX tasks_hidden ON tasks (seq) WHERE hidden = 1;
CREATE INDEX tasks_by_session ON tasks (session) WHERE session IS NOT NULL;
