-- A lease takes back what was parked, and a reminder counts it, however much is unread beside it. Few notices
-- are ever parked, so that the index costs the others nothing.

CREATE INDEX notices_parked ON notices (thread) WHERE state = 'parked';
