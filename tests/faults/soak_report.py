"""The report of a soak, which is also what it goes on from: one JSON file, replaced whole."""

from __future__ import annotations

import fcntl
import json
import os
import signal
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.waiting import until

from meantime.system.process import Process, process

from .flatness import Flatness, Sample, flatness, told
from .judge import Verdict
from .reports import version

PROBLEMS = 50  # that are kept
UNITS = {"rss": 1 << 20, "wal": 1 << 20, "disk": 1 << 20}


class Report:
    def __init__(self, path: Path, seed: int, whole: float) -> None:
        self._path = path
        self._pids = path.with_name("processes.json")
        self.whole = whole
        found = self._earlier()
        self.seed: int = found.get("seed", seed)
        self.parts: int = found.get("parts", 0) + 1  # how often it was begun or gone on with
        self.versions: list[str] = found.get("versions", [])
        if (now := version()) not in self.versions:
            self.versions.append(now)
        self.played: float = found.get("played", 0.0)  # seconds of load
        self.rounds: int = found.get("rounds", 0)
        self.into: float = found.get("into", 0.0)  # seconds of the round that is under way
        self.broken = set[str](found.get("broken", []))  # clients that were killed in it
        self.stormy: bool = found.get("stormy", False)  # the daemon was killed in it
        self.lives: int = found.get("lives", 0)  # of the daemon
        self.maximum: float = found.get("maximum", 0.0)  # tasks a second
        self.kills = Counter[str](found.get("kills", {}))
        self.counts = Counter[str](found.get("counts", {}))
        self.judged = Counter[str](found.get("judged", {}))
        self.problems: list[str] = found.get("problems", [])
        self.transcript_lines: int = found.get("transcript_lines", 0)
        self.samples = [Sample(*fields) for fields in found.get("samples", [])]
        self.flat: dict[str, Flatness] = {}
        self.finished = False

    def _earlier(self) -> dict[str, Any]:
        """A soak that is to be gone on with. The report of one that was finished is kept beside the next."""
        if not self._path.exists():
            return {}
        found: dict[str, Any] = json.loads(self._path.read_text())
        if not found["finished"]:
            return found
        self._path.rename(self._path.with_name(f"report-{found['seed']}.json"))
        return {}

    @contextmanager
    def held(self) -> Iterator[None]:
        """One soak a folder."""
        lock = os.open(self._path.with_name("lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise SystemExit(
                    f"Another soak runs in {self._path.parent}. Wait for it, or name another folder."
                ) from None
            yield
        finally:
            os.close(lock)

    # -- processes of a part that was killed

    def remember(self, pids: Sequence[int]) -> None:
        known = [process(pid) for pid in pids]
        _replace(self._pids, [[one.pid, one.started, one.boot] for one in known])

    def end_leftovers(self) -> None:
        for fields in json.loads(self._pids.read_text()) if self._pids.exists() else ():
            left = Process(*fields)
            with suppress(OSError):
                if left.is_alive:
                    os.kill(left.pid, signal.SIGKILL)
            until(lambda left=left: not left.is_alive, f"{left.pid}, of the last part, has ended")

    # -- what is found

    def add(self, round: str, found: Verdict, counts: Mapping[str, int]) -> None:
        self.counts.update(counts)
        self.judged.update(lost=len(found.lost), doubled=len(found.doubled), misordered=len(found.misordered))
        if not found.clean:
            self.problems = [*self.problems, f"round {round}: {found}"[:4_000]][:PROBLEMS]

    def broke(self, problem: Exception) -> None:
        """The daemon ended by itself, or did not answer."""
        self.add(str(self.rounds), Verdict(lost=(str(problem),)), {})

    def finish(self, warm_up: float, slack: float) -> None:
        self.flat = flatness(self.samples, self.played, warm_up, slack)
        self.finished = True

    @property
    def clean(self) -> bool:
        return self.finished and not self.problems and all(one.flat for one in self.flat.values())

    # -- what is said

    def save(self) -> None:
        _replace(self._path, self.told())

    def told(self) -> dict[str, Any]:
        plain = (
            "seed",
            "parts",
            "versions",
            "whole",
            "played",
            "rounds",
            "into",
            "stormy",
            "lives",
            "maximum",
        )
        return {
            **{name: getattr(self, name) for name in plain},
            "broken": sorted(self.broken),
            "kills": dict(self.kills),
            "counts": dict(self.counts),
            "judged": dict(self.judged),
            "problems": self.problems,
            "transcript_lines": self.transcript_lines,
            "flat": told(self.flat),
            "finished": self.finished,
            "clean": self.clean,
            "samples": self.samples,
        }

    def result(self) -> dict[str, Any]:
        """For docs/internals/reliability.json: without the samples."""
        plain = ("seed", "parts", "versions", "played", "rounds", "clean")
        return {
            **{name: getattr(self, name) for name in plain},
            "maximum": round(self.maximum, 1),
            "kills": dict(self.kills),
            "told": self.counts["told"],
            "unanswered": self.counts["unanswered"],
            "conversations": self.counts["conversations"],
            **{name: self.judged[name] for name in ("lost", "doubled", "misordered")},
            "flat": told(self.flat),
            "samples": len(self.samples),
        }

    def head(self) -> str:
        begun = f"goes on after {self.played:.0f} s" if self.parts > 1 else "begins"
        return f"soak of {self.whole:.0f} s, seed {self.seed}, {begun}; report in {self._path}"

    def line(self) -> str:
        rate = f"{self.maximum / 3:.0f} of {self.maximum:.0f} tasks/s"
        kills = f"{self.kills['daemon']} daemons and {self.kills['client']} clients killed"
        last = self.samples[-1] if self.samples else None
        memory = f", {last.rss >> 20} MB, {last.descriptors} descriptors" if last else ""
        return f"{self.played:6.0f} s  {rate}, {self.counts['told']} told, {kills}{memory}, {self._found()}"

    def _found(self) -> str:
        return ", ".join(f"{self.judged[name]} {name}" for name in ("lost", "doubled", "misordered"))

    def summary(self) -> str:
        lines = [self.line(), *self.problems]
        for name, one in self.flat.items():
            unit = UNITS.get(name, 1)
            verdict = "flat" if one.flat else "NOT FLAT" if one.samples else "NOT MEASURED"
            grown = (
                f"{one.growth / unit:+.2f} ± {2 * one.error / unit:.2f} of at most {one.allowed / unit:.2f}"
            )
            sizes = f"mean {one.mean / unit:.1f}, most {one.most / unit:.1f}, growth {grown}"
            lines.append(f"{name:<12} {verdict}: {sizes}{' MB' if unit > 1 else ''}")
        return "\n".join([*lines, f"seed {self.seed}"])


def _replace(path: Path, value: object) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(value))
    fresh.replace(path)
