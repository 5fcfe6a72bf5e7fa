"""Placed work where PostgreSQL is the carrier: a real server, real processes, killed with -9."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from tests.waiting import LIMIT, until, until_async

from carriers.postgres_server import PostgresServer, postgres_server
from carriers.postgres_site import patience
from meantime import Call, Meantime, Shell, Status
from meantime.app.worker_parts import make_worker
from meantime.carriers.postgres.postgres_client import PostgresAddress
from meantime.carriers.postgres.postgres_owner import PostgresOwner
from meantime.carriers.postgres.postgres_worker import PostgresWorker
from meantime.carriers.postgres.worker_roles import add_worker, remove_worker

from . import jobs
from .conftest import JOBS, PLACE
from .test_processes import Machine, started

pytestmark = [pytest.mark.servers, pytest.mark.xdist_group("postgres workers")]


@pytest.fixture(scope="module")
def server() -> Generator[PostgresServer]:
    with postgres_server() as server:
        yield server


class PostgresMachine(Machine):
    """Its daemon and its worker meet at the server; the worker has a role of its own."""

    def __init__(self, folder: Path, server: PostgresServer) -> None:
        super().__init__(folder)
        self.address = PostgresAddress(server.url(), f"t{secrets.token_hex(4)}")
        self.env["MEANTIME_ENGINE_CARRIER"] = f"{self.address.url}?space={self.address.space}"

    def configure(self) -> None:
        with patience():
            login = asyncio.run(add_worker(self.address, "w1", ("default",)))
        key = self.json("workers")["ownerKey"]
        (self.folder / "config.toml").write_text(
            f'[worker]\ncarrier = "{login.url}?space={login.space}"\nname = "w1"\nowner_key = "{key}"\n'
            "shell = true\ndrain = 1\n"
        )


@pytest.fixture
def machine(tmp_path: Path, server: PostgresServer) -> Iterator[PostgresMachine]:
    machine = PostgresMachine(tmp_path, server)
    machine.run("up")
    machine.configure()
    try:
        yield machine
    finally:
        for worker in machine.workers:
            worker.terminate()
            worker.wait(LIMIT)
        machine.run("down", "--stop")
        with patience():
            asyncio.run(remove_worker(machine.address, "w1"))


def test_a_command_outlives_its_worker_and_its_owner(machine: PostgresMachine):
    worker = machine.worker()
    id = started(machine)
    worker.kill()
    worker.wait(LIMIT)
    machine.worker()
    machine.kill_daemon()
    machine.run("up")
    (machine.folder / "go").touch()
    until(lambda: machine.state(id) == "completed", "the task has completed")
    assert machine.run("logs", id) == "begun\ndone\n"
    assert machine.json("show", id)["worker"] == "w1"
    assert len(machine.json("inbox", "conv")["notices"]) == 1


def test_a_command_is_cancelled_and_a_label_is_waited_for(machine: PostgresMachine):
    machine.worker()
    id = started(machine)
    machine.run("cancel", id)
    until(lambda: machine.state(id) == "cancelled", "the task is cancelled")
    waits = machine.run("run", "-q", "--place", "pool:default?gpu=a100", "--", "true").strip()
    assert "no worker of pool default has the label gpu=a100" in machine.run("show", waits)
    assert "gpu=a100" in machine.run("status")
    assert "1 wait: no worker of pool default" in machine.run("workers")
    assert "waits: no worker of pool default" in machine.run("ps")
    machine.run("cancel", waits)


@pytest.mark.anyio
async def test_functions_and_output_cross_the_server(tmp_path: Path, server: PostgresServer):
    address = PostgresAddress(server.url(), f"t{secrets.token_hex(4)}")
    with patience():
        login = await add_worker(address, "w1", ("default",))
    try:
        async with Meantime.open(tmp_path / "work.db", carrier=PostgresOwner(address)) as mt:
            assert mt._pools is not None
            key = mt._pools.public_key
            worker = make_worker(
                PostgresWorker(login, "w1"), tmp_path / "home", key, tools=[JOBS], shell=True, slots=4
            )
            await worker.open()
            try:
                thread = mt.thread("a")
                assert await (await thread.start(Call(jobs.add, 1, 2), place=PLACE)).result(LIMIT) == 3
                big = await thread.start(Call(jobs.big, 1_000_000), place=PLACE)
                assert await big.result(LIMIT) == "x" * 1_000_000
                work = Shell("seq 1 40000; read x; echo $x", open_stdin=True)
                command = await thread.start(work, place=PLACE)

                async def is_printed() -> bool:
                    return (await command.log.tail(1)).text == "40000\n"

                await until_async(is_printed, "the last line is there")
                await command.send("hello\n")
                assert (await command.wait(LIMIT)).status is Status.COMPLETED
                assert (await command.log.tail(1)).text == "hello\n"
            finally:
                await worker.close()
    finally:
        with patience():
            await remove_worker(address, "w1")
