"""MCP servers that hang, crash, print garbage, answer too much, twice or somebody else, and change their
tools. Each call has one ending, the one that fits, and its thread is told of it once; calls that run beside
it at the same server have their own answers."""

from __future__ import annotations

import random
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from tests.waiting import LIMIT, until

from .adoption import clear
from .judge import Tally, Verdict, judge
from .mcp_door import CONFIG, Scene
from .toolowner import PEER
from .trial import side_by_side, trial

THREAD = "m"
SERVER = """
[mcp.servers.{name}]
command = ["{python}", "{peer}", "{start}", "{folder}"{era}]
start_timeout = {patience}
"""


class Fault(NamedTuple):
    """A tool of the scripted server, and how its call must end; `start` is how the server comes up."""

    tool: str
    state: str
    says: str = ""  # in its result, or its error
    start: str = "well"
    given: Mapping[str, Any] = MappingProxyType({})
    timeout: float | None = None
    loses_others: bool = False  # its server goes, and takes with it what runs there


FAULTS = {
    "hangs": Fault("hang", "timed_out", timeout=0.3),
    "crashes": Fault("crash", "lost", "exit code 7", loses_others=True),
    "prints garbage": Fault("garbage", "completed", "after the noise"),
    "answers twice": Fault("twice", "completed", "first"),
    "answers others": Fault("strangers", "completed", "yours", given={"next": True}),
    "answers 40 MB": Fault("big", "failed", "more than 32 MB", given={"bytes": 40_000_000}),
    "answers 5 MB": Fault("big", "completed", given={"bytes": 5_000_000}),
    "answers in great depth": Fault("deep", "failed", given={"depth": 100_000}),
    "answers half": Fault("broken", "failed"),
    "floods": Fault("flood", "completed", "dry again", given={"count": 20_000}),
    "fails": Fault("fails", "failed", "the file is not there"),
    "refuses": Fault("wrong", "failed", "path is missing"),
    "has an error of its own": Fault("own_error", "failed", "the database is away"),
    "asks for a person": Fault("asks", "failed"),
    "asks its client for a model": Fault("samples", "completed", "refused"),
    "changes its tools": Fault("grow", "completed", "grown", given={"new": "echo2", "drop": "add"}),
    "changes its tools quietly": Fault("grow", "completed", "grown", given={"new": "echo3", "quietly": True}),
    "has no such tool": Fault("nothing", "failed", "nothing"),
    "leaves a child behind": Fault("leaves", "completed", "left a child"),
    "reads nothing more": Fault("stuck", "timed_out", timeout=0.5, loses_others=True),
    "dies at its start": Fault("echo", "failed", "KeyError: 'TOKEN'", start="dies"),
    "never answers": Fault("echo", "failed", "did not answer", start="silent"),
    "prints before it speaks": Fault("echo", "completed", start="noisy", given={"text": "well"}),
    "speaks no version of ours": Fault("echo", "failed", "1999-01-01", start="version"),
}
OLDER_ONLY = ("silent", "version")  # how the handshake of 2025-11-25 can go wrong


def run(seed: int, count: int, reproduce: str) -> Tally:
    """`count` of them, 0 is all, in both versions of the protocol; each has a server of its own."""
    tally = Tally("hostile MCP servers", reproduce)
    rng = random.Random(seed)
    cases = [(name, era) for name in FAULTS for era in ("", "modern") if not _is_strange(name, era)]
    chosen = rng.sample(cases, count or len(cases))
    shares = [chosen[start::3] for start in range(3)]
    side_by_side([share for share in shares if share], lambda share: _play(tally, share))
    return tally


def _is_strange(name: str, era: str) -> bool:
    return bool(era) and FAULTS[name].start in OLDER_ONLY


def _play(tally: Tally, cases: list[tuple[str, str]]) -> None:
    problems: list[str] = []
    told = Verdict()

    def make(folder: Path) -> int:
        nonlocal told
        scene = Scene(folder, CONFIG + "".join(_server(folder, n, *case) for n, case in enumerate(cases)))
        try:
            scene.up()
            for number, (name, era) in enumerate(cases):
                try:
                    _call(scene, folder / f"s{number}", f"s{number}", FAULTS[name])
                except Exception as problem:
                    problems.append(f"{name} {era}: {type(problem).__name__}: {problem}")
                    (folder / f"s{number}" / "gate").touch()
            scene.hear(THREAD, again=False)
            told = judge(scene.facts, scene.told)
        finally:
            scene.daemon.end(signal.SIGKILL)
        return len(cases)

    what = ", ".join(f"{name} {era}".strip() for name, era in cases)
    trial(tally, what, make, lambda _: told._replace(lost=(*told.lost, *problems)), clear)


def _server(folder: Path, number: int, name: str, era: str) -> str:
    (folder / f"s{number}").mkdir()
    start = FAULTS[name].start
    return SERVER.format(
        name=f"s{number}", python=sys.executable, peer=PEER, start=start, folder=folder / f"s{number}",
        era=f', "{era}"' if era else "", patience=1.0 if start == "silent" else LIMIT,
    )  # fmt: skip


def _call(scene: Scene, folder: Path, server: str, fault: Fault) -> None:
    """The faulty call, with an honest one waiting beside it, and one after it."""
    serves = fault.start in ("well", "noisy")
    beside = scene.start(THREAD, tool=f"{server}/gate", arguments={"mark": "beside"}) if serves else ""
    if serves:
        until(lambda: (folder / "waiting").exists(), "the call beside it waits")
    options = {"timeout": fault.timeout} if fault.timeout else {}
    faulty = scene.start(THREAD, tool=f"{server}/{fault.tool}", arguments=dict(fault.given), **options)
    ended = scene.end(faulty)
    said = f"{ended['result']} {ended['error']} {ended['errorDetail']}"
    assert ended["state"] == fault.state, f"it is {ended['state']}: {said[:500]}"
    assert fault.says in said, said[:500]
    if not serves:
        return
    (folder / "gate").touch()
    honest = scene.end(beside)
    fair = ("lost", "completed") if fault.loses_others else ("completed",)
    assert honest["state"] in fair, f"a call beside it is {honest['state']}: {honest['error']}"
    assert honest["state"] == "lost" or honest["result"] == "through beside", honest["result"]
    if fault.tool != "stuck":
        after = scene.end(scene.start(THREAD, tool=f"{server}/echo", arguments={"text": "after"}))
        assert after["result"] == "after", f"the next call is {after['state']}: {after['error']}"
