"""Results in one JSON file, from which tools/write_reliability.py writes a page. Runs are merged into it."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.waiting import LIMIT

import meantime

from . import strace

MAIN = "origin/main"
REPORT = "docs/internals/reliability.json"
EARLIER = 5  # results of a family that are kept because they were not clean


def version() -> str:
    """Of what is tested: a commit, where there is one. Commits that are not in the main branch may get other
    names on their way there, so the last one that is in it is named, and how many follow it."""
    name = _git("describe", "--always", "--exclude=*")
    # The report itself changes while families are played one after the other.
    changed = "-dirty" if _git("status", "--porcelain", "-uno", "--", ".", f":!{REPORT}") else ""
    base = _git("merge-base", "HEAD", MAIN)
    ahead = _git("rev-list", "--count", f"{base}..HEAD") if base else "0"
    if base and ahead != "0":
        name = f"{base[:8]}+{ahead}"
    return f"{meantime.__version__} {name}{changed}".strip()


def _git(*words: str) -> str:
    """Its answer, or nothing: this may be no clone, or one without a main branch."""
    try:
        asked = subprocess.run(
            ["git", *words], cwd=strace.ROOT, capture_output=True, text=True, timeout=LIMIT
        )
    except FileNotFoundError:
        return ""
    return asked.stdout.strip() if asked.returncode == 0 else ""


def add_families(path: Path, played: dict[str, dict[str, Any]], order: Sequence[str]) -> None:
    """Each in place of its last result, in this order; what is not known any more stays, at the end. A result
    that was not clean is kept as an earlier one: a run that is repeated until it is clean proves nothing."""

    def change(report: dict[str, Any]) -> None:
        before = report.get("families", {})
        fresh = {name: {**each, "earlier": _earlier(before.get(name))} for name, each in played.items()}
        families = {**before, **fresh}
        known = [name for name in order if name in families]
        report["families"] = {name: families[name] for name in dict.fromkeys((*known, *families))}

    _changed(path, change)


def _earlier(last: dict[str, Any] | None) -> list[dict[str, Any]]:
    if last is None:
        return []
    found = [{key: value for key, value in last.items() if key not in ("earlier", "about")}]
    return [*(found if is_unclean(last) else []), *last.get("earlier", [])][:EARLIER]


def is_unclean(result: dict[str, Any]) -> bool:
    return any(result.get(count) for count in ("lost", "doubled", "misordered"))


def add_soak(path: Path, soak: dict[str, Any]) -> None:
    _changed(path, lambda report: report.update(soak=soak))


def _changed(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """One at a time: families may be played side by side."""
    lock = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        report: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
        change(report)
        fresh = path.with_name(f".{path.name}.new")
        fresh.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n", "utf-8")
        fresh.replace(path)
    finally:
        os.close(lock)
