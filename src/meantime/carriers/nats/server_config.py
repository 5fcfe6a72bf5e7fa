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
    """An account on the private server; `pools` are those that a worker may pull from."""

    password: str
    pools: tuple[str, ...] = ()


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
    tls: ServerTls | None,
) -> bytes:
    """The owner may do everything below its space; each worker has the four subjects of its own."""
    subjects = NatsSubjects(space)
    users: list[dict[str, object]] = [
        {"user": "owner", "password": owner.password},
        *(
            {
                "user": f"worker-{name}",
                "password": login.password,
                "permissions": {
                    way: {"allow": allowed}
                    for way, allowed in subjects.permissions(name, login.pools).items()
                },
            }
            for name, login in workers.items()
        ),
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
