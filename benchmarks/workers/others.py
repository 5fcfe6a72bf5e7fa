"""The same work on Meantime, Celery, docket and Temporal, each with two workers in processes of their own: a
worker that is killed, a broker that is restarted, a cancel, and the CPU time of no-op tasks."""

from __future__ import annotations

import sysconfig
import time
from pathlib import Path

from meantime.carriers.nats.nats_address import NatsAddress
from meantime.carriers.nats.server_config import ServerLogin, server_config

from ..measure import p50, table
from ..peers.crew import OWN, Crew, Peer, crew_of, until
from ..peers.peer_rows import CELERY, DOCKET, TEMPORAL

LONG = 12.0  # seconds of a long task: in the place of 30, with every timeout shortened alike
LEASE = 15.0  # seconds after which a worker counts as gone: more than a long task where it must be
RUNNING, NOOPS, CANCELS = 4, 300, 5
DOWN = 1.2  # seconds that a broker or a worker is away
PASSWORD = "of-the-benchmark"


def _nats(folder: Path, port: int) -> list[str]:
    login = ServerLogin(PASSWORD, ("default",))
    config = server_config(
        host="127.0.0.1", port=port, folder=str(folder), name="bench", space="meantime",
        owner=ServerLogin(PASSWORD), workers={"w1": login, "w2": login}, lines={}, tls=None,
    )  # fmt: skip
    (folder / "nats.conf").write_bytes(config)
    return [str(Path(sysconfig.get_path("scripts")) / "nats-server"), "-c", str(folder / "nats.conf")]


MEANTIME = NatsAddress(("127.0.0.1:{port}",), "owner", PASSWORD).url()
QUEUES = [
    Peer(
        "Meantime, NATS", "retry=idempotent", "", OWN, ["meantime_queue.py", "client"],
        ["meantime_queue.py", "worker", "{name}"], _nats, MEANTIME,
    ),
    CELERY, DOCKET, TEMPORAL,
]  # fmt: skip


def _run_long(crew: Crew, prefix: str) -> None:
    ids = [f"{prefix}-{number}" for number in range(RUNNING)]
    crew.ask(do="start", ids=ids, seconds=LONG)
    until(lambda: len(crew.count("began", prefix)) == RUNNING)


def _outcome(crew: Crew, prefix: str) -> str:
    """Executions, those that came to their end, and those that nobody finished."""
    until(lambda: len(crew.count("ended", prefix)) == RUNNING, 3 * LONG + LEASE)
    time.sleep(2.0)  # another execution may have been on its way
    begun, ended = crew.count("began", prefix), crew.count("ended", prefix)
    return f"{begun.total()} begun, {ended.total()} ended, {RUNNING - len(ended)} lost"


def killed_worker(crew: Crew) -> str:
    _run_long(crew, "kill")
    crew.kill("w1")
    time.sleep(DOWN)
    crew.start_worker("w1")
    return _outcome(crew, "kill")


def restarted_broker(crew: Crew) -> tuple[str, str]:
    """And whether a cancel of one of them is heard afterwards."""
    _run_long(crew, "broker")
    crew.ask(do="start", ids=["after-0"], seconds=LONG)
    until(lambda: crew.count("began", "after"))
    crew.kill("broker")
    time.sleep(DOWN)
    crew.start_broker()
    time.sleep(1.0)
    asked = time.time()
    crew.ask(do="cancel", id="after-0")
    heard = until(lambda: crew.count("cancelled", "after"), LONG)
    cancel = f"after {crew.at('cancelled', 'after-0') - asked:.2f} s" if heard else "not heard"
    return _outcome(crew, "broker"), cancel


def cancel_delay(crew: Crew) -> str:
    delays: list[float] = []
    for number in range(CANCELS):
        id = f"cancel-{number}"
        crew.ask(do="start", ids=[id], seconds=LONG)
        if not until(lambda id=id: crew.count("began", id)):
            return "never began"
        asked = time.time()
        crew.ask(do="cancel", id=id)
        if not until(lambda id=id: crew.count("cancelled", id), LONG):
            return "not heard"
        delays.append(crew.at("cancelled", id) - asked)
    return f"{p50(delays) * 1e3:,.0f} ms"


def cpu_per_task(crew: Crew) -> str:
    before = crew.cpu()
    crew.ask(do="noops", count=NOOPS)
    return f"{(crew.cpu() - before) / NOOPS * 1e3:.2f} ms"


def played(peer: Peer) -> list[str]:
    if peer.absent:
        return [peer.name, f"not played: {peer.absent}", "", "", "", ""]
    try:
        with crew_of(peer, LEASE) as crew:
            cpu, delay = cpu_per_task(crew), cancel_delay(crew)
            killed = killed_worker(crew)
            broker, cancel = restarted_broker(crew)
            return [peer.name, cpu, delay, killed, broker, cancel]
    except (OSError, KeyError) as problem:
        return [peer.name, f"failed: {problem}"[:200], "", "", "", ""]


def run() -> None:
    rows = [played(peer) for peer in QUEUES]
    table(
        f"Two workers each; {RUNNING} tasks of {LONG:g} s while a worker is killed with -9, and while the "
        f"broker is restarted ({DOWN:g} s)",
        ["", "CPU of a no-op, all processes", "cancel, p50", "worker killed", "broker restarted",
         "cancel after that"],
        rows,
    )  # fmt: skip
    table(
        f"Settings; a worker is gone after {LEASE:g} s",
        ["", ""],
        [[peer.name, peer.settings] for peer in QUEUES],
    )
