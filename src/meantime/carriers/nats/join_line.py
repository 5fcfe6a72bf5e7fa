"""The join line: everything that a worker needs to join an owner, in one word that can be copied.

It names the server, pins the authority of its certificate and the key of the owner, and holds a login that
can be traded for that of a worker, once and for a short time. A checksum finds a line that was cut off.
"""

from __future__ import annotations

import base64
import binascii
import zlib

import msgspec
from msgspec import Struct

from meantime.kernel.errors import InvalidInput

PREFIX = "mtjoin"
VERSION = 1
MOST_CHARACTERS = 2_000
CHECK = 4  # bytes
ANOTHER = "Print another one on the owner's machine: meantime workers join-line"


class JoinLine(Struct, frozen=True, array_like=True):
    """Attributes:
    server: `host:port`.
    space: Prefix of all subjects.
    fingerprint: SHA-256 of the authority's certificate; empty on loopback, without TLS.
    owner_key: The owner's public key.
    id, password: The login that is traded.
    expires: Seconds since the epoch, by the owner's clock; 0 is never.
    """

    server: str
    space: str
    fingerprint: bytes
    owner_key: str
    id: str
    password: str
    expires: int

    def text(self) -> str:
        data = msgspec.msgpack.encode(self)
        word = base64.urlsafe_b64encode(zlib.crc32(data).to_bytes(CHECK, "big") + data).decode().rstrip("=")
        return f"{PREFIX}{VERSION}-{word}"


def read_join_line(text: str) -> JoinLine:
    """Reads a line as `text` writes it. Space, line breaks and quotes around or within it do not matter: a
    terminal may have wrapped it.

    Raises:
        InvalidInput: It is not a join line, was cut off or changed, or is of another version.
    """
    word = "".join(text[: 2 * MOST_CHARACTERS].split()).strip("'\"")
    head, _, body = word.partition("-")
    if not head.startswith(PREFIX) or not body or len(word) > MOST_CHARACTERS:
        raise InvalidInput(
            f"This is not a join line: it does not begin with {PREFIX}{VERSION}-.", hint=ANOTHER
        )
    if head != f"{PREFIX}{VERSION}":
        raise InvalidInput(
            f"This join line is of another version of Meantime ({head[: len(PREFIX) + 4]}).",
            hint="Install the same version of Meantime on the owner and its workers.",
        )
    try:
        data = base64.b64decode(body + "=" * (-len(body) % 4), altchars=b"-_", validate=True)
        line = msgspec.msgpack.decode(data[CHECK:], type=JoinLine)
        if line.text() == word:  # with its checksum
            return line
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        pass
    raise InvalidInput(
        f"This join line is cut off or was changed; it has {len(word)} characters.",
        hint=f"Copy it whole. {ANOTHER}",
    )
