-- Counters of what is over, so that the statistics of a long history cost as little as those of a short one.
-- What is active, and what is still to be told, is counted in its own small index instead.
-- The writer adds to them, once a group of changes; what is deleted leaves them by a trigger.

CREATE TABLE ended_counts (
  status  TEXT    NOT NULL,
  resumed INTEGER NOT NULL,
  agent   TEXT    NOT NULL,
  hidden  INTEGER NOT NULL,
  tasks   INTEGER NOT NULL,
  timed   INTEGER NOT NULL,  -- tasks that have a duration
  seconds REAL    NOT NULL,  -- the sum of their durations
  PRIMARY KEY (status, resumed, agent, hidden)
) WITHOUT ROWID;

CREATE TABLE settled_counts (
  state   TEXT    PRIMARY KEY,
  notices INTEGER NOT NULL
) WITHOUT ROWID;

INSERT INTO ended_counts
SELECT status, run > 1, coalesce(agent, ''), hidden, count(*), count(duration), total(duration) FROM tasks
WHERE status IN ('completed', 'failed', 'cancelled', 'timed_out', 'lost') GROUP BY 1, 2, 3, 4;

INSERT INTO settled_counts VALUES
  ('told', (SELECT count(*) FROM notices WHERE state = 'told')),
  ('muted', (SELECT count(*) FROM notices WHERE state = 'muted'));

CREATE TRIGGER ended_task_deleted AFTER DELETE ON tasks
WHEN OLD.status IN ('completed', 'failed', 'cancelled', 'timed_out', 'lost') BEGIN
  UPDATE ended_counts SET tasks = tasks - 1, timed = timed - (OLD.duration IS NOT NULL),
    seconds = seconds - coalesce(OLD.duration, 0)
  WHERE status = OLD.status AND resumed = (OLD.run > 1) AND agent = coalesce(OLD.agent, '')
    AND hidden = OLD.hidden;
END;

CREATE TRIGGER settled_notice_deleted AFTER DELETE ON notices WHEN OLD.state IN ('told', 'muted') BEGIN
  UPDATE settled_counts SET notices = notices - 1 WHERE state = OLD.state;
END;

-- What a turn holds is found however much is unread beside it.
CREATE INDEX notices_leased ON notices (thread, turn) WHERE state = 'leased';

-- Checksums of what these rows keep for good; NULL in rows from before. Bodies carry their own, see checksums.py.
ALTER TABLE notices ADD COLUMN sum INTEGER;
ALTER TABLE events ADD COLUMN sum INTEGER;

-- How often the WAL was brought into the database. The lock repeats it, so that an older copy is known for one.
CREATE TABLE checkpoints (
  number INTEGER NOT NULL
);
INSERT INTO checkpoints VALUES (0);

-- A lease takes back what was parked, and a reminder counts it, however much is unread beside it. Few notices
-- are ever parked, so that the index costs the others nothing.

CREATE INDEX notices_parked ON notices (thread) WHERE state = 'parked';
