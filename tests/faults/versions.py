"""Family: two versions at once. A daemon of an older version is killed, or stopped, under load; this
version's opens its home. The older one's commands are adopted; its clients, command line and hooks go on.

The older version is the commit OLD of this repository's history, or the checkout in MEANTIME_OLD_TREE.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

from tests.waiting import LIMIT, until

from meantime.surfaces.daemon_client.daemon_client import Daemon

from . import strace
from .hooked import SESSION, THREAD
from .judge import Tally, Verdict
from .links import NAMES, Scene, scene
from .trial import side_by_side, trial

OLD = "a748640"
TREE = "MEANTIME_OLD_TREE"
OVER = 2 * LIMIT  # for one verb
LOAD = {"FAULT_MOST": "2000"}  # the many verbs take long where the machine is busy: work must not run out
COMMANDS = 4
FAILED = 6  # what `meantime wait` ends with where a task has failed
LINES = 40
# It says its lines before and after the daemons change, and ends when the gate opens.
COMMAND = (
    'echo {id} >>"$STARTS"; i=0; while [ $i -lt {lines} ]; do echo "out $i"; echo "err $i" >&2; i=$((i+1)); '
    'if [ $i = {half} ]; then n=0; while [ ! -e "$GATE" ] && [ $n -lt 999 ]; do sleep 0.2; n=$((n+1)); done; '
    "fi; done; exit {code}"
)
LIBRARY = """
import asyncio
from meantime import Meantime

async def main():
    async with Meantime.connect(start=False) as meantime:
        thread = meantime.thread("looks")
        await meantime.stats()
        await meantime.notices()
        await meantime.list("all", limit=5)
        await thread.list()
        await thread.reminder()
    print("well")

asyncio.run(main())
"""
CATALOG = f"""
import asyncio
from meantime import MeantimeError
from meantime.app.connected_catalog import ConnectedWorks
from meantime.app.link_ends import client
from meantime.ports.tasks import Options

async def main():
    tasks = client(None, {LIMIT}, start=False)
    await tasks.open()
    works = ConnectedWorks(tasks)
    assert await works.agents() is None, "the daemon has no agents, and says so"
    assert list(await works.registered_tools()) == []
    try:
        await works.start_tool("looks", "nope", {{}}, Options())
    except MeantimeError as refused:
        assert "No tool 'nope'" in str(refused), refused
        print("well")
    await tasks.close()

asyncio.run(main())
"""


@functools.cache
def older_tree() -> tuple[Path | None, str]:
    """Where it is, or why it is nowhere."""
    if given := os.environ.get(TREE):
        there = (Path(given) / "src" / "meantime").is_dir()
        return (Path(given), "") if there else (None, f"{TREE}={given} is not a checkout of Meantime")
    git = ["git", "-C", str(strace.ROOT)]
    try:
        archive = subprocess.run([*git, "archive", OLD, "src"], capture_output=True, timeout=OVER)
    except FileNotFoundError:
        return None, f"there is no git to get the older version {OLD} with; {TREE} can name a checkout of it"
    if archive.returncode != 0:
        return None, f"the history here does not reach back to {OLD}; {TREE} can name a checkout of it"
    folder = Path(tempfile.gettempdir()) / f"meantime-{OLD}-{os.getuid()}"
    if not (folder / "src").is_dir():
        with tempfile.TemporaryDirectory(prefix="meantime-old-") as fresh:
            subprocess.run(["tar", "-x", "-C", fresh], input=archive.stdout, check=True, timeout=OVER)
            folder.mkdir(mode=0o700, exist_ok=True)
            try:
                (Path(fresh) / "src").rename(folder / "src")
            except OSError:
                assert (folder / "src").is_dir()  # another process was faster
    return folder, ""


def missing() -> str:
    return older_tree()[1]


def _paths(tree: Path) -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join((str(tree / "src"), str(strace.ROOT)))}


def run(seed: int, chains: int, reproduce: str) -> Tally:
    tally = Tally("an older version's commands and clients", reproduce)
    side_by_side(range(chains), lambda number: _chain(tally, seed * 101 + number, number))
    return tally


def _chain(tally: Tally, seed: int, number: int) -> None:
    judged = Verdict()

    def make(folder: Path) -> int:
        nonlocal judged
        older = older_tree()[0]
        assert older is not None
        with scene(folder, seed, more={**_paths(older), **LOAD}) as found:
            problems = list(Change(found, older, number).played())
            judged = found.judged()
            judged = judged._replace(lost=(*judged.lost, *problems))
        return found.faults

    trial(tally, f"{tally.family}, seed {seed}", make, lambda folder: judged)


class Said(NamedTuple):
    code: int
    out: str
    err: str


class Change:
    """From the older version to this one, under load."""

    def __init__(self, scene: Scene, older: Path, number: int) -> None:
        self.scene = scene
        self.older, self.newer = _paths(older), _paths(strace.ROOT)
        self.number = number
        self.folder = scene.daemon.folder
        self.codes = {f"c{n}": scene.rng.choice([0, 3, 7]) for n in range(COMMANDS)}
        self.transcript = self.folder / "transcript.jsonl"

    def played(self) -> Iterator[str]:
        """Problems, if any."""
        scene = self.scene
        yield from self._are_two()
        for name, paths in zip(NAMES, (self.older, self.newer), strict=True):
            self._join(name, paths)
        ids = list(self.codes)
        yield from self._start(self.older, ids[::2])
        yield from self._start(
            self.newer, ids[1::2]
        )  # the package is new, and its daemon is still the old one
        yield from self._looks(self.newer)
        yield from self._looks(self.newer, CATALOG)
        until(lambda: self._starts() >= len(self.codes), "the commands have begun")
        scene.pause(0.2, 0.8)
        scene.daemon.end(signal.SIGTERM if self.number % 2 else signal.SIGKILL)
        scene.daemon.more.update(self.newer)
        scene.daemon.up()
        scene.faults += 1
        for name in NAMES:
            scene.crowd.until_works(name)  # a client of each version
        yield from self._looks(self.older)
        yield from self._looks(self.newer, CATALOG)
        self.codes["late"] = 5
        yield from self._start(self.older, ["late"])
        (self.folder / "gate").touch()
        yield from self._ended()
        yield from self._told()
        yield from self._back()

    def _are_two(self) -> Iterator[str]:
        """Or everything else here proves nothing."""
        for paths in (self.older, self.newer):
            program = [sys.executable, "-P", "-c", "import meantime; print(meantime.__file__)"]
            environ = {**self.scene.daemon.environ, **paths}
            found = subprocess.check_output(program, env=environ, text=True, timeout=OVER)
            if not found.startswith(paths["PYTHONPATH"].partition(os.pathsep)[0]):
                yield f"{found} is imported where {paths} is meant"

    def _looks(self, paths: dict[str, str], library: str = LIBRARY) -> Iterator[str]:
        """A library of one version, at the daemon of the other."""
        environ = {**self.scene.daemon.environ, **paths}
        program = [sys.executable, "-P", "-c", library]
        done = subprocess.run(program, env=environ, capture_output=True, text=True, timeout=OVER)
        if done.stdout != "well\n":
            yield f"a library of {paths} ended with {done.returncode}: {done.stderr[-1_500:]}"

    def _join(self, name: str, paths: dict[str, str]) -> None:
        before = dict(self.scene.daemon.more)
        self.scene.daemon.more.update(paths)
        self.scene.join(name)
        self.scene.daemon.more.update(before)

    def _back(self) -> Iterator[str]:
        """The ledger is of this version now. The older daemon says so, and leaves it as it is. Then a client
        of the older version takes the place of one, under a daemon that was killed once more."""
        scene, name = self.scene, self.scene.rng.choice(NAMES)
        scene.daemon.end(signal.SIGKILL)
        program = [sys.executable, "-P", "-m", "meantime.app.daemon", "--foreground"]
        environ = {**scene.daemon.environ, **self.older}
        done = subprocess.run(program, env=environ, capture_output=True, text=True, timeout=OVER)
        if done.returncode == 0 or "Upgrade Meantime" not in done.stdout + done.stderr:
            yield f"the older daemon, on a newer ledger, ended with {done}"
        scene.daemon.up()
        scene.crowd.until_works(name)  # so that the daemon sees the end of its process at once
        scene.broken.add(f"{name}-{scene.crowd.life(name)}")
        scene.crowd.kill(name)
        self._join(name, self.older)
        scene.faults += 3
        for each in NAMES:
            scene.crowd.until_works(each)

    def _start(self, paths: dict[str, str], ids: list[str]) -> Iterator[str]:
        for id in ids:
            line = COMMAND.format(id=id, lines=LINES, half=LINES // 2, code=self.codes[id])
            said = self._verb(paths, "run", "-q", "--id", id, "--thread", THREAD, "-c", line)
            if said.code != 0:
                yield f"`meantime run` of {id} ended with {said.code}: {said.err}"

    def _starts(self) -> int:
        path = self.folder / "starts"
        return len(path.read_text().split()) if path.exists() else 0

    def _ended(self) -> Iterator[str]:
        """The older command line, at the new daemon: waits, exit codes, outputs, lists."""
        listed = self._verb(self.older, "ps", "--all", "--thread", THREAD)
        for id, code in self.codes.items():
            waited = self._verb(self.older, "wait", id)
            shown = json.loads(self._verb(self.older, "show", "--json", id).out or "{}")
            said = self._verb(self.newer if id == "c0" else self.older, "logs", id).out
            if waited.code != (0 if code == 0 else FAILED) or (shown.get("exitCode") or 0) != code:
                yield f"{id} was to end with {code}: wait ended with {waited}, and it is {shown}"
            if id not in listed.out:
                yield f"{id} is not listed: {listed}"
            whole = sorted(f"{name} {n}" for name in ("out", "err") for n in range(LINES))
            if sorted(said.splitlines()) != whole:
                yield f"the output of {id} is not whole: {said!r}"
        if self._starts() != len(self.codes):
            yield f"{self._starts()} starts of {len(self.codes)} commands"

    def _told(self) -> Iterator[str]:
        """Hooks of both versions, in turn, until all is told, and known to be. A hook that has no time left
        says nothing, and the next one tells it."""
        said = {
            "session_id": SESSION,
            "transcript_path": str(self.transcript),
            "hook_event_name": "PostToolUse",
        }
        self.transcript.touch()
        versions = cycle((self.older, self.newer))

        def is_told() -> bool:
            told = self._verb(next(versions), "hook", "post-tool", said=json.dumps(said))
            assert told.code == 0, f"the hook ended with {told}"
            with self.transcript.open("a") as file:
                file.write(told.out)
            text = self.transcript.read_text()
            return all(f"{id}.1" in text for id in self.codes) and not self._untold()

        until(is_told, "hooks have told all", self.transcript.read_text)
        text = self.transcript.read_text()
        for id in self.codes:
            if text.count(f"{id}.1") != 1:
                yield f"{id} was told {text.count(f'{id}.1')} times: {text}"

    def _untold(self) -> int:
        found = Daemon(self.scene.daemon.home, start=False).get(f"/v1/threads/{THREAD}")
        return found["unread"] + found["leased"]

    def _verb(self, paths: dict[str, str], *words: str, said: str = "") -> Said:
        more = {
            "STARTS": str(self.folder / "starts"),
            "GATE": str(self.folder / "gate"),
            "CLAUDE_CODE_SESSION_ID": SESSION,
        }
        done = subprocess.run(
            [sys.executable, "-P", "-m", "meantime.app.main", *words], input=said, text=True, timeout=OVER,
            capture_output=True, env={**self.scene.daemon.environ, **more, **paths}, cwd=self.folder,
        )  # fmt: skip
        return Said(done.returncode, done.stdout, done.stderr)
