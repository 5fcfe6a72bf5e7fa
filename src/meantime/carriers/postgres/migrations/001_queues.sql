-- Offers and messages are unlogged: a crash of the server empties them, and the owner offers again. That is
-- the contract of a carrier, and saves writing everything twice.
CREATE UNLOGGED TABLE offer (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    pool text NOT NULL,
    key text NOT NULL,
    data bytea NOT NULL,
    worker text,
    held_until timestamptz NOT NULL DEFAULT '-infinity',
    attempt integer NOT NULL DEFAULT 0,
    UNIQUE (pool, key)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
CREATE INDEX offer_order ON offer (pool, id);

-- The owner's recipient is the empty text, which is not the name of a worker.
CREATE UNLOGGED TABLE message (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    recipient text NOT NULL,
    sender text NOT NULL,
    data bytea NOT NULL,
    sent_at timestamptz NOT NULL DEFAULT now()
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
CREATE INDEX message_order ON message (recipient, id);

CREATE TABLE setting (name text PRIMARY KEY, value double precision NOT NULL);
CREATE TABLE account (role name PRIMARY KEY, worker text NOT NULL UNIQUE, pools text[] NOT NULL);

-- NOTIFY cuts channels at 63 bytes and carries nothing here: who listens on a channel learns of a wake only.
CREATE FUNCTION channel(address text) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT 'mt_' || md5(current_schema() || '/' || address) $$;

-- Who asks: the role of a worker can only be that worker. The schema's owner may say any name, which is the
-- weaker way for those who give one login to everybody.
CREATE FUNCTION asking(claimed text) RETURNS account LANGUAGE plpgsql STABLE AS
$$
DECLARE found account;
BEGIN
    IF session_user = current_user THEN
        RETURN ROW(session_user, claimed, NULL)::account;
    END IF;
    SELECT * INTO found FROM account WHERE role = session_user;
    IF found.worker IS DISTINCT FROM claimed THEN
        RAISE insufficient_privilege USING MESSAGE = format('%s is not the worker %s', session_user, claimed);
    END IF;
    RETURN found;
END
$$;

CREATE FUNCTION send(sender text, recipients text[], datas bytea[], most integer) RETURNS integer
LANGUAGE plpgsql AS
$$
DECLARE sent integer;
BEGIN
    INSERT INTO message (recipient, sender, data)
    SELECT each.recipient, send.sender, each.data FROM unnest(recipients, datas) AS each (recipient, data)
    WHERE (SELECT count(*) FROM (SELECT FROM message m WHERE m.recipient = each.recipient LIMIT most) AS few) < most;
    GET DIAGNOSTICS sent = ROW_COUNT;
    PERFORM pg_notify(channel('to/' || each), '') FROM (SELECT DISTINCT unnest(recipients)) AS names (each);
    RETURN sent;
END
$$;

CREATE FUNCTION receive(addressed_to text, most integer) RETURNS TABLE (sender text, data bytea)
LANGUAGE sql AS
$$
    WITH taken AS (
        DELETE FROM message WHERE id IN (
            SELECT id FROM message WHERE recipient = addressed_to ORDER BY id LIMIT most FOR UPDATE SKIP LOCKED
        ) RETURNING id, message.sender, message.data
    ) SELECT taken.sender, taken.data FROM taken ORDER BY id
$$;

CREATE FUNCTION worker_send(claimed text, datas bytea[], most integer) RETURNS integer
LANGUAGE sql SECURITY DEFINER SET search_path = {schema}, pg_temp AS
$$ SELECT send((asking(claimed)).worker, array_fill(''::text, ARRAY[cardinality(datas)]), datas, least(most, 65536)) $$;

CREATE FUNCTION worker_receive(claimed text, most integer) RETURNS TABLE (sender text, data bytea)
LANGUAGE sql SECURITY DEFINER SET search_path = {schema}, pg_temp AS
$$ SELECT * FROM receive((asking(claimed)).worker, least(most, 256)) $$;

CREATE FUNCTION worker_pull(claimed text, from_pool text, free integer)
RETURNS TABLE (id bigint, key text, data bytea, attempt integer)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp AS
$$
DECLARE who account := asking(claimed);
BEGIN
    IF who.pools IS NOT NULL AND NOT from_pool = ANY (who.pools) THEN
        RAISE insufficient_privilege USING MESSAGE = format('%s may not pull from %s', claimed, from_pool);
    END IF;
    RETURN QUERY
    WITH free_offers AS (
        SELECT o.id FROM offer o WHERE o.pool = from_pool AND o.held_until < now()
        ORDER BY o.id LIMIT least(free, 256) FOR UPDATE SKIP LOCKED
    )
    UPDATE offer o SET worker = who.worker, attempt = o.attempt + 1,
        held_until = now() + make_interval(secs => (SELECT value FROM setting WHERE name = 'ack_wait'))
    FROM free_offers f WHERE o.id = f.id
    RETURNING o.id, o.key, o.data, o.attempt;
END
$$;

-- An acknowledgement or a release counts only from the worker that holds the offer, and of that attempt.
CREATE FUNCTION worker_settle(claimed text, ids bigint[], attempts integer[], is_done boolean[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp AS
$$
DECLARE
    who account := asking(claimed);
    released text;
BEGIN
    DELETE FROM offer o USING unnest(ids, attempts, is_done) AS each (id, attempt, done)
    WHERE each.done AND o.id = each.id AND o.attempt = each.attempt AND o.worker = who.worker;
    FOR released IN
        UPDATE offer o SET held_until = '-infinity' FROM unnest(ids, attempts, is_done) AS each (id, attempt, done)
        WHERE NOT each.done AND o.id = each.id AND o.attempt = each.attempt AND o.worker = who.worker
        RETURNING o.pool
    LOOP
        PERFORM pg_notify(channel('pool/' || released), '');  -- the server sends equal ones of a commit once
    END LOOP;
END
$$;

-- Where a worker listens: for its messages, and for the offers of a pool.
CREATE FUNCTION worker_channel(claimed text, from_pool text) RETURNS text
LANGUAGE sql SECURITY DEFINER SET search_path = {schema}, pg_temp AS
$$
    SELECT CASE WHEN from_pool = '' THEN channel('to/' || who.worker) ELSE channel('pool/' || from_pool) END
    FROM asking(claimed) AS who
$$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {schema} FROM PUBLIC;
