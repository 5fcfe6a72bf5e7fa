"""The peer of a local connection: the user that the kernel says it is."""

from __future__ import annotations

import ipaddress
import socket
import struct
from pathlib import Path
from typing import Any

from meantime.link.unix_address import credentials

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))


def peer_uid(transport: Any) -> int | None:
    """The user id of the process that connected; None where nobody can say."""
    connected = transport.get_extra_info("socket")
    if connected is None:
        return None
    if connected.family == socket.AF_UNIX:
        return credentials(connected)[1]
    return tcp_peer_uid(transport.get_extra_info("peername"), transport.get_extra_info("sockname"))


def tcp_peer_uid(peer: Any, own: Any) -> int | None:
    """The owner of the socket that is bound to the peer's address and connected to ours. It is in
    this machine's table only if the peer is on this machine."""
    try:
        wanted = _rows(peer, own)
        for table in TABLES:
            for line in table.read_text().splitlines()[1:]:
                fields = line.split()
                # Without an inode nobody holds the socket any more, and its owner reads as root.
                if (fields[1], fields[2]) in wanted and fields[9] != "0":
                    return int(fields[7])
    except (OSError, ValueError, IndexError, TypeError):
        return None
    return None


def _rows(peer: Any, own: Any) -> set[tuple[str, str]]:
    """How the peer's end is written in either table: IPv4 as it is, or mapped into IPv6."""
    pairs = zip(_written(*peer[:2]), _written(*own[:2]), strict=False)
    return set(pairs)


def _written(host: str, port: int) -> list[str]:
    address = ipaddress.ip_address(host.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if not address.is_loopback:
        raise ValueError("not of this machine")
    forms = [address.packed]
    if address.version == 4:
        forms.append(b"\0" * 10 + b"\xff\xff" + address.packed)
    return [f"{_words(form)}:{port:04X}" for form in forms]


def _words(packed: bytes) -> str:
    """Words of 32 bits, each in the machine's own byte order, as the kernel prints them."""
    return "".join(f"{word:08X}" for word in struct.unpack(f"={len(packed) // 4}I", packed))
