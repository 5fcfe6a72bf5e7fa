-- Every statement the store runs, by name. Nothing newer than SQLite 3.40.

-- name: insert_task
INSERT INTO tasks (seq, id, thread, status, version, run, batch, tool_call, hidden, updated, body,
  agent, words, session, kind, parent)
VALUES (?, ?, ?, ?, ?, ?, nullif(?, ''), nullif(?, ''), ?, ?, ?, ?, ?, nullif(?, ''), ?, nullif(?, ''));

-- name: update_task
UPDATE tasks SET status = ?, version = ?, run = ?, hidden = ?, updated = ?, body = ?, session = nullif(?, ''), duration = ?,
  follows = ?
WHERE id = ? AND version = ?;

-- name: update_tasks
UPDATE tasks SET status = v.column1, version = v.column2, run = v.column3, hidden = v.column4, updated = v.column5,
  body = v.column6, session = nullif(v.column7, ''), duration = v.column8, follows = v.column9
FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)) AS v WHERE id = v.column10 AND tasks.version = v.column11;

-- name: last_task
SELECT max(seq) FROM tasks;

-- name: insert_event
INSERT INTO events (seq, kind, task_id, thread, run, status, at, sum) VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: numbers_given
SELECT ended FROM threads WHERE id = ?;

-- name: keep_numbers
INSERT INTO threads (id, ended, claimed) VALUES (?1, ?2, ?3)
ON CONFLICT (id) DO UPDATE SET ended = ?2;

-- name: insert_notice
INSERT INTO notices (thread, number, kind, source, run, seq, state, at, stood, body, sum)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, nullif(?, ''), nullif(?, ''), ?);

-- name: join_notice
UPDATE notices SET at = ?, body = ?, sum = ? WHERE thread = ? AND number = ?;

-- name: joinable_notice
-- Once somebody has leased it, its words stay.
SELECT thread, number FROM notices WHERE kind = ? AND source = ? AND run = ? AND seq = ?
  AND state = 'unread' AND deliveries = 0;

-- name: task_of_version
SELECT seq FROM tasks WHERE id = ? AND version = ?;

-- name: insert_run
INSERT INTO runs (task_id, run, body) VALUES (?, ?, ?);

-- name: join_batch
UPDATE tasks SET batch = nullif(?, '') WHERE id = ?;

-- name: task_of_call
SELECT id FROM tasks WHERE thread = ? AND tool_call = ?;

-- name: task_by_id
SELECT body FROM tasks WHERE id = ?;

-- name: tasks_by_prefix
SELECT body FROM tasks
WHERE ((id >= ?1 AND id < ?2) OR (id >= ?3 AND id < ?4)) AND (?5 IS NULL OR thread = ?5)
ORDER BY id LIMIT ?6;

-- name: runs_of
SELECT body FROM runs WHERE task_id = ? ORDER BY run;

-- name: child_tasks
SELECT body FROM tasks INDEXED BY tasks_by_parent WHERE parent = ? ORDER BY seq DESC LIMIT ?;

-- name: active_tasks
SELECT body FROM tasks WHERE status IN ('queued', 'running', 'waiting', 'cancelling') ORDER BY seq;

-- name: tasks_following
SELECT body FROM tasks INDEXED BY tasks_following
WHERE follows = 1 AND status IN ('completed', 'failed', 'cancelled', 'timed_out', 'lost') ORDER BY seq;

-- name: hot_newest
SELECT n.number, t.body, t.hidden FROM notices AS n JOIN tasks AS t ON t.seq = n.source AND t.run = n.run
WHERE n.thread = ? AND n.kind = 0 ORDER BY n.number DESC LIMIT ?;

-- name: hot_untold
SELECT n.number, t.body, t.hidden FROM notices AS n INDEXED BY notices_open
JOIN tasks AS t ON t.seq = n.source AND t.run = n.run
WHERE n.thread = ? AND n.kind = 0 AND (n.state = 'unread' OR n.state = 'leased' OR n.state = 'parked')
  AND t.hidden = 0 AND n.number < ? ORDER BY n.number DESC;

-- name: batch_count
SELECT status, count(*) FROM tasks WHERE batch = ?1 AND (?2 IS NULL OR +thread = ?2) GROUP BY status;

-- name: active_of_thread
SELECT count(*) FROM tasks INDEXED BY tasks_by_thread
WHERE thread = ? AND status IN ('queued', 'running', 'waiting', 'cancelling') AND kind IS NOT ?;

-- name: span_of_tasks
SELECT (SELECT min(seq) FROM tasks), (SELECT max(seq) FROM tasks);

-- name: is_hidden
SELECT hidden FROM tasks WHERE id = ? AND version = ?;

-- name: count_ended
INSERT INTO ended_counts VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET tasks = tasks + excluded.tasks, timed = timed + excluded.timed,
  seconds = seconds + excluded.seconds;

-- name: count_settled
UPDATE settled_counts SET notices = notices + ? WHERE state = ?;

-- name: forget_ended
DELETE FROM ended_counts;

-- name: recount_ended
INSERT INTO ended_counts
SELECT status, run > 1, coalesce(agent, ''), hidden, count(*), count(duration), total(duration) FROM tasks
WHERE status IN ('completed', 'failed', 'cancelled', 'timed_out', 'lost') GROUP BY 1, 2, 3, 4;

-- name: recount_settled
UPDATE settled_counts SET notices = (SELECT count(*) FROM notices AS n WHERE n.state = settled_counts.state);

-- name: active_counts
SELECT status, count(*) FROM tasks
WHERE status IN ('queued', 'running', 'waiting', 'cancelling') AND (hidden = 0 OR ?) GROUP BY status;

-- name: some_of_status
SELECT count(*) FROM (SELECT 1 FROM tasks WHERE status = ? AND (hidden = 0 OR ?) LIMIT ?);

-- name: ended_counts
SELECT status, sum(tasks) FROM ended_counts WHERE hidden = 0 OR ? GROUP BY status;

-- name: open_by_state
SELECT state, count(*) FROM notices INDEXED BY notices_open
WHERE state = 'unread' OR state = 'leased' OR state = 'parked' GROUP BY state;

-- name: settled_by_state
SELECT state, notices FROM settled_counts;

-- name: statistics_of_active
SELECT status, run > 1, agent, count(*), count(duration), sum(duration), max(duration), min(duration)
FROM tasks INDEXED BY tasks_numbers
WHERE hidden = 0 AND status IN ('queued', 'running', 'waiting', 'cancelling') GROUP BY status, run > 1, agent;

-- name: statistics_of_ended
-- The plus takes the column's affinity away: SQLite would not use that part of the index otherwise.
SELECT c.status, c.resumed, c.agent, c.tasks, c.timed, c.seconds,
  (SELECT max(duration) FROM tasks AS t INDEXED BY tasks_numbers
   WHERE t.hidden = 0 AND t.status = c.status AND (t.run > 1) = +c.resumed AND t.agent = c.agent),
  (SELECT min(duration) FROM tasks AS t INDEXED BY tasks_numbers
   WHERE t.hidden = 0 AND t.status = c.status AND (t.run > 1) = +c.resumed AND t.agent = c.agent)
FROM ended_counts AS c WHERE c.hidden = 0 AND c.tasks > 0;

-- name: statistics_of
SELECT status, run > 1, agent, count(*), count(duration), sum(duration), max(duration), min(duration)
FROM tasks WHERE thread = ? AND hidden = 0 GROUP BY status, run > 1, agent;

-- name: task_from_place
SELECT seq, body FROM tasks WHERE seq >= ? ORDER BY seq LIMIT 1;

-- name: shown_ended_counts
SELECT status, sum(tasks) FROM ended_counts WHERE hidden = 0 GROUP BY status HAVING sum(tasks) > 0;

-- name: deliveries_of
SELECT t.id, n.state, n.number, n.turn, coalesce(n.told_at, n.at), n.parked_for, n.turn_number
FROM tasks AS t
CROSS JOIN notices AS n ON n.kind = 0 AND n.source = t.seq AND n.run = t.run
WHERE t.id IN (SELECT value FROM json_each(?));

-- name: children_of
SELECT value, (SELECT count(*) FROM (SELECT 1 FROM tasks INDEXED BY tasks_by_parent
                                     WHERE parent = value AND parent IS NOT NULL LIMIT ?2)) AS found
FROM json_each(?1) WHERE found > 0;

-- name: held_of
SELECT value,
  (SELECT count(*) FROM (SELECT 1 FROM notices INDEXED BY notices_leased
                         WHERE state = 'leased' AND thread = value LIMIT ?2)),
  (SELECT count(*) FROM (SELECT 1 FROM notices INDEXED BY notices_parked
                         WHERE state = 'parked' AND thread = value LIMIT ?2))
FROM json_each(?1);

-- name: late
SELECT coalesce(sum(state = 'parked' OR at < ?1), 0), count(*),
  (SELECT notices FROM settled_counts WHERE state = 'told')
FROM (SELECT state, at FROM notices INDEXED BY notices_open
      WHERE state = 'unread' OR state = 'leased' OR state = 'parked' LIMIT ?2);

-- name: held_by_others
SELECT 1 FROM notices INDEXED BY notices_leased
WHERE thread = ? AND state = 'leased' AND turn != ? LIMIT 1;

-- name: unpark_unclaimed
UPDATE notices INDEXED BY notices_parked SET state = 'unread', parked_for = NULL
WHERE thread = ? AND state = 'parked' AND parked_for = 'unclaimed';

-- name: unpark_all
UPDATE notices INDEXED BY notices_parked SET state = 'unread', parked_for = NULL, failures = 0
WHERE thread = ? AND state = 'parked';

-- name: unpark_one
UPDATE notices SET state = 'unread', parked_for = NULL, failures = 0
WHERE kind = ?2 AND source = ?3 AND run = ?4 AND seq = ?5 AND thread = ?1 AND state = 'parked';

-- name: unread_of
SELECT number, failures FROM notices INDEXED BY notices_open
WHERE thread = ? AND state = 'unread' ORDER BY number LIMIT ?;

-- name: lease_notices
UPDATE notices INDEXED BY notices_open
SET state = 'leased', turn = ?1, turn_number = ?4, deliveries = deliveries + 1
WHERE thread = ?2 AND state = 'unread' AND number <= ?3;

-- name: count_turn
-- A turn that leases again is still the same one.
UPDATE threads SET claimed = ?1, turns = turns + (turn IS NOT ?2), turn = ?2 WHERE id = ?3
RETURNING turns;

-- name: leased_to
SELECT n.thread, n.number, n.kind, n.source, n.run, n.seq, n.at, n.stood, n.sum, n.body, n.nonce, n.deliveries, n.state,
  t.run = n.run, t.body, r.body
FROM notices AS n INDEXED BY notices_open
LEFT JOIN tasks AS t ON n.kind < 2 AND t.seq = n.source LEFT JOIN runs AS r ON r.task_id = t.id AND r.run = n.run
WHERE n.thread = ? AND n.state = 'leased' AND n.turn = ?
  AND n.number IN (SELECT value FROM json_each(?)) ORDER BY n.number;

-- name: notices
SELECT n.thread, n.number, n.kind, n.source, n.run, n.seq, n.at, n.stood, n.sum, n.body, n.nonce, n.deliveries, n.state,
  t.run = n.run, t.body, r.body
FROM notices AS n LEFT JOIN tasks AS t ON n.kind < 2 AND t.seq = n.source
LEFT JOIN runs AS r ON r.task_id = t.id AND r.run = n.run
WHERE n.state IN (SELECT value FROM json_each(?1))
ORDER BY n.thread, n.number LIMIT ?2 OFFSET ?3;

-- name: notices_of
SELECT n.thread, n.number, n.kind, n.source, n.run, n.seq, n.at, n.stood, n.sum, n.body, n.nonce, n.deliveries, n.state,
  t.run = n.run, t.body, r.body
FROM notices AS n LEFT JOIN tasks AS t ON n.kind < 2 AND t.seq = n.source
LEFT JOIN runs AS r ON r.task_id = t.id AND r.run = n.run
WHERE n.state IN (SELECT value FROM json_each(?1)) AND n.thread = ?2
ORDER BY n.thread, n.number LIMIT ?3 OFFSET ?4;

-- name: open_notices
SELECT n.thread, n.number, n.kind, n.source, n.run, n.seq, n.at, n.stood, n.sum, n.body, n.nonce, n.deliveries, n.state,
  t.run = n.run, t.body, r.body
FROM notices AS n INDEXED BY notices_open LEFT JOIN tasks AS t ON n.kind < 2 AND t.seq = n.source
LEFT JOIN runs AS r ON r.task_id = t.id AND r.run = n.run
WHERE (n.state = 'unread' OR n.state = 'leased' OR n.state = 'parked')
  AND n.state IN (SELECT value FROM json_each(?1))
ORDER BY n.thread, n.number LIMIT ?2 OFFSET ?3;

-- name: open_notices_of
SELECT n.thread, n.number, n.kind, n.source, n.run, n.seq, n.at, n.stood, n.sum, n.body, n.nonce, n.deliveries, n.state,
  t.run = n.run, t.body, r.body
FROM notices AS n INDEXED BY notices_open LEFT JOIN tasks AS t ON n.kind < 2 AND t.seq = n.source
LEFT JOIN runs AS r ON r.task_id = t.id AND r.run = n.run
WHERE (n.state = 'unread' OR n.state = 'leased' OR n.state = 'parked')
  AND n.state IN (SELECT value FROM json_each(?1)) AND n.thread = ?2
ORDER BY n.thread, n.number LIMIT ?3 OFFSET ?4;

-- name: inbox_before
SELECT n.thread, n.number, n.kind, n.source, n.run, n.seq, n.at, n.stood, n.sum, n.body, n.nonce, n.deliveries, n.state,
  t.run = n.run, t.body, r.body,
  n.turn, CASE WHEN n.turn IS NOT NULL THEN n.turn_number END, n.failures, n.parked_for, n.told_at
FROM notices AS n LEFT JOIN tasks AS t ON n.kind < 2 AND t.seq = n.source LEFT JOIN runs AS r ON r.task_id = t.id AND r.run = n.run
WHERE n.thread = ? AND n.number < ? ORDER BY n.number DESC LIMIT ?;

-- name: inbox_of_task
SELECT n.thread, n.number, n.kind, n.source, n.run, n.seq, n.at, n.stood, n.sum, n.body, n.nonce, n.deliveries, n.state,
  t.run = n.run, t.body, r.body,
  n.turn, CASE WHEN n.turn IS NOT NULL THEN n.turn_number END, n.failures, n.parked_for, n.told_at
FROM notices AS n LEFT JOIN tasks AS t ON n.kind < 2 AND t.seq = n.source LEFT JOIN runs AS r ON r.task_id = t.id AND r.run = n.run
WHERE n.kind = 0 AND n.source = (SELECT seq FROM tasks WHERE id = ?) ORDER BY n.run DESC LIMIT ?;

-- name: count_inbox
-- What is open has its indexes; of what is settled the newest are counted, as many as asked for.
SELECT state, count(*) FROM notices INDEXED BY notices_open
WHERE thread = ?1 AND (state = 'unread' OR state = 'leased' OR state = 'parked') GROUP BY state
UNION ALL
SELECT state, count(*) FROM
  (SELECT state FROM notices WHERE thread = ?1 AND state IN ('told', 'muted') ORDER BY number DESC LIMIT ?2)
GROUP BY state;

-- name: count_notices
SELECT count(*) FROM notices WHERE state IN (SELECT value FROM json_each(?1));

-- name: count_notices_of
SELECT count(*) FROM notices WHERE state IN (SELECT value FROM json_each(?1)) AND thread = ?2;

-- name: count_open_notices
SELECT count(*) FROM notices INDEXED BY notices_open
WHERE (state = 'unread' OR state = 'leased' OR state = 'parked') AND state IN (SELECT value FROM json_each(?1));

-- name: count_every_open_notice_of
SELECT count(*) FROM notices INDEXED BY notices_open
WHERE (state = 'unread' OR state = 'leased' OR state = 'parked') AND thread = ?;

-- name: count_open_notices_of
-- Each state by its own index: what is parked is counted without a look at what is unread.
SELECT CASE WHEN 'unread' IN (SELECT value FROM json_each(?1)) THEN (
    SELECT count(*) FROM notices INDEXED BY notices_open
    WHERE state = 'unread' AND thread = ?2) ELSE 0 END
  + CASE WHEN 'leased' IN (SELECT value FROM json_each(?1)) THEN (
    SELECT count(*) FROM notices INDEXED BY notices_leased WHERE state = 'leased' AND thread = ?2) ELSE 0 END
  + CASE WHEN 'parked' IN (SELECT value FROM json_each(?1)) THEN (
    SELECT count(*) FROM notices INDEXED BY notices_parked WHERE state = 'parked' AND thread = ?2) ELSE 0 END;

-- name: read_notice
UPDATE notices SET state = 'leased', turn = ?1, deliveries = deliveries + 1
WHERE kind = 0 AND source = (SELECT seq FROM tasks WHERE id = ?2) AND run = ?3 AND state = 'unread'
RETURNING thread, number;

-- name: number_turn
UPDATE notices SET turn_number = ? WHERE thread = ? AND number = ?;

-- name: held_by
SELECT n.kind, coalesce(t.id, s.id), n.run, n.seq, n.number FROM notices AS n INDEXED BY notices_leased
LEFT JOIN tasks AS t ON n.kind < 2 AND t.seq = n.source LEFT JOIN schedules AS s ON n.kind = 2 AND s.seq = n.source
WHERE n.thread = ? AND n.state = 'leased' AND n.turn = ? ORDER BY n.number;

-- name: told_by
SELECT 1 FROM notices
WHERE kind = ?1 AND source = ?2 AND run = ?3 AND seq = ?4 AND state = 'told' AND turn = ?5
  AND (?6 IS NULL OR thread = ?6);

-- name: task_at
SELECT seq FROM tasks WHERE id = ?;

-- name: tell
UPDATE notices SET state = 'told', told_at = ? WHERE thread = ? AND number = ?;

-- name: tell_all
UPDATE notices INDEXED BY notices_leased SET state = 'told', told_at = ?1
WHERE thread = ?2 AND state = 'leased' AND turn = ?3;

-- name: release_turn
UPDATE notices INDEXED BY notices_leased SET
  failures = failures + ?1,
  state = CASE WHEN failures + ?1 >= ?2 THEN 'parked' ELSE 'unread' END,
  parked_for = CASE WHEN failures + ?1 >= ?2 THEN 'failures' END,
  turn = NULL
WHERE thread = ?3 AND state = 'leased' AND turn = ?4
RETURNING kind, CASE kind WHEN 2 THEN (SELECT s.id FROM schedules AS s WHERE s.seq = notices.source)
  ELSE (SELECT t.id FROM tasks AS t WHERE notices.kind < 2 AND t.seq = notices.source) END, run, seq, state;

-- name: release_all
UPDATE notices INDEXED BY notices_leased SET
  failures = failures + 1,
  state = CASE WHEN failures + 1 >= ?1 THEN 'parked' ELSE 'unread' END,
  parked_for = CASE WHEN failures + 1 >= ?1 THEN 'failures' END,
  turn = NULL
WHERE state = 'leased';

-- name: unread_by_thread
SELECT thread, count(*) FROM notices INDEXED BY notices_open
WHERE state = 'unread' GROUP BY thread;

-- name: threads
-- Those that have tasks, notices or reminders; a few looks into an index for each.
WITH RECURSIVE names (id) AS (
  SELECT min(id) FROM (SELECT min(thread) AS id FROM tasks UNION ALL SELECT min(thread) FROM notices
    UNION ALL SELECT min(thread) FROM schedules WHERE state = 'pending')
  UNION ALL
  SELECT (SELECT min(id) FROM (SELECT min(thread) AS id FROM tasks WHERE thread > names.id
      UNION ALL SELECT min(thread) FROM notices WHERE thread > names.id
      UNION ALL SELECT min(thread) FROM schedules WHERE state = 'pending' AND thread > names.id))
  FROM names WHERE names.id IS NOT NULL
)
SELECT id, (SELECT at FROM notices WHERE thread = id ORDER BY number DESC LIMIT 1)
FROM names WHERE id IS NOT NULL LIMIT ?;

-- name: thread
SELECT ?1, (SELECT at FROM notices WHERE thread = ?1 ORDER BY number DESC LIMIT 1)
WHERE EXISTS (SELECT 1 FROM tasks WHERE thread = ?1) OR EXISTS (SELECT 1 FROM notices WHERE thread = ?1)
  OR EXISTS (SELECT 1 FROM schedules WHERE state = 'pending' AND thread = ?1);

-- name: owed
SELECT thread, state, count(*) FROM notices INDEXED BY notices_open
WHERE (state = 'unread' OR state = 'leased' OR state = 'parked') AND (?1 IS NULL OR thread = ?1)
GROUP BY thread, state;

-- name: park_unclaimed
UPDATE notices INDEXED BY notices_open SET state = 'parked', parked_for = 'unclaimed'
WHERE state = 'unread' AND at < ?1
  AND thread IN (SELECT id FROM threads WHERE claimed < ?1) AND thread NOT IN (SELECT value FROM json_each(?2));

-- name: contents
SELECT seq, id, thread, status, version, run, batch, tool_call, hidden, updated, agent, words, session, duration,
  kind, parent, follows, body FROM tasks WHERE seq > ? ORDER BY seq LIMIT ?;

-- name: contents_of_runs
SELECT task_id, run, body FROM runs WHERE (task_id, run) > (?, ?) ORDER BY task_id, run LIMIT ?;

-- name: contents_of_notices
SELECT thread, number, kind, source, run, seq, at, stood, sum, body FROM notices WHERE (thread, number) > (?, ?)
ORDER BY thread, number LIMIT ?;

-- name: contents_of_transcripts
SELECT thread, position, body FROM transcripts WHERE (thread, position) > (?, ?)
ORDER BY thread, position LIMIT ?;

-- name: park_unreadable
UPDATE notices SET state = 'parked', parked_for = 'unreadable', turn = NULL
WHERE kind = 0 AND source = ? AND state IN ('unread', 'leased');

-- name: park_one_unreadable
UPDATE notices SET state = 'parked', parked_for = 'unreadable', turn = NULL
WHERE thread = ? AND number = ? AND state IN ('unread', 'leased');

-- name: unindexed_tasks
-- The pluses keep SQLite on the index that is looked at. The limit counts rows of the slice, not findings.
SELECT t.seq FROM (SELECT seq, id, thread, status FROM tasks WHERE seq > ?1 ORDER BY seq LIMIT ?2) AS t
WHERE NOT EXISTS (SELECT 1 FROM tasks AS i INDEXED BY tasks_by_thread
                  WHERE i.thread = t.thread AND i.status = t.status AND i.seq = t.seq)
  OR NOT EXISTS (SELECT 1 FROM tasks AS i INDEXED BY tasks_by_status
                 WHERE i.status = t.status AND i.seq = t.seq)
  OR NOT EXISTS (SELECT 1 FROM tasks AS i WHERE i.id = t.id AND +i.seq = t.seq) LIMIT 1;

-- name: unindexed_notices
SELECT s.thread || ' ' || s.number FROM
  (SELECT thread, number, kind, source, run, seq, state FROM notices WHERE (thread, number) > (?1, ?2)
   ORDER BY thread, number LIMIT ?3) AS s
WHERE NOT EXISTS (SELECT 1 FROM notices AS i
                  WHERE i.kind = s.kind AND i.source = s.source AND i.run = s.run AND i.seq = s.seq
                    AND +i.thread = s.thread AND +i.number = s.number)
  OR (s.state IN ('unread', 'leased', 'parked') AND NOT EXISTS
      (SELECT 1 FROM notices AS i INDEXED BY notices_open WHERE i.thread = s.thread AND i.number = s.number
         AND (i.state = 'unread' OR i.state = 'leased' OR i.state = 'parked'))) LIMIT 1;

-- name: raise_checkpoints
UPDATE checkpoints SET number = number + 1 RETURNING number;

-- name: has_checkpoints
SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'checkpoints';

-- name: checkpoints
SELECT number FROM checkpoints;

-- name: set_checkpoints
UPDATE checkpoints SET number = ?;

-- name: next_position
SELECT coalesce(max(position), 0) + 1 FROM transcripts WHERE thread = ?;

-- name: insert_entry
INSERT INTO transcripts (thread, position, notice, body) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- name: transcript
SELECT position, notice, body FROM transcripts WHERE thread = ? ORDER BY position;

-- name: has_entry
SELECT 1 FROM transcripts WHERE thread = ? AND notice = ?;

-- name: events_after
SELECT seq, kind, task_id, thread, run, status, at, sum FROM events WHERE seq > ? ORDER BY seq LIMIT ?;

-- name: last_event
SELECT max(seq) FROM events;

-- name: trim_events
DELETE FROM events WHERE seq IN
  (SELECT seq FROM events WHERE seq <= (SELECT max(seq) FROM events) - ?1 ORDER BY seq LIMIT ?2);

-- name: forgettable
SELECT t.id, t.body FROM tasks AS t
WHERE t.status IN ('completed', 'failed', 'cancelled', 'timed_out', 'lost')
  AND (t.updated < ?1 OR t.seq <= coalesce((SELECT seq FROM tasks ORDER BY seq DESC LIMIT 1 OFFSET ?2), -1))
  AND NOT EXISTS (SELECT 1 FROM notices AS n
                  WHERE n.kind IN (0, 1) AND n.source = t.seq AND n.state IN ('unread', 'leased', 'parked'))
ORDER BY t.seq LIMIT ?3;

-- name: ended_by_id
SELECT t.id, t.body FROM tasks AS t
WHERE t.id = ? AND t.status IN ('completed', 'failed', 'cancelled', 'timed_out', 'lost');

-- name: delete_ended
DELETE FROM tasks
WHERE id = ? AND status IN ('completed', 'failed', 'cancelled', 'timed_out', 'lost')
RETURNING seq, thread, run, status, batch;

-- name: delete_told
DELETE FROM tasks
WHERE id = ?1 AND status IN ('completed', 'failed', 'cancelled', 'timed_out', 'lost')
  AND NOT EXISTS (SELECT 1 FROM notices AS n
                  WHERE n.kind IN (0, 1) AND n.source = tasks.seq AND n.state IN ('unread', 'leased', 'parked'))
RETURNING seq, thread, run, status, batch;

-- name: delete_runs
DELETE FROM runs WHERE task_id = ?;

-- name: delete_notices
DELETE FROM notices WHERE kind IN (0, 1) AND source = ?;

-- name: sources_of_many_events
-- One step a source, whatever the number of its events.
WITH RECURSIVE found (source) AS (
  SELECT min(source) FROM notices WHERE kind = 1
  UNION ALL
  SELECT (SELECT min(source) FROM notices WHERE kind = 1 AND source > found.source) FROM found
  WHERE found.source IS NOT NULL
)
SELECT source FROM found WHERE source IS NOT NULL
  AND EXISTS (SELECT 1 FROM notices AS n WHERE n.kind = 1 AND n.source = found.source LIMIT 1 OFFSET ?);

-- name: prune_events
DELETE FROM notices WHERE (thread, number) IN (SELECT thread, number FROM notices
  WHERE kind = 1 AND source = ?1 AND state = 'told' AND (run, seq) <=
    (SELECT run, seq FROM notices WHERE kind = 1 AND source = ?1 ORDER BY run DESC, seq DESC LIMIT 1 OFFSET ?2)
  LIMIT ?3);

-- name: insert_schedule
INSERT INTO schedules (id, thread, kind, state, version, occurrence, clock, due, at, tool_call, updated, body)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- name: update_schedule
-- `clock` stays: a delay of a former boot goes by the wall clock until it has come.
UPDATE schedules SET state = ?, version = ?, occurrence = ?, updated = ?, body = ? WHERE id = ? AND version = ?
RETURNING seq;

-- name: schedule_of_call
SELECT id FROM schedules WHERE thread = ? AND tool_call = ?;

-- name: schedule_by_id
SELECT body FROM schedules WHERE id = ?;

-- name: schedule_at
SELECT seq FROM schedules WHERE id = ?;

-- name: schedules_due
SELECT seq, body, thread FROM schedules INDEXED BY schedules_due WHERE state = 'pending' AND clock = ? AND due <= ?
ORDER BY due LIMIT ?;

-- name: next_due
SELECT (SELECT min(due) FROM schedules INDEXED BY schedules_due WHERE state = 'pending' AND clock = ''),
  (SELECT min(due) FROM schedules INDEXED BY schedules_due WHERE state = 'pending' AND clock = ?);

-- name: pending_schedules
SELECT thread, count(*) FROM schedules INDEXED BY schedules_of_thread WHERE state = 'pending' GROUP BY thread;

-- name: schedules
SELECT body FROM schedules INDEXED BY schedules_of_thread WHERE state = 'pending' ORDER BY at, seq LIMIT ? OFFSET ?;

-- name: schedules_of
SELECT body FROM schedules INDEXED BY schedules_of_thread WHERE state = 'pending' AND thread = ?
ORDER BY at, seq LIMIT ? OFFSET ?;

-- name: set_schedule_aside
-- One that cannot be read would be due for ever.
UPDATE schedules SET state = 'cancelled' WHERE seq = ? AND state = 'pending';

-- name: count_by_the_wall_clock
UPDATE schedules SET clock = '', due = at WHERE state = 'pending' AND clock NOT IN ('', ?);

-- name: forgettable_schedules
SELECT seq FROM schedules INDEXED BY schedules_over
WHERE state != 'pending' AND (updated < ?1 OR updated <= coalesce((SELECT updated FROM schedules INDEXED BY schedules_over
    WHERE state != 'pending' ORDER BY updated DESC LIMIT 1 OFFSET ?2), -1e300))
  AND NOT EXISTS (SELECT 1 FROM notices AS n
                  WHERE n.kind = 2 AND n.source = schedules.seq AND n.state IN ('unread', 'leased', 'parked'))
ORDER BY updated LIMIT ?3;

-- name: delete_schedule
DELETE FROM schedules WHERE seq = ? AND state != 'pending';

-- name: delete_alarms
DELETE FROM notices WHERE kind = 2 AND source = ?;

-- name: contents_of_schedules
SELECT seq, id, thread, kind, state, version, occurrence, clock, due, at, tool_call, updated, body FROM schedules
WHERE seq > ? ORDER BY seq LIMIT ?;

-- name: alarms_of_nothing
SELECT source, body FROM notices WHERE kind = 2 AND source NOT IN (SELECT seq FROM schedules);

-- name: restore_schedule
INSERT INTO schedules (seq, id, thread, kind, state, version, occurrence, clock, due, at, tool_call, updated, body)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- name: drop_alarms_of_nothing
DELETE FROM notices WHERE kind = 2 AND source NOT IN (SELECT seq FROM schedules);

-- name: done_without_alarm
SELECT s.seq, s.body FROM schedules AS s
WHERE s.state = 'done' AND NOT EXISTS
  (SELECT 1 FROM notices AS n WHERE n.kind = 2 AND n.source = s.seq AND n.run = s.occurrence) ORDER BY s.updated;

-- name: insert_lost_alarm
INSERT INTO notices (thread, number, kind, source, run, state, at, sum, told_at, body) VALUES (?, ?, 2, ?, ?, ?, ?, ?, ?, ?);

-- name: fill_columns
UPDATE tasks SET (agent, words, session, duration, kind, parent) =
  (SELECT looked(body, 0), looked(body, 1), looked(body, 2), looked(body, 3), looked(body, 4), looked(body, 5))
WHERE agent IS NULL OR kind IS NULL;

-- name: drop_notices_of_nothing
DELETE FROM notices WHERE kind IN (0, 1) AND source NOT IN (SELECT seq FROM tasks);

-- name: drop_notices_of_no_run
DELETE FROM notices WHERE kind = 0 AND NOT EXISTS
  (SELECT 1 FROM tasks AS t WHERE t.seq = source AND t.run = notices.run
     AND t.status IN ('completed', 'failed', 'cancelled', 'timed_out', 'lost')) AND NOT EXISTS
  (SELECT 1 FROM tasks AS t JOIN runs AS r ON r.task_id = t.id WHERE t.seq = source AND r.run = notices.run);

-- name: raise_numbers
INSERT INTO threads (id, ended) SELECT thread, max(number) FROM notices WHERE 1 GROUP BY thread
ON CONFLICT (id) DO UPDATE SET ended = max(ended, excluded.ended);

-- name: ended_without_notice
SELECT t.seq, t.thread, t.run, t.updated AS at, t.body FROM tasks AS t
WHERE t.status IN ('completed', 'failed', 'cancelled', 'timed_out', 'lost')
  AND NOT EXISTS (SELECT 1 FROM notices AS n WHERE n.kind = 0 AND n.source = t.seq AND n.run = t.run)
UNION ALL
SELECT t.seq, t.thread, r.run, t.updated, r.body FROM runs AS r JOIN tasks AS t ON t.id = r.task_id
WHERE NOT EXISTS (SELECT 1 FROM notices AS n WHERE n.kind = 0 AND n.source = t.seq AND n.run = r.run)
ORDER BY at, 3;

-- name: next_number
INSERT INTO threads (id, ended, claimed) VALUES (?1, 1, ?2)
ON CONFLICT (id) DO UPDATE SET ended = ended + 1 RETURNING ended;

-- name: number_before
SELECT coalesce(max(number), 0) FROM notices WHERE thread = ? AND at <= ?;

-- name: has_number
SELECT 1 FROM notices WHERE thread = ? AND number = ?;

-- name: reserve_number
INSERT INTO threads (id, ended, claimed) VALUES (?1, ?2, ?3)
ON CONFLICT (id) DO UPDATE SET ended = max(ended, excluded.ended);

-- name: insert_lost_notice
INSERT INTO notices (thread, number, source, run, state, at, sum, told_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: threads_of_salvage
SELECT thread, count(*), sum(status IN ('completed', 'failed', 'cancelled', 'timed_out', 'lost')) FROM tasks GROUP BY thread;

-- name: untold_of_salvage
SELECT thread, count(*) FROM notices WHERE state IN ('unread', 'leased', 'parked') GROUP BY thread;

-- name: journal_without_task
SELECT DISTINCT thread, task_id FROM events WHERE task_id NOT IN (SELECT id FROM tasks) ORDER BY 1, 2;
