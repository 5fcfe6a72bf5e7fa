"""The configuration of a private NATS server, as JSON, which NATS reads as its own format."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from .nats_subjects import NatsSubjects

MAX_PAYLOAD = 1024 * 1024
MEMORY = 512 * 1024 * 1024  # bytes of all queues
MOST_CONNECTIONS = 1024
LOG_BYTES = 4 * 1024 * 1024  # of the log, and of the one before it


class ServerLogin(Struct, frozen=True):
    """An account on the private server; `pools` are those that a worker may pull from, and `is_own` a worker
    of the owner's own machine and user."""

    password: str
    pools: tuple[str, ...] = ()
    is_own: bool = False


class JoinCredential(Struct):
    """The login of a join line: it can ask the owner for the login of a worker, once, and nothing else.

    Attributes:
        expires: When its time is over, in seconds since the epoch; 0 is never.
        is_own: For workers of the owner's own machine and user, as many as they like.
        worker, used_by: The worker that it was traded for, and a hash of that worker's password.
    """

    password: str
    pools: tuple[str, ...]
    expires: float
    is_own: bool = False
    worker: str = ""
    used_by: str = ""


class ServerTls(Struct, frozen=True):
    """Files of the server's certificate and key."""

    certificate: str
    key: str


def server_config(
    *,
    host: str,
    port: int,
    folder: str,
    name: str,
    space: str,
    owner: ServerLogin,
    workers: Mapping[str, ServerLogin],
    lines: Mapping[str, JoinCredential],
    tls: ServerTls | None,
) -> bytes:
    """The owner may do everything below its space; each worker has the four subjects of its own, each
    join line the two by which it is traded for a login."""
    subjects = NatsSubjects(space)
    users: list[dict[str, object]] = [
        {"user": "owner", "password": owner.password},
        *(
            _user(f"worker-{worker}", login.password, subjects.permissions(worker, login.pools))
            for worker, login in workers.items()
        ),
        *(_user(f"join-{id}", line.password, subjects.join_permissions(id)) for id, line in lines.items()),
    ]
    config: dict[str, object] = {
        "listen": f"{host}:{port}",
        "server_name": name,
        "max_payload": MAX_PAYLOAD,
        "max_connections": MOST_CONNECTIONS,
        "max_pending": 64 * 1024 * 1024,  # bytes that wait for one slow client, which is then disconnected
        "jetstream": {"store_dir": f"{folder}/jetstream", "max_memory_store": MEMORY, "max_file_store": 0},
        "accounts": {"MEANTIME": {"jetstream": "enabled", "users": users}},
        "log_file": f"{folder}/nats.log",
        "logfile_size_limit": LOG_BYTES,
        "logfile_max_num": 2,
    }
    if tls is not None:
        config["tls"] = {"cert_file": tls.certificate, "key_file": tls.key, "timeout": 5}
    return msgspec.json.format(msgspec.json.encode(config))


def _user(name: str, password: str, permissions: Mapping[str, list[str]]) -> dict[str, object]:
    allowed = {way: {"allow": subjects} for way, subjects in permissions.items()}
    return {"user": name, "password": password, "permissions": allowed}
