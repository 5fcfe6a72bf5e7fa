"""The certificate authority of a private server, fetched from it and accepted by its fingerprint alone."""

from __future__ import annotations

import hashlib
import json
import socket
import ssl
from typing import Any

from meantime.kernel.errors import Disconnected, InvalidInput

from .join_line import ANOTHER
from .nats_address import TLS_NAME

WAIT = 5.0  # seconds for each step
MOST_GREETING = 64 * 1024  # bytes


def fetch_authority(server: str, fingerprint: bytes) -> str:
    """The authority's certificate as PEM. Blocks; nothing is sent to the server but a TLS handshake.

    Raises:
        Disconnected: Nobody answers there, or not as a NATS server with TLS does.
        InvalidInput: The server shows another authority than the pinned one.
    """
    host, _, port = server.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=WAIT) as plain:
            greeting = _greeting(plain)
            if not greeting.get("tls_required"):
                raise Disconnected(
                    f"The server at {server} does not require TLS.", hint=f"Is it the owner's? {ANOTHER}"
                )
            chain = _chain(plain)
    except OSError as problem:  # ssl.SSLError is one
        raise _unreachable(server, problem) from None
    for certificate in chain:
        if hashlib.sha256(certificate).digest() == fingerprint:
            return ssl.DER_cert_to_PEM_cert(certificate)
    raise InvalidInput(
        f"The server at {server} does not have the certificate authority that the join line pins "
        f"(SHA-256 {fingerprint.hex()}). It is another server, or somebody in between.",
        hint=f"Nothing was sent to it. Check the address. {ANOTHER}",
    )


def _greeting(plain: socket.socket) -> dict[str, Any]:
    """NATS speaks first, in the clear, and says whether it wants TLS. Not a byte more is read: the next ones
    belong to the handshake, which waits for us."""
    with plain.makefile("rb", buffering=0) as file:
        line = b""
        while not line.endswith(b"\n") and len(line) < MOST_GREETING:
            more = file.read(1024)
            if not more:
                break
            line += more
    if not line.startswith(b"INFO "):
        raise ConnectionError("it is not a NATS server")
    try:
        return dict(json.loads(line[5:]))
    except ValueError:
        raise ConnectionError("its greeting cannot be read") from None


def _chain(plain: socket.socket) -> list[bytes]:
    """The certificates that the server shows, unverified."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with context.wrap_socket(plain, server_hostname=TLS_NAME) as secured:
        public: Any = getattr(secured, "get_unverified_chain", None)
        if public is not None:  # Python 3.13
            return list(public())
        # Before 3.13 only the object below has it.
        inner: Any = getattr(secured, "_sslobj", None)
        found: Any = inner.get_unverified_chain()
        return [ssl.PEM_cert_to_DER_cert(one.public_bytes()) for one in found]


def _unreachable(server: str, problem: OSError) -> Disconnected:
    said = problem.strerror or str(problem) or type(problem).__name__
    return Disconnected(
        f"Nobody answers at {server} as the owner's server does: {said}.",
        hint="Is the daemon up there (`meantime status`), and does a firewall let the port through? "
        f"If its address has changed: {ANOTHER[0].lower()}{ANOTHER[1:]}",
    )
