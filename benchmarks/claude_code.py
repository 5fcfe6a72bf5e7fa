"""The real Claude Code on a terminal, with and without our hooks: the time from question to question at the
model, over 15 tool calls (`Bash true`). Turns of each kind alternate, so the machine is the same for all."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Iterator
from pathlib import Path

from .measure import folder, p50, ratio, table
from .scripted import CLAUDE_CODE, MEANTIME, Model, Person, Scene, Window, version

CALLS = 15
ROUNDS = 6  # turns of each kind, after one that is not counted


async def run() -> None:
    if not CLAUDE_CODE.program.exists():
        print("Claude Code is not installed: make agents. It is not measured.")
        return
    with folder() as path:
        await asyncio.to_thread(_measure, path)


def _measure(path: Path) -> None:
    with contextlib.ExitStack() as left_at_the_end:
        sessions = {
            "without Meantime": left_at_the_end.enter_context(_session(path / "bare", installed=False)),
            "with its hooks": left_at_the_end.enter_context(_session(path / "hooked")),
            "with its hooks, while a task runs": left_at_the_end.enter_context(
                _session(path / "busy", "sleep 600")
            ),
        }
        times: dict[str, list[float]] = {name: [] for name in sessions}
        for number in range(ROUNDS + 1):
            for name, (scene, window) in sessions.items():
                between = _turn(scene, window)
                times[name] += between if number else []
    bare = p50(times["without Meantime"])
    table(
        f"Claude Code {version(CLAUDE_CODE.package)}: from question to question, {CALLS} calls of `true`, "
        f"{ROUNDS} turns each",
        ["", "p50", "p90", "beside it without"],
        [
            [name, _ms(p50(found)), _ms(sorted(found)[len(found) * 9 // 10]), ratio(p50(found), bare)]
            for name, found in times.items()
        ],
    )


@contextlib.contextmanager
def _session(path: Path, task: str = "", *, installed: bool = True) -> Iterator[tuple[Scene, Window]]:
    """One on a terminal, with a home, a daemon and a model of its own; with a task in the background."""
    path.mkdir()
    person, model = Person(path), Model()
    assert person("up").code == 0
    try:
        scene = Scene(CLAUDE_CODE, person, model)
        if installed:
            scene.install()
        with scene.opened() as window:
            if task:
                scene.says(window, scene.host.runs(f"{MEANTIME} run -q -- {task}"), {"text": "It runs."})
            yield scene, window
    finally:
        person.leave()
        model.close()


def _turn(scene: Scene, window: Window) -> list[float]:
    """The seconds between each two questions of one turn."""
    prompt = scene.says(window, *[scene.host.runs("true")] * CALLS, {"text": "Done."})
    asked = scene.asked(prompt)[-CALLS - 1 :]
    return [after.at - before.at for before, after in itertools.pairwise(asked)]


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.0f} ms"
