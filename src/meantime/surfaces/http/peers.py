"""The peer of a local connection: the user that the system says it is."""

from __future__ import annotations

import ipaddress
import os
import socket
from typing import Any

from meantime.system import platform

Address = tuple[bytes, int]  # packed, and the port


def peer_uid(transport: Any) -> int | None:
    """The user id of the process that connected; None where nobody can say.

    A system that never says it for Unix sockets leaves it to the folder of the socket, which lets no other
    user in: Home.check sees to that.
    """
    connected = transport.get_extra_info("socket")
    if connected is None:
        return None
    if connected.family == socket.AF_UNIX:
        return platform.peer_credentials(connected)[1] if platform.KNOWS_PEERS else os.geteuid()
    return tcp_peer_uid(transport.get_extra_info("peername"), transport.get_extra_info("sockname"))


def tcp_peer_uid(peer: Any, own: Any) -> int | None:
    """The owner of the socket that is bound to the peer's address and connected to ours. The system knows it
    only if the peer is on this machine."""
    try:
        pairs = set(zip(_forms(*peer[:2]), _forms(*own[:2]), strict=False))
    except (ValueError, IndexError, TypeError):
        return None
    return platform.tcp_owner(pairs)


def _forms(host: str, port: int) -> list[Address]:
    """How an end may be written: IPv4 as it is, or mapped into IPv6."""
    address = ipaddress.ip_address(host.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if not address.is_loopback:
        raise ValueError("not of this machine")
    forms = [(address.packed, port)]
    if address.version == 4:
        forms.append((b"\0" * 10 + b"\xff\xff" + address.packed, port))
    return forms
