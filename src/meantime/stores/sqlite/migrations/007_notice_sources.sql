-- A notice has a source, and the ending of a run is only one of them. `kind` is 0 for an ending, 1 for an event
-- of a run that goes on, 2 for an alarm, 3 for a message; `source` is the row that it is of: tasks.seq for the
-- first two. The words of all but endings, which are in the task, are in `body`.

CREATE TABLE sourced_notices (
  thread      TEXT    NOT NULL,
  number      INTEGER NOT NULL,
  kind        INTEGER NOT NULL DEFAULT 0 CHECK (kind IN (0, 1, 2, 3)),
  source      INTEGER NOT NULL,  -- it grows, so that new notices lie together, which random ids do not
  run         INTEGER NOT NULL,  -- of an alarm, its occurrence
  seq         INTEGER NOT NULL DEFAULT 0 CHECK ((seq > 0) = (kind = 1)),
  state       TEXT    NOT NULL CHECK (state IN ('unread','leased','told','parked','muted')),
  turn        TEXT    CHECK (turn IS NOT NULL OR state != 'leased'),
  turn_number INTEGER,
  deliveries  INTEGER NOT NULL DEFAULT 0,
  failures    INTEGER NOT NULL DEFAULT 0,
  parked_for  TEXT    CHECK ((parked_for IS NOT NULL) = (state = 'parked')),
  at          REAL    NOT NULL,
  told_at     REAL    CHECK ((told_at IS NOT NULL) = (state = 'told')),
  nonce       TEXT    NOT NULL DEFAULT (lower(hex(randomblob(6)))),
  sum         INTEGER,
  body        BLOB    CHECK ((body IS NOT NULL) = (kind > 0)),
  PRIMARY KEY (thread, number),
  UNIQUE (kind, source, run, seq)
) WITHOUT ROWID;

INSERT INTO sourced_notices (thread, number, source, run, state, turn, turn_number, deliveries, failures,
  parked_for, at, told_at, nonce, sum)
SELECT thread, number, task, run, state, turn, turn_number, deliveries, failures, parked_for, at, told_at, nonce, sum
FROM notices ORDER BY thread, number;

DROP TABLE notices;
ALTER TABLE sourced_notices RENAME TO notices;

CREATE INDEX notices_open ON notices (thread, number) WHERE state IN ('unread', 'leased', 'parked');
CREATE INDEX notices_leased ON notices (thread, turn) WHERE state = 'leased';
CREATE INDEX notices_parked ON notices (thread) WHERE state = 'parked';

CREATE TRIGGER settled_notice_deleted AFTER DELETE ON notices WHEN OLD.state IN ('told', 'muted') BEGIN
  UPDATE settled_counts SET notices = notices - 1 WHERE state = OLD.state;
END;
