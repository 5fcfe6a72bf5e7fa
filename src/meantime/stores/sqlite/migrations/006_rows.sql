-- What a list shows and is searched by. Most tasks have no parent, so that its index costs the others nothing.

ALTER TABLE tasks ADD COLUMN kind TEXT;
ALTER TABLE tasks ADD COLUMN parent TEXT;
UPDATE tasks SET (kind, parent) = (SELECT looked(body, 4), looked(body, 5));
CREATE INDEX tasks_by_parent ON tasks (parent) WHERE parent IS NOT NULL;

-- Turns that told something, counted by thread: the last one, and the number of the turn that told a notice.
ALTER TABLE threads ADD COLUMN turns INTEGER NOT NULL DEFAULT 0;
ALTER TABLE threads ADD COLUMN turn TEXT;
ALTER TABLE notices ADD COLUMN turn_number INTEGER;
