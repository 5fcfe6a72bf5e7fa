"""kill -9 at the system calls of every write over HTTP: what was answered is there after a restart, what
was not is there or not, never half; and what was acknowledged never comes again. Whoever asks is a process
of its own, and outlives the one that is killed."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

from tests.waiting import until

from . import strace
from .adoption import clear
from .judge import Tally, Verdict, judge, read_facts
from .posting import GONE, Poster, problems
from .strace import Ended, Point
from .trial import new_folder, sample, side_by_side, trial

ALONE = ("-b", "execve")  # the commands go on, and nobody waits for them


def sweep(seed: int, count: int, reproduce: str) -> Tally:
    tally = Tally("kill -9 at system calls of each write", reproduce)
    folder = new_folder()
    try:
        trace = folder / "trace"
        owner = _live("story", folder, *strace.tracing(trace), *ALONE)
        assert owner.code == 0, owner.output
        found = strace.points_of(trace)
        tally.add(recover(folder), "nobody killed it", 0)
    finally:
        clear(folder)
        shutil.rmtree(folder)
    side_by_side(sample(found, count, random.Random(seed)), lambda point: _kill(tally, point))
    return tally


def _kill(tally: Tally, point: Point) -> None:
    def make(folder: Path) -> int:
        owner = _live("story", folder, *strace.killing(folder / "trace", point), *ALONE)
        assert owner.killed or owner.code == 0, f"the owner ended with {owner.code}:\n{owner.output}"
        return int(owner.killed)

    trial(tally, f"{tally.family}: {point}", make, recover, clear)


def _live(mode: str, folder: Path, *options: str) -> Ended:
    """An owner, and a process that uses it, until both have ended: how the owner did."""
    for left in ("http.sock", "gone"):  # of the last life
        (folder / left).unlink(missing_ok=True)
    tracer = ["strace", "-f", *options] if options else []
    said = folder / f"{mode}.log"
    with said.open("wb") as log:
        owner = subprocess.Popen(
            [*tracer, *strace.command("serve", folder, program="posted")],
            cwd=strace.ROOT, stdin=subprocess.PIPE, stdout=log, stderr=log,
        )  # fmt: skip
        client = subprocess.Popen(
            strace.command(mode, folder, program="posting"), cwd=strace.ROOT, stdout=log, stderr=log
        )
        try:
            both = (owner, client)
            until(lambda: any(one.poll() is not None for one in both), "one has ended", limit=strace.OVER)
            if owner.poll() is not None:
                (folder / "gone").touch()  # one whose owner was killed before it could listen waits for it
                client.wait(strace.OVER)
            assert owner.stdin is not None
            owner.stdin.close()
            owner.wait(strace.OVER)
        finally:
            for process in (client, owner):
                process.kill()
                process.wait()
    ended = Ended(owner.returncode, said.read_text(errors="replace")[-3_000:])
    fair = (0, GONE) if ended.killed else (0,)
    assert client.returncode in fair, f"whoever asked ended with {client.returncode}:\n{ended.output}"
    return ended


def recover(folder: Path) -> Verdict:
    owner = _live("reopen", folder)
    if owner.code != 0:
        return Verdict(lost=(f"it could not be opened again (exit {owner.code}):\n{owner.output}",))
    found = judge(read_facts(folder / "ledger.jsonl"), {"b": Poster(folder).lines()})
    return found._replace(lost=(*found.lost, *problems(folder)))
