"""What the role of a worker can do in PostgreSQL, and what it cannot; one owner for each space."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest
from tests.waiting import LIMIT, until_async

from meantime.carriers.postgres import postgres_client
from meantime.carriers.postgres.postgres_client import PostgresAddress, connect_postgres
from meantime.carriers.postgres.postgres_worker import PostgresWorker
from meantime.carriers.postgres.worker_roles import add_worker, list_workers, remove_worker
from meantime.testing.carrier.carrier_site import Ends, repeat_until

from .postgres_server import PostgresServer
from .postgres_site import PostgresSite, postgres_site

pytestmark = [pytest.mark.anyio, pytest.mark.servers]


@pytest.fixture
async def site(postgres: PostgresServer) -> AsyncGenerator[PostgresSite]:
    async with postgres_site(postgres) as site:
        yield site


async def _refusal(address: PostgresAddress, statement: str) -> str:
    client = await connect_postgres(address)
    try:
        await client.execute(statement)
    except Exception as problem:
        return str(problem)
    finally:
        await client.close(timeout=LIMIT)
    return ""


async def test_a_goodbye_that_is_not_answered_in_time_fails_nothing(
    site: PostgresSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was asked of the server is done: the role is there, or is gone."""
    monkeypatch.setattr(postgres_client, "CLOSE_SECONDS", 0.0)
    await add_worker(site.address, "w3", ("red",))
    assert ("w3", ["red"]) in await list_workers(site.address)
    assert await remove_worker(site.address, "w3")


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO offer (pool, key, data) VALUES ('red', 'forged', '')",
        "SELECT * FROM offer",
        "DELETE FROM offer",
        "TRUNCATE offer",
        "SELECT * FROM message",
        "INSERT INTO message (recipient, sender, data) VALUES ('w2', '', '')",
        "SELECT * FROM account",
        "UPDATE account SET worker = 'w2'",
        "SELECT * FROM receive('', 10)",
        "SELECT send('', ARRAY['w2'], ARRAY[''::bytea], 10)",
        "CREATE TABLE mine (a int)",
        "SELECT worker_send('w2', ARRAY[''::bytea], 10)",  # speaks for another
        "SELECT * FROM worker_receive('w2', 10)",
        "SELECT * FROM worker_pull('w2', 'red', 1)",
        "SELECT * FROM worker_pull('w1', 'green', 1)",  # a pool that is not its own
        "SELECT worker_settle('w2', ARRAY[1], ARRAY[1], ARRAY[true])",
    ],
)
async def test_a_role_cannot(site: PostgresSite, statement: str) -> None:
    said = await _refusal(site.logins["w1"], statement)
    assert any(
        word in said for word in ("permission denied", "is not the worker", "may not pull", "no schema")
    ), said


async def test_a_role_cannot_acknowledge_what_another_worker_holds(site: PostgresSite) -> None:
    async with Ends(site) as ends:
        owner, worker = await ends.owner(), await ends.worker("w1")
        async with worker.working("red", acknowledges=False):
            await owner.offer_until("red", "k1", b"", lambda: worker.pulled)
        id, attempt = worker.pulled[0].receipt.split(":")
        settle = f"SELECT worker_settle('w2', ARRAY[{id}], ARRAY[{attempt}], ARRAY[true])"
        assert await _refusal(site.logins["w2"], settle) == ""
        assert not await owner.carrier.is_empty("red")
        await worker.drain(owner, "red")


async def test_the_owners_login_can_be_any_worker(site: PostgresSite) -> None:
    """The weaker way, for those who cannot make roles."""
    async with Ends(site) as ends:
        owner = await ends.owner()
        worker = PostgresWorker(site.address, "w7")
        await worker.open(lambda data: None, lambda state: None)
        try:
            await repeat_until(
                lambda: worker.to_owner(b"hello"),
                lambda: ("w7", b"hello") in owner.received,
                "a message to the owner",
            )
        finally:
            await worker.close()


async def test_a_space_has_one_owner(site: PostgresSite) -> None:
    async with Ends(site) as ends:
        owner = await ends.owner()
        second = await ends.owner()
        await until_async(lambda: "Another owner" in second.carrier.state.reason, "the second is told why")
        assert owner.carrier.state.up
        await owner.carrier.close()
        await until_async(lambda: second.carrier.state.up, "the second is the owner now")


async def test_a_schema_that_was_dropped_is_made_again(site: PostgresSite) -> None:
    async with Ends(site) as ends:
        owner = await ends.owner()
        await owner.empty("red")
        await site.sql(f"DROP SCHEMA {site.address.schema} CASCADE")
        owner.carrier.offer("red", "k1", b"")
        await owner.empty("red")


async def test_messages_for_one_worker_have_a_limit(
    site: PostgresSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("meantime.carriers.postgres.postgres_owner.MOST_WAITING", 10)
    async with Ends(site) as ends:
        owner, worker = await ends.owner(), await ends.worker("w1")
        for number in range(100):
            owner.carrier.to_worker("absent", b"%d" % number)
            if number % 7 == 0:
                await owner.say_until(
                    "w1", b"%d" % number, lambda data=b"%d" % number: data in worker.received
                )
        count = f"SELECT count(*) FROM {site.address.schema}.message WHERE recipient = 'absent'"
        assert 10 <= int(await site.sql(count)) < 30
