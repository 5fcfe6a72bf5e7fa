"""Where a NATS server is, and who we are there."""

from __future__ import annotations

import ssl
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

from msgspec import Struct

from meantime.kernel.errors import InvalidInput
from meantime.ports.carrier import check_name

PORT = 4222
LOOPBACK = "127.0.0.1"
TLS_NAME = "meantime"  # in every certificate of a private server, whatever its address


class NatsAddress(Struct, frozen=True):
    """Attributes:
    servers: `host:port` of each server of the cluster.
    user, password: The account; empty on a server that asks for none.
    space: Prefix of every subject: owners that share a server have one each.
    is_secure: TLS is required.
    ca_file: Certificate of the authority that signed the server's; empty: those of the system.
    replicas: Servers of the cluster that keep each queue.
    tls_name: The name that the server's certificate must have; empty: the host of its address.
    is_clear: It may be reached over a network without TLS, which something else encrypts.
    """

    servers: tuple[str, ...]
    user: str = ""
    password: str = ""
    space: str = "meantime"
    is_secure: bool = False
    ca_file: str = ""
    replicas: int = 1
    tls_name: str = ""
    is_clear: bool = False

    def tls(self) -> ssl.SSLContext | None:
        if not self.is_secure:
            return None
        try:
            return ssl.create_default_context(cafile=self.ca_file or None)
        except (OSError, ssl.SSLError) as problem:
            raise InvalidInput(
                f"The certificate {self.ca_file!r} cannot be read: {problem}.",
                hint="Name a PEM file with ?ca=PATH in the carrier's address.",
            ) from None

    def url(self) -> str:
        """As `read_address` reads it, with the password."""
        login = f"{quote(self.user, safe='')}:{quote(self.password, safe='')}@" if self.user else ""
        options = {"ca": self.ca_file} if self.ca_file else {}
        if self.replicas != 1:
            options["replicas"] = str(self.replicas)
        if self.tls_name:
            options["name"] = self.tls_name
        if self.is_clear:
            options["clear"] = "yes"
        query = f"?{urlencode(options)}" if options else ""
        scheme = "tls" if self.is_secure else "nats"
        return f"{scheme}://{login}{','.join(self.servers)}/{self.space}{query}"


def read_address(url: str) -> NatsAddress:
    """Reads `nats://USER:PASSWORD@HOST:PORT,HOST:PORT/SPACE?ca=FILE&name=NAME&replicas=3`.
    `tls://` requires TLS.

    Raises:
        InvalidInput: It cannot be read. The text does not repeat the password.
    """
    try:
        parts = urlsplit(url)
        login, _, hosts = parts.netloc.rpartition("@")
        user, _, password = login.partition(":")
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        servers = tuple(_server(host) for host in hosts.split(","))
        replicas = int(query.pop("replicas", "1"))
        ca_file = query.pop("ca", "")
        tls_name = query.pop("name", "")
        is_clear = {"yes": True, "": False}[query.pop("clear", "")]
    except (ValueError, KeyError):
        servers, query, replicas = (), {"": ""}, 0
        user = password = ca_file = tls_name = ""
        is_clear = False
        parts = urlsplit("")
    if not servers or query or not 1 <= replicas <= 5 or parts.scheme not in ("nats", "tls"):
        raise InvalidInput(
            "This is not the address of a NATS server.",
            hint="Write it as nats://USER:PASSWORD@HOST:4222, or tls://… with ?ca=FILE for a CA of your own.",
        )
    space = check_name("space", parts.path.strip("/") or "meantime")
    is_secure = parts.scheme == "tls" or bool(ca_file)
    address = NatsAddress(
        servers, unquote(user), unquote(password), space, is_secure, ca_file, replicas, tls_name, is_clear
    )
    _check_clear(address)
    if ca_file and not Path(ca_file).is_file():
        address.tls()
    return address


def _server(host: str) -> str:
    parts = urlsplit(f"//{host}")
    if not parts.hostname:
        raise ValueError(host)
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{name}:{parts.port or PORT}"


def is_loopback(host: str) -> bool:
    """Whether nothing that is sent there leaves the machine."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _check_clear(address: NatsAddress) -> None:
    """Input, values of variables and stdin travel to workers: not in the clear, unless that was asked for."""
    if address.is_secure or address.is_clear:
        return
    for server in address.servers:
        if not is_loopback(server.rpartition(":")[0]):
            raise InvalidInput(
                f"nats:// to {server} would send passwords and input in the clear.",
                hint="Use tls://. In a network that is encrypted otherwise, add ?clear=yes to the address.",
            )
