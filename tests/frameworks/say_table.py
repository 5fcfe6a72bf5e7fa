"""The guide's table of errors: those that `say` raises, and those that the model is told. Each cell is played
with its framework.
"""

from __future__ import annotations

from collections.abc import Awaitable
from pathlib import Path
from typing import Any, NamedTuple

from tests.waiting import LIMIT

from meantime import background
from meantime.testing.suite.patience import within
from meantime.testing.talk import ToolCall

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "frameworks.md"
HEAD = "| framework | error of the model | error of a function | arguments of a wrong type | unknown tool |"
RAISES, TOLD = "`say` raises ", "the model is told"


class Row(NamedTuple):
    framework: str
    model: str
    function: str
    arguments: str
    unknown: str


def rows() -> dict[str, Row]:
    lines = GUIDE.read_text("utf-8").partition(HEAD)[2].partition("\n\n")[0].splitlines()[2:]
    found = [Row(*(cell.strip() for cell in line.strip("|").split(" | "))) for line in lines]
    return {row.framework: row for row in found}


@background
async def fail(at: str) -> str:
    """Fails."""
    raise LookupError(f"there is no {at}")


async def check_row(framework: str, site: Any) -> None:
    row = rows()[framework]
    await _check(row.model, site, ConnectionError("the provider is away"))
    told = await _check(row.function, site, ToolCall("fail", {"at": "b.org"}))
    assert "LookupError: there is no b.org" in told, told
    told = await _check(row.arguments, site, ToolCall("fail", {"at": 5}))
    has_reason = "not the reason" not in row.arguments
    assert ("str" in told) is has_reason, told
    await _check(row.unknown, site, ToolCall("nosuch", {}))


async def _check(cell: str, site: Any, step: Any) -> str:
    """Plays the step, and gives what the model was told of it. The conversation stays usable."""
    site.script(step)
    is_told = cell.startswith(TOLD)
    if is_told:
        site.script("I see")
    async with site.opened() as mt:
        talk = site.talk(mt.thread(f"t-{len(site.requests)}"), fail, threshold=LIMIT)
        if is_told:
            assert await within(talk.say("go")) == "I see", cell
        else:
            assert await _raised_by(talk.say("go")) == cell.removeprefix(RAISES).split("`")[1], cell
        told = site.requests[-1].results[-1] if is_told else ""
        site.script("as I said")
        assert await within(talk.say("sorry?")) == "as I said"
        return told


async def _raised_by(saying: Awaitable[object]) -> str:
    try:
        await within(saying)
    except Exception as problem:
        return type(problem).__name__
    return "nothing"
