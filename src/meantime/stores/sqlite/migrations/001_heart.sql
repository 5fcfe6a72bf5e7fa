-- The ledger. Statuses and states repeat kernel/lifecycle.py and kernel/notices.py; a test compares them.

CREATE TABLE tasks (
  seq       INTEGER PRIMARY KEY,
  id        TEXT    NOT NULL UNIQUE,
  thread    TEXT    NOT NULL,
  status    TEXT    NOT NULL CHECK (status IN
              ('queued','running','waiting','cancelling','completed','failed','cancelled','timed_out','lost')),
  version   INTEGER NOT NULL CHECK (version >= 1),
  run       INTEGER NOT NULL CHECK (run >= 1),
  batch     TEXT,
  tool_call TEXT,
  hidden    INTEGER NOT NULL DEFAULT 0 CHECK (hidden IN (0, 1)),
  updated   REAL    NOT NULL,
  body      BLOB    NOT NULL
);
CREATE INDEX tasks_by_thread ON tasks (thread, status, seq);
CREATE INDEX tasks_by_status ON tasks (status, seq);
CREATE INDEX tasks_by_batch ON tasks (batch) WHERE batch IS NOT NULL;
CREATE UNIQUE INDEX tasks_by_call ON tasks (thread, tool_call) WHERE tool_call IS NOT NULL;

-- An earlier run of a resumed task, as its ending left it.
CREATE TABLE runs (
  task_id TEXT    NOT NULL,
  run     INTEGER NOT NULL,
  body    BLOB    NOT NULL,
  PRIMARY KEY (task_id, run)
) WITHOUT ROWID;

-- Completion numbers are given here: the order in which a thread is told.
CREATE TABLE threads (
  id      TEXT    PRIMARY KEY,
  ended   INTEGER NOT NULL DEFAULT 0,
  claimed REAL    NOT NULL DEFAULT 0
) WITHOUT ROWID;

CREATE TABLE notices (
  thread     TEXT    NOT NULL,
  number     INTEGER NOT NULL,
  task       INTEGER NOT NULL,  -- tasks.seq: it grows, so that new notices lie together, which random ids do not
  run        INTEGER NOT NULL,
  state      TEXT    NOT NULL CHECK (state IN ('unread','leased','told','parked','muted')),
  turn       TEXT    CHECK (turn IS NOT NULL OR state != 'leased'),
  deliveries INTEGER NOT NULL DEFAULT 0,
  failures   INTEGER NOT NULL DEFAULT 0,
  parked_for TEXT    CHECK ((parked_for IS NOT NULL) = (state = 'parked')),
  at         REAL    NOT NULL,
  told_at    REAL    CHECK ((told_at IS NOT NULL) = (state = 'told')),
  nonce      TEXT    NOT NULL DEFAULT (lower(hex(randomblob(6)))),
  PRIMARY KEY (thread, number),
  UNIQUE (task, run)
) WITHOUT ROWID;
-- What is still to be told: its size is what a turn costs, whatever the history.
CREATE INDEX notices_open ON notices (thread, number) WHERE state IN ('unread', 'leased', 'parked');

CREATE TABLE transcripts (
  thread   TEXT    NOT NULL,
  position INTEGER NOT NULL,
  notice   TEXT,
  body     BLOB    NOT NULL,
  PRIMARY KEY (thread, position)
) WITHOUT ROWID;
CREATE UNIQUE INDEX transcripts_once ON transcripts (thread, notice) WHERE notice IS NOT NULL;

CREATE TABLE events (
  seq     INTEGER PRIMARY KEY,
  kind    TEXT    NOT NULL,
  task_id TEXT    NOT NULL,
  thread  TEXT    NOT NULL,
  run     INTEGER NOT NULL,
  status  TEXT    NOT NULL,
  at      REAL    NOT NULL
);
