-- A schedule tells its thread a text when its time has come: each occurrence is a notice of kind 2, whose `source`
-- is the row of the schedule and whose `run` is the occurrence. The row is written in one transaction with it.
-- `due` is counted by a clock: '' is the wall clock, in seconds since 1970; otherwise `clock` names a start of the
-- machine, and `due` is seconds since that. `kind` has no CHECK, so that later kinds need no copy of the table.

CREATE TABLE schedules (
  seq        INTEGER PRIMARY KEY,
  id         TEXT    NOT NULL UNIQUE,
  thread     TEXT    NOT NULL,
  kind       TEXT    NOT NULL,
  state      TEXT    NOT NULL CHECK (state IN ('pending','done','cancelled')),
  version    INTEGER NOT NULL CHECK (version >= 1),
  occurrence INTEGER NOT NULL CHECK (occurrence >= 0),
  clock      TEXT    NOT NULL,
  due        REAL    NOT NULL,
  at         REAL    NOT NULL,  -- `due` by the wall clock: all that is left of a delay after the next boot
  tool_call  TEXT,
  updated    REAL    NOT NULL,
  body       BLOB    NOT NULL
);
-- The next one of each clock is the first row of its part of this index.
CREATE INDEX schedules_due ON schedules (clock, due) WHERE state = 'pending';
CREATE INDEX schedules_of_thread ON schedules (thread, at) WHERE state = 'pending';
CREATE INDEX schedules_over ON schedules (updated) WHERE state != 'pending';
CREATE UNIQUE INDEX schedules_by_call ON schedules (thread, tool_call) WHERE tool_call IS NOT NULL;
