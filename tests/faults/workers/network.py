"""The way from a worker to the broker, which can be cut: silently, as a network does it.

Where network namespaces can be made each worker is in one of its own, and its cable is unplugged. Elsewhere a
relay on loopback stops to pass anything on.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress

from tests.waiting import LIMIT

LOOPBACK = "127.0.0.1"
PIECE = 65_536


class Relays:
    """TCP relays, on an event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._relays: list[Relay] = []
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def add(self, host: str, port: int) -> Relay:
        relay = Relay(self._loop)
        asyncio.run_coroutine_threadsafe(relay.open(host, port), self._loop).result(LIMIT)
        self._relays.append(relay)
        return relay

    def close(self) -> None:
        for relay in self._relays:
            self._loop.call_soon_threadsafe(relay.close)
        asyncio.run_coroutine_threadsafe(_end_others(), self._loop).result(LIMIT)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(LIMIT)
        self._loop.close()


async def _end_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


class Relay:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._passing = asyncio.Event()
        self._passing.set()
        self._target = 0
        self._server: asyncio.Server | None = None
        self.port = 0

    async def open(self, host: str, target: int) -> None:
        self._target = target
        self._server = await asyncio.start_server(self._serve, host, 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        if self._server is not None:
            self._server.close()

    def cut(self) -> None:
        self._loop.call_soon_threadsafe(self._passing.clear)

    def mend(self) -> None:
        self._loop.call_soon_threadsafe(self._passing.set)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._passing.wait()
        try:
            there_reader, there = await asyncio.open_connection(LOOPBACK, self._target)
        except OSError:
            writer.transport.abort()
            return
        ways = [
            asyncio.ensure_future(self._pass(reader, there)),
            asyncio.ensure_future(self._pass(there_reader, writer)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            await self._passing.wait()  # that the other end is gone is not known while nothing passes
        finally:
            for each in ways:
                each.cancel()
            for end in (writer, there):
                end.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(PIECE):
                await self._passing.wait()
                writer.write(data)
                await writer.drain()


class Loopback:
    """No namespace: the relay itself is what can be cut."""

    def __init__(self, relays: Relays, ports: Sequence[int]) -> None:
        self._relays = [relays.add(LOOPBACK, port) for port in ports]
        self.host = LOOPBACK
        self.ports = [relay.port for relay in self._relays]
        self.before: list[str] = []  # words before the program

    def cut(self) -> None:
        for relay in self._relays:
            relay.cut()

    def mend(self) -> None:
        for relay in self._relays:
            relay.mend()

    def close(self) -> None:
        """The loop of the relays ends with them."""


class Namespace:
    """A machine of its own, as far as the network is concerned, behind a cable that can be unplugged."""

    def __init__(self, relays: Relays, ports: Sequence[int], number: int) -> None:
        self._name = f"mtf{os.getpid()}w{number}"
        self._cable = f"mtf{os.getpid() % 100_000}h{number}"
        other = f"mtf{os.getpid() % 100_000}w{number}"
        net = f"10.{200 + os.getpid() % 50}.{os.getpid() // 50 % 250}.{number * 4}"
        first, second = (f"{net.rpartition('.')[0]}.{number * 4 + n}" for n in (1, 2))
        # While the cable is unplugged it has no route: nothing that is meant for it may leave this machine.
        self._nowhere = ("blackhole", f"{net}/30", "metric", "4000")
        _ip("netns", "add", self._name)
        try:
            _ip("route", "add", *self._nowhere)
            _ip("link", "add", self._cable, "type", "veth", "peer", "name", other)
            _ip("link", "set", other, "netns", self._name)
            _ip("addr", "add", f"{first}/30", "dev", self._cable)
            _ip("link", "set", self._cable, "up")
            _ip("-n", self._name, "addr", "add", f"{second}/30", "dev", other)
            _ip("-n", self._name, "link", "set", other, "up")
            _ip("-n", self._name, "link", "set", "lo", "up")
            self.host = first
            self.ports = [relays.add(first, port).port for port in ports]
        except BaseException:
            self.close()
            raise
        self.before = ["ip", "netns", "exec", self._name]

    def cut(self) -> None:
        _ip("link", "set", self._cable, "down")

    def mend(self) -> None:
        _ip("link", "set", self._cable, "up")

    def close(self) -> None:
        for words in (
            ("link", "del", self._cable),
            ("netns", "del", self._name),
            ("route", "del", *self._nowhere),
        ):
            subprocess.run(["ip", *words], capture_output=True)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def way(relays: Relays, ports: Sequence[int], number: int) -> Loopback | Namespace:
    try:
        return Namespace(relays, ports, number)
    except (OSError, subprocess.CalledProcessError):
        return Loopback(relays, ports)
