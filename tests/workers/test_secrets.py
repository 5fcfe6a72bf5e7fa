"""Planted secrets are looked for wherever a server between the owner and its workers could show them."""

from __future__ import annotations

import base64
import secrets
from collections.abc import AsyncGenerator, Generator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.waiting import LIMIT, until_async

from carriers.nats_site import nats_site
from carriers.postgres_server import PostgresServer, postgres_server
from carriers.postgres_site import PostgresSite, patience
from carriers.test_nats_accounts import Intruder
from meantime import Call, Meantime, Shell, Status, Thread
from meantime.app.worker_parts import make_worker
from meantime.carriers.postgres.worker_roles import add_worker, remove_worker
from meantime.ports.carrier import OwnerCarrier, WorkerCarrier
from meantime.workers.pools import WorkerPools

from . import jobs
from .conftest import JOBS, PLACE

pytestmark = [pytest.mark.servers, pytest.mark.anyio, pytest.mark.xdist_group("postgres workers")]
NAMES = ("env", "stdin", "argument", "command", "sent", "answer")
PLANTED = {name: f"hunter2-{name}-{secrets.token_hex(4)}" for name in NAMES}
OF_NO_PROCESS = [name for name in NAMES if name != "command"]  # which is in the arguments of its own process
SEEN = "granted"  # is in every copy of a grant: where it is not found, nothing was looked at


def found_in(data: bytes, secret: str) -> bool:
    """As it is, as hexadecimal digits, or as base64, wherever in a longer text it began."""
    raw = secret.encode()
    encoded = (base64.b64encode(bytes(lead) + raw)[4 * bool(lead) :].rstrip(b"=")[:-2] for lead in range(3))
    return any(form in data for form in (raw, raw.hex().encode(), *encoded))


def test_a_secret_is_found_however_it_is_written():
    for text in (b"%s", b"x%s", b"xx%s", b"xxx%syyyy"):
        data = text % PLANTED["env"].encode()
        for form in (data, data.hex().encode(), base64.b64encode(data)):
            assert found_in(form, PLANTED["env"])
            assert not found_in(form, PLANTED["stdin"])


def leaks(places: Mapping[str, bytes], names: Iterable[str] = PLANTED) -> list[tuple[str, str]]:
    return [
        (place, name) for place, data in places.items() for name in names if found_in(data, PLANTED[name])
    ]


def processes(*servers: int) -> dict[str, bytes]:
    """The arguments of every process, and the environments of these."""
    wanted = [(path, "cmdline") for path in Path("/proc").iterdir() if path.name.isdigit()]
    wanted += [(Path("/proc") / str(pid), "environ") for pid in servers]
    found: dict[str, bytes] = {}
    for folder, name in wanted:
        try:
            found[f"{folder}/{name}"] = (folder / name).read_bytes()
        except OSError:
            continue  # it is gone
    return found


def files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@asynccontextmanager
async def work_under_way(folder: Path, owner: OwnerCarrier, end: WorkerCarrier) -> AsyncGenerator[None]:
    """Functions and commands have been given all the planted secrets, and one command still runs."""
    folder.mkdir(exist_ok=True)
    async with Meantime.open(folder / "work.db", carrier=owner) as mt:
        assert mt._pools is not None
        key = mt._pools.public_key
        worker = make_worker(end, folder / "home", key, tools=[JOBS], shell=True, slots=4)
        await worker.open()
        try:
            thread = mt.thread("a")
            called = await thread.start(Call(jobs.length, PLANTED["argument"]), place=PLACE)
            assert await called.result(LIMIT) == len(PLANTED["argument"])
            line = f": {PLANTED['command']}; (cat; echo $SECRET) >{folder}/got; exec sleep 600"
            given = Shell(line, env={"SECRET": PLANTED["env"]}, stdin=PLANTED["stdin"] + "\n")
            handle = await thread.start(given, place=PLACE)
            got, whole = folder / "got", f"{PLANTED['stdin']}\n{PLANTED['env']}\n"
            await until_async(
                lambda: got.exists() and got.read_text() == whole, "the command has got everything"
            )
            await send_and_answer(thread, mt._pools, folder)
            yield
            assert (await handle.cancel(wait=True)).task.status is Status.CANCELLED
        finally:
            await worker.close()


async def send_and_answer(thread: Thread, pools: WorkerPools, folder: Path) -> None:
    """A password that is typed to a prompt, and one that answers a question."""
    got = folder / "sent"
    prompt = await thread.start(Shell(f"read x; printf %s $x >{got}", open_stdin=True), place=PLACE)
    await until_async(lambda: prompt.id in pools._runs, "the prompt is there")
    await prompt.send(PLANTED["sent"] + "\n")
    await until_async(
        lambda: got.exists() and got.read_text() == PLANTED["sent"], "the command has got what was sent"
    )
    asks = await thread.start(Call(jobs.asks_for_a_word, str(folder / "answer")), place=PLACE)

    async def has_asked() -> bool:
        return (await asks.get()).question is not None

    await until_async(has_asked, "it asks")
    await thread.answer(asks, PLANTED["answer"])
    assert await asks.result(LIMIT) == len(PLANTED["answer"])


@pytest.fixture(scope="module")
def server() -> Generator[PostgresServer]:
    with postgres_server() as server:
        yield server


AUDIT = """
    CREATE TABLE {schema}.audit (data bytea);
    CREATE FUNCTION {schema}.keep() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO {schema}.audit VALUES (NEW.data); RETURN NEW; END $$;
    ALTER FUNCTION {schema}.keep() SECURITY DEFINER;
    CREATE TRIGGER keep AFTER INSERT ON {schema}.message FOR EACH ROW EXECUTE FUNCTION {schema}.keep();
    CREATE TRIGGER keep AFTER INSERT ON {schema}.offer FOR EACH ROW EXECUTE FUNCTION {schema}.keep();
"""
TABLES = """
    SELECT format('%I.%I', schemaname, tablename) FROM pg_tables
    WHERE schemaname NOT IN ('pg_catalog', 'information_schema')
"""


async def test_postgresql_never_has_a_secret_on_its_way_to_a_worker(tmp_path: Path, server: PostgresServer):
    """A trigger keeps every message that ever was in its tables: those are removed when they are read."""
    site = PostgresSite(server)
    with patience():
        site.logins["w1"] = await add_worker(site.address, "w1", ("default",))
    try:
        await site.sql(AUDIT.format(schema=site.address.schema))
        async with work_under_way(tmp_path, site.owner(), site.worker("w1")):
            places = await tables(site)
            places["pg_stat_activity"] = (await site.sql("SELECT query FROM pg_stat_activity")).encode()
            running = processes(server.pid, *server.children())
            await site.sql("CHECKPOINT")  # the pages of unlogged tables are written, too
            places |= files(server._data.parent)
        seen = {name for name, data in places.items() if found_in(data, SEEN)}
        assert any(name.endswith(".audit") for name in seen), "no grant was looked at"
        assert any(name.startswith("/") for name in seen), "no page with a grant was looked at"
        assert leaks(places) == []
        assert leaks(running, OF_NO_PROCESS) == []
    finally:
        with patience():
            await remove_worker(site.address, "w1")
        await site.sql(f"DROP SCHEMA {site.address.schema} CASCADE")


async def tables(site: PostgresSite) -> dict[str, bytes]:
    names = (await site.sql(TABLES)).split()
    return {name: (await site.sql(f"SELECT t::text FROM {name} t")).encode() for name in names}


async def test_nats_never_has_a_secret_on_its_way_to_a_worker(tmp_path: Path):
    """Somebody listens to everything that the owner's account can hear."""
    async with nats_site(tmp_path / "nats") as site:
        site.server.add_worker("w3", ("default",))
        heard: list[bytes] = []
        async with Intruder(site.server.owner_address()) as listener:

            async def hear(message: object) -> None:
                heard.append(message.data)  # type: ignore[attr-defined]

            await listener.client.subscribe("meantime.>", cb=hear)
            await listener.client.flush()
            async with work_under_way(tmp_path / "work", site.owner(), site.worker("w3")):
                assert site.server.process is not None
                running = processes(site.server.process.pid)
                places = files(site.folder)
            places |= {f"message {number}": data for number, data in enumerate(heard)}
        assert any(found_in(data, SEEN) for data in heard), "no grant was looked at"
        assert leaks(places) == []
        assert leaks(running, OF_NO_PROCESS) == []
