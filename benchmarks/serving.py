"""A daemon under load: a thousand tasks a second over the link, a hundred event streams, reads meanwhile."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from meantime import Call, Meantime
from meantime.daemon.daemon_autostart import answers
from meantime.daemon.home import Home

from .loading import PATHS, Line, noop
from .measure import UNLIMITED, folder, p50, ratio, table, us, verdict

RATE, SECONDS, STREAMS = 1_000, 10.0, 100
READ_TARGET = 50.0  # milliseconds, p99
MEMORY_TARGET = 32.0  # MB
NEVER_READ_TASKS = 2_000
ROUNDS = 300
CONFIG = """
[http]
enabled = false
clients = 256
connections = 2000
[limits]
per_thread = -1
total = -1
queued = -1
[wakes]
rounds = -1
"""
PROFILE = "MEANTIME_BENCH_PROFILE"  # a file: the daemon runs under cProfile, and leaves its figures there


class Daemon:
    def __init__(self, place: Path) -> None:
        self._short = tempfile.TemporaryDirectory(prefix="meantime-")  # a socket's path must be short
        link = Path(self._short.name, "home")
        place.joinpath("home").mkdir(mode=0o700)
        link.symlink_to(place / "home")
        config = place / "config.toml"
        config.write_text(CONFIG)
        self.home = Home(link, config)
        environ = {**os.environ, "MEANTIME_HOME": str(link), "MEANTIME_CONFIG": str(config)}
        profile = os.environ.get(PROFILE)
        profiling = ["-m", "cProfile", "-o", profile] if profile else []
        program = [sys.executable, *profiling, "-m", "meantime.app.daemon", "--foreground"]
        self.process = subprocess.Popen(program, env=environ, stderr=subprocess.DEVNULL)
        _until(lambda: answers(self.home), "the daemon does not answer")

    @property
    def rss(self) -> float:
        """In MB."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))

    @property
    def descriptors(self) -> tuple[int, int]:
        """Those of the ledger, which SQLite keeps for the next reader; and all others."""
        place = Path(f"/proc/{self.process.pid}/fd")
        names: list[str] = []
        for entry in os.listdir(place):
            with suppress(OSError):  # it was closed meanwhile
                names.append(os.readlink(place / entry))
        own = sum("ledger.db" in name for name in names)
        return own, len(names) - own

    @property
    def cpu(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def get(self, path: str) -> bytes:
        line = Line(str(self.home.http_socket))
        try:
            return line.get(path)
        finally:
            line.close()

    def close(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        self._short.cleanup()


@contextmanager
def daemon() -> Iterator[Daemon]:
    with folder() as place:
        made = Daemon(place)
        try:
            yield made
        finally:
            made.close()


class Part:
    """One of the processes of loading.py."""

    def __init__(self, part: str, **given: Any) -> None:
        words = [sys.executable, "-m", "benchmarks.loading", part, json.dumps(given)]
        self._process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)

    def ready(self) -> Part:
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"
        return self

    def result(self) -> dict[str, Any]:
        said = self._process.communicate(timeout=240)[0]
        assert self._process.returncode == 0, f"exit {self._process.returncode}"
        return json.loads(said)

    def stop(self) -> dict[str, Any]:
        self._process.send_signal(signal.SIGTERM)
        return self.result()

    def end(self) -> None:
        self._process.terminate()
        self._process.wait(30)


def _until(true: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end, what
        time.sleep(0.01)


class Samples(threading.Thread):
    """The memory of the daemon, twice a second."""

    def __init__(self, of: Daemon) -> None:
        super().__init__(daemon=True)
        self._of = of
        self._over = threading.Event()
        self.seen: list[float] = []

    def run(self) -> None:
        while not self._over.wait(0.5):
            self.seen.append(self._of.rss)

    def grown(self) -> float:
        """Over the second half."""
        self._over.set()
        self.join()
        return self.seen[-1] - self.seen[len(self.seen) // 2]


def under_load() -> None:
    busy = os.getloadavg()[0]  # whoever else uses this machine is in these figures
    with daemon() as ours:
        id, bodies = _prepared(ours)
        socket = str(ours.home.http_socket)
        beside = str(Path(tempfile.gettempdir(), f"meantime-bare-{os.getpid()}"))
        bare = Part("bare", path=beside, bodies=bodies, id=id)
        _until(lambda: Path(beside).exists(), "the bare app does not listen")
        places = {"meantime": socket, "bare": beside}
        quiet = Part("reader", places=places, id=id, seconds=2.0).result()
        streams = Part("followers", path=socket, count=STREAMS, reads=True).ready()
        before, used, samples = ours.rss, ours.cpu, Samples(ours)
        samples.start()
        starter = Part("starter", link=str(ours.home.link_socket), rate=RATE, seconds=SECONDS)
        reads = Part("reader", places=places, id=id, seconds=SECONDS).result()
        done = starter.result()
        grown, used = samples.grown(), ours.cpu - used
        followed = streams.stop()
        bare.end()
        Path(beside).unlink(missing_ok=True)
    print(f"\nload average before: {busy:.1f}, on {os.cpu_count()} processors")
    _reads_table(quiet, reads)
    rate = done["started"] / done["seconds"]
    lost, alive = done["started"] - done["unique"], followed["alive"]
    table(
        f"{RATE:,} tasks/s over the link for {SECONDS:g} s, {STREAMS} event streams and a reader beside it",
        ["", "", "target"],
        [
            ["started per second", f"{rate:,.0f}", verdict(rate, RATE * 0.98, at_most=False)],
            ["start → ack, p50 / p99", f"{_ms(done['took'], 'p50')} / {_ms(done['took'], 'p99')}", ""],
            ["started / told / lost", f"{done['started']:,} / {done['told']:,} / {lost}", verdict(lost, 0)],
            ["told twice", str(done["told"] - done["unique"]), verdict(done["told"] - done["unique"], 0)],
            [
                "streams that stayed",
                str(alive),
                verdict(alive, STREAMS, at_most=False),
            ],
            ["endings in each stream, at least", f"{followed['ended']:,}", _all(followed, done)],
            ["new beginnings (resync), all streams", f"{followed['resyncs']:,}", ""],
            ["sent to streams", f"{followed['bytes'] / 1e6:,.0f} MB", ""],
            ["CPU of the daemon", f"{used:.1f} s", ""],
            ["memory before / most", f"{before:.0f} / {max(samples.seen):.0f} MB", ""],
            ["memory, growth over the second half", f"{grown:.1f} MB", verdict(grown, MEMORY_TARGET)],
        ],
    )


def _prepared(ours: Daemon) -> tuple[str, list[str]]:
    """Fifty ended tasks to be listed, and what the daemon answers about them."""

    async def fifty() -> str:
        async with Meantime.connect(ours.home.link_socket, start=False) as mt:
            handles = [await mt.thread("first").start(Call(noop)) for _ in range(50)]
            await mt.thread("first").wait(*handles)
            return handles[-1].id

    id = asyncio.run(fifty())
    return id, [ours.get(path.format(id=id)).decode() for path in PATHS]


def _all(followed: dict[str, Any], done: dict[str, Any]) -> str:
    """A stream that begins again has the state in its new snapshot, and not every event."""
    return "" if followed["resyncs"] else verdict(followed["ended"], done["started"], at_most=False)


def _ms(found: dict[str, float], name: str) -> str:
    return f"{found[name] * 1e3:.1f} ms"


def _reads_table(quiet: dict[str, Any], loaded: dict[str, Any]) -> None:
    rows: list[list[str]] = []
    for title, found in (("quiet", quiet), ("under load", loaded)):
        for path in PATHS:
            ours, bare = found[f"meantime {path}"], found[f"bare {path}"]
            judged = verdict(ours["p99"] * 1e3, READ_TARGET) if title == "under load" else ""
            both = [f"{_ms(one, 'p50')} / {_ms(one, 'p99')}" for one in (ours, bare)]
            rows.append([f"{title}: {path}", *both, ratio(ours["p50"], bare["p50"]), judged])
    head = ["", "Meantime, p50 / p99", "bare starlette", "ratio of p50", "target (p99, ms)"]
    table("Reads over HTTP, in turn with a bare starlette app on the same machine", head, rows)


def at_most() -> None:
    """As fast as it goes, with streams and without."""
    rows: list[list[str]] = []
    for streams in (0, STREAMS):
        with daemon() as ours:
            following = None
            if streams:
                following = Part(
                    "followers", path=str(ours.home.http_socket), count=streams, reads=True
                ).ready()
            done = Part("starter", link=str(ours.home.link_socket), rate=0, seconds=5.0).result()
            if following is not None:
                following.stop()
        rate, whole = done["started"] / done["seconds"], done["started"] / done["all_told"]
        lost = done["started"] - done["unique"]
        rows.append([f"{streams} streams", f"{rate:,.0f}", f"{whole:,.0f}", verdict(lost, 0)])
    head = ["a hundred at once, one process", "starts per second", "told per second", "lost"]
    table("The most that goes over the link", head, rows)


def never_reading() -> None:
    with daemon() as ours:
        _warmed_up(ours)
        before, (_, open_before) = ours.rss, ours.descriptors
        streams = Part("followers", path=str(ours.home.http_socket), count=STREAMS, reads=False).ready()
        samples = Samples(ours)
        samples.start()
        asyncio.run(_many(ours, NEVER_READ_TASKS))
        samples.grown()
        grown = max([*samples.seen, ours.rss]) - before
        streams.stop()
        end = time.monotonic() + 60
        while ours.descriptors[1] > open_before and time.monotonic() < end:
            time.sleep(0.05)
        ledgers, left = ours.descriptors
        left = max(0, left - open_before)
    table(
        f"{STREAMS} event streams that never read, {NEVER_READ_TASKS:,} tasks meanwhile",
        ["", "", "target"],
        [
            ["more memory", f"{grown:.1f} MB", verdict(grown, MEMORY_TARGET)],
            ["descriptors left behind", str(left), verdict(left, 0)],
            ["descriptors of the ledger, kept for readers", str(ledgers), ""],
        ],
    )


def _warmed_up(ours: Daemon) -> None:
    """Whatever is loaded once, is, and SQLite has the descriptors that it keeps for reading."""
    streams = Part("followers", path=str(ours.home.http_socket), count=10, reads=True).ready()
    asyncio.run(_many(ours, 500))
    streams.stop()
    for _ in range(20):
        ours.get("/v1/stats")


async def _many(ours: Daemon, count: int) -> None:
    async with Meantime.connect(ours.home.link_socket, start=False) as mt:
        thread = mt.thread("many")
        for _ in range(count // 100):
            handles = await asyncio.gather(*(thread.start(Call(noop)) for _ in range(100)))
            await thread.wait(*handles)
            async with thread.turn() as turn:
                await turn.ack()


async def verbs() -> None:
    """The same verbs in the process that owns the ledger, and over the link."""
    with daemon() as ours, folder() as place:
        async with (
            Meantime.open(place / "work.db", settings=UNLIMITED) as embedded,
            Meantime.connect(ours.home.link_socket, start=False) as linked,
        ):
            names = ("start → ack", "start → told", "call, inline")
            times: dict[tuple[str, str], list[float]] = {}
            for _ in range(ROUNDS):
                for side, mt in (("embedded", embedded), ("link", linked)):
                    for name, took in zip(names, await _once(mt), strict=True):
                        times.setdefault((name, side), []).append(took)
    rows = [
        [
            name,
            us(p50(times[name, "embedded"])),
            us(p50(times[name, "link"])),
            ratio(p50(times[name, "link"]), p50(times[name, "embedded"])),
        ]
        for name in names
    ]
    table(f"The verbs over the link (p50 of {ROUNDS})", ["", "embedded", "link", "ratio"], rows)


async def _once(mt: Meantime) -> tuple[float, float, float]:
    thread = mt.thread("bench")
    began = time.perf_counter()
    await thread.start(Call(noop))
    acked = time.perf_counter() - began
    async for _ in thread.wakeups():
        async with thread.turn() as turn:
            await turn.ack()
        break
    told = time.perf_counter() - began
    began = time.perf_counter()
    await thread.call(Call(noop))
    return acked, told, time.perf_counter() - began


async def run() -> None:
    for part in (under_load, at_most, never_reading):
        await asyncio.to_thread(part)  # each has loops of its own
    await verbs()
