"""A function that fails, and a call that is wrong, are told to the model, whose turn continues."""

from __future__ import annotations

import asyncio
from typing import Any

from meantime.runners.background_function import background

from ..suite.patience import within
from .talk_site import TalkFixture, ToolCall

MOST = 3_000  # characters of an error that a model is told


class NoSchema:
    """A type that has no schema: such an argument comes as the model gave it."""


async def an_error_of_a_quick_function_is_told_to_the_model(fixture: TalkFixture) -> None:
    site = fixture.site

    @background
    async def look(at: str) -> str:
        """Looks at something."""
        raise LookupError(f"there is no {at}")

    site.script(ToolCall("look", {"at": "b.org"}), "it failed", "as I said")
    async with site.opened() as mt:
        talk = site.talk(mt.thread("t"), look)
        assert await within(talk.say("look at b.org")) == "it failed"
        (result,) = site.requests[1].results
        assert "LookupError" in result, result
        assert "there is no b.org" in result, result
        assert await within(talk.say("sorry?")) == "as I said"
        assert site.requests[2].results == [result], "the call has its answer: it was not interrupted"


async def a_long_error_of_a_function_is_cut(fixture: TalkFixture) -> None:
    site = fixture.site

    @background
    def look() -> str:
        """Looks around."""
        raise ValueError("x" * 100_000)

    site.script(ToolCall("look", {}), "it failed")
    async with site.opened() as mt:
        assert await within(site.talk(mt.thread("t"), look).say("look")) == "it failed"
        (result,) = site.requests[1].results
        assert "ValueError: xxx" in result, result[:MOST]
        assert len(result) < MOST, f"{len(result)}"


async def a_function_that_cancels_itself_does_not_end_the_turn(fixture: TalkFixture) -> None:
    site = fixture.site

    @background
    async def look() -> str:
        """Looks around."""
        raise asyncio.CancelledError("enough")

    site.script(ToolCall("look", {}), "it failed")
    async with site.opened() as mt:
        assert await within(site.talk(mt.thread("t"), look).say("look")) == "it failed"
        (result,) = site.requests[1].results
        assert "enough" in result, result


async def arguments_of_the_wrong_type_do_not_reach_a_function(fixture: TalkFixture) -> None:
    site = fixture.site
    built: list[tuple[str, int]] = []

    @background
    async def build(target: str, n: int = 1) -> str:
        """Builds a target n times."""
        built.append((target, n))
        return f"{target} is built"

    wrong: list[dict[str, Any]] = [{"target": "x", "n": "two"}, {"target": 5}]
    for number, arguments in enumerate(wrong):
        site.script(ToolCall("build", arguments, f"call-{number}"))
    site.script(ToolCall("build", {"target": "x", "n": 2}, "right"), "done")
    async with site.opened() as mt:
        talk = site.talk(mt.thread("t"), build)
        assert await within(talk.say("build x twice")) == "done"
        assert built == [("x", 2)], f"{built}"
        results = site.requests[-1].results
        assert len(results) == len(wrong) + 1, "each call is answered"
        assert "x is built" not in results[:-1], f"{results}"
        assert results[-1] == "x is built"


async def an_argument_has_the_type_that_its_function_declares(fixture: TalkFixture) -> None:
    site = fixture.site
    looked: list[Any] = []

    @background
    async def look(share: float, places: set[str], more: NoSchema | None = None) -> str:
        """Looks at places."""
        looked.append((share, places, more))
        return "all is well"

    site.script(ToolCall("look", {"share": 1, "places": ["a"], "more": {"b": 2}}), "done")
    async with site.opened() as mt:
        assert await within(site.talk(mt.thread("t"), look).say("look")) == "done"
        assert looked == [(1.0, {"a"}, {"b": 2})], f"{looked} {site.requests[-1].results}"
        assert isinstance(looked[0][0], float)


CHECKS = (
    an_error_of_a_quick_function_is_told_to_the_model,
    a_long_error_of_a_function_is_cut,
    a_function_that_cancels_itself_does_not_end_the_turn,
    arguments_of_the_wrong_type_do_not_reach_a_function,
    an_argument_has_the_type_that_its_function_declares,
)
