"""Command queues that a user might pick instead, each with a daemon of its own in a private folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

WIDTH = 200  # commands that they may run at once
COMMAND = "/bin/true"
QUIET: dict[str, Any] = {
    "stdin": subprocess.DEVNULL,
    "stdout": subprocess.DEVNULL,
    "stderr": subprocess.DEVNULL,
}
STARTING = 100  # looks at whether a daemon answers yet


class Queue(Protocol):
    name: str

    def once(self) -> None:
        """Submits one command and returns when its end is known."""
        ...

    def at_once(self, count: int) -> None: ...

    def close(self) -> None: ...


class Tsp:
    """`tsp -f` submits and waits; what the command says goes to a file in TMPDIR."""

    name = "task-spooler, tsp -f"
    programs = ("tsp",)
    absent = "not installed"

    def __init__(self, folder: Path) -> None:
        own = {"TS_SOCKET": str(folder / "socket"), "TMPDIR": str(folder), "TS_SLOTS": str(WIDTH)}
        self._env = os.environ | own
        self.once()  # starts the daemon

    def once(self) -> None:
        subprocess.run(["tsp", "-f", COMMAND], env=self._env, check=True, **QUIET)

    def at_once(self, count: int) -> None:
        waiting = [subprocess.Popen(["tsp", "-f", COMMAND], env=self._env, **QUIET) for _ in range(count)]
        _all_well(waiting)

    def close(self) -> None:
        subprocess.run(["tsp", "-K"], env=self._env, check=False, **QUIET)


class Pueue:
    """`pueue add --immediate`, then `pueue wait`."""

    name = "pueue add, pueue wait"
    programs = ("pueue", "pueued")
    absent = "not installed: Debian 12 has no package of it"

    def __init__(self, folder: Path) -> None:
        settings = folder / "pueue.yml"
        settings.write_text(
            f"shared:\n  pueue_directory: {folder}\n  runtime_directory: {folder}\n  use_unix_socket: true\n"
            f"  unix_socket_path: {folder}/socket\nclient: {{}}\ndaemon: {{}}\n"
        )
        self._env = os.environ | {"PUEUE_CONFIG_PATH": str(settings)}
        self._daemon = subprocess.Popen(["pueued"], env=self._env, **QUIET)
        for _ in range(STARTING):
            if subprocess.run(["pueue", "status"], env=self._env, check=False, **QUIET).returncode == 0:
                break
            time.sleep(0.05)
        self._tell("parallel", str(WIDTH))

    def once(self) -> None:
        add = ["pueue", "add", "--immediate", "--print-task-id", "--", COMMAND]
        added = subprocess.run(add, env=self._env, check=True, capture_output=True, text=True)
        self._tell("wait", added.stdout.strip())

    def at_once(self, count: int) -> None:
        add = ["pueue", "add", "--", COMMAND]
        waiting = [subprocess.Popen(add, env=self._env, **QUIET) for _ in range(count)]
        _all_well(waiting)
        self._tell("wait")

    def _tell(self, *words: str) -> None:
        subprocess.run(["pueue", *words], env=self._env, check=True, **QUIET)

    def close(self) -> None:
        subprocess.run(["pueue", "shutdown"], env=self._env, check=False, **QUIET)
        try:
            self._daemon.wait(5)
        except subprocess.TimeoutExpired:
            self._daemon.kill()
            self._daemon.wait()


def _all_well(clients: list[subprocess.Popen[Any]]) -> None:
    codes = [client.wait() for client in clients]
    if any(codes):
        raise OSError(f"{sum(map(bool, codes))} of {len(codes)} submissions failed")


ALL = (Tsp, Pueue)


@contextmanager
def opened() -> Iterator[tuple[list[Queue], list[list[str]]]]:
    """Those that are here, and for each of the others its name and why it is not."""
    here: list[Queue] = []
    absent: list[list[str]] = []
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent, prefix=".bench-") as folder:
        try:
            for kind in ALL:
                own = Path(folder, kind.programs[0])
                own.mkdir()
                if not all(map(shutil.which, kind.programs)):
                    absent.append([kind.name, kind.absent])
                    continue
                try:
                    here.append(kind(own))
                except (OSError, subprocess.SubprocessError) as problem:
                    absent.append([kind.name, f"did not start: {problem}"])
            yield here, absent
        finally:
            for queue in here:
                queue.close()
