"""Messages to the service manager that started this process, in the protocol of sd_notify(3)."""

from __future__ import annotations

from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import MutableMapping

SOCKET = "NOTIFY_SOCKET"
VARIABLES = (SOCKET, "WATCHDOG_USEC", "WATCHDOG_PID")


class ServiceNotify:
    """Says that the service is ready, alive or stopping. Without a service manager it says nothing.

    A message that cannot be sent is dropped: the manager's own timeouts decide then.
    """

    def __init__(self, address: str | None) -> None:
        # A name that begins with @ is in Linux's abstract namespace.
        self._address = f"\0{address[1:]}" if address and address[0] == "@" else address

    @classmethod
    def take(cls, environ: MutableMapping[str, str]) -> ServiceNotify:
        """Removes the manager's variables from `environ`, so that no command believes they are for it."""
        address = environ.get(SOCKET)
        for name in VARIABLES:
            environ.pop(name, None)
        return cls(address if address and address[0] in "/@" else None)

    def ready(self) -> None:
        self._send(b"READY=1")

    def alive(self) -> None:
        """Resets the manager's watchdog. Meant to be called from the event loop that must not hang."""
        self._send(b"WATCHDOG=1")

    def stopping(self) -> None:
        self._send(b"STOPPING=1")

    def _send(self, message: bytes) -> None:
        if self._address is None:
            return
        import socket  # a daemon that finds another one in its place leaves without it

        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            sender.sendto(message, self._address)
