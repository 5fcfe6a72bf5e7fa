"""The options of an adapter, and the texts that are said to it, are checked before anything begins."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from meantime.kernel.errors import InvalidInput
from meantime.runners.background_function import background

from ..suite.patience import within
from .talk_site import TalkFixture, ToolCall


async def a_function_named_like_a_tool_of_the_thread_is_refused(fixture: TalkFixture) -> None:
    async with fixture.site.opened() as mt:
        for name in ("output", "list", "cancel", "wait"):

            @background(name=name)
            async def reads() -> str:
                return "read"

            text = refused(lambda taken=reads: fixture.site.talk(mt.thread("t"), taken))
            assert f"'{name}'" in text, text
            assert "@background(name=" in text, text


async def two_functions_of_one_name_are_refused(fixture: TalkFixture) -> None:
    @background(name="crawl")
    async def another() -> str:
        return "crawled"

    async with fixture.site.opened() as mt:
        text = refused(lambda: fixture.site.talk(mt.thread("t"), fixture.gates.crawl, another))
        assert "2 functions have this name" in text, text
        assert "'crawl'" in text, text


async def a_threshold_that_is_no_time_is_refused(fixture: TalkFixture) -> None:
    async with fixture.site.opened() as mt:
        for wrong in ("fast", -1, 0, True, float("nan"), "", [5]):
            text = refused(lambda given=wrong: fixture.site.talk(mt.thread("t"), threshold=given))
            assert "threshold" in text, text


async def a_threshold_may_be_a_text(fixture: TalkFixture) -> None:
    site = fixture.site
    fixture.gates.shut("a.org")
    site.script(ToolCall("crawl", {"site": "a.org"}), "it takes a while")
    async with site.opened() as mt:
        talk = site.talk(mt.thread("t"), fixture.gates.crawl, threshold="10ms")
        assert await within(talk.say("how big is a.org?")) == "it takes a while"
        fixture.gates.open("a.org")


async def an_agent_that_was_not_given_is_refused(fixture: TalkFixture) -> None:
    async with fixture.site.opened() as mt:
        text = refused(lambda: fixture.site.talk(mt.thread("t"), agents=["nosuch"]))
        assert "'nosuch'" in text, text
        assert "agents={…}" in text, text
        for wrong in ("nosuch", [3], 5):
            text = refused(lambda given=wrong: fixture.site.talk(mt.thread("t"), agents=given))
            assert text.startswith("agents "), text
    async with fixture.site.opened(agents={"explore": _idle}) as mt:
        fixture.site.talk(mt.thread("t"), agents={"explore": "looks around"})
        text = refused(lambda: fixture.site.talk(mt.thread("t"), agents=["explore", "nosuch"]))
        assert "'nosuch'" in text, text


async def _idle(conversation: Any) -> str:
    return "nothing"


async def what_is_no_text_cannot_be_said(fixture: TalkFixture) -> None:
    site = fixture.site
    async with site.opened() as mt:
        talk: Any = site.talk(mt.thread("t"))
        for wrong in (None, 3, b"hello", ["hello"]):
            problem = await _error_of(talk.say(wrong))
            assert "say takes a text" in problem, problem
        assert site.requests == [], "no model was asked"


async def _error_of(saying: Awaitable[object]) -> str:
    try:
        await within(saying)
    except InvalidInput as problem:
        return str(problem)
    raise AssertionError("it was said")


def refused(make: Callable[[], object]) -> str:
    try:
        make()
    except InvalidInput as problem:
        return str(problem)
    raise AssertionError("it was made")


CHECKS = (
    a_function_named_like_a_tool_of_the_thread_is_refused,
    two_functions_of_one_name_are_refused,
    a_threshold_that_is_no_time_is_refused,
    a_threshold_may_be_a_text,
    an_agent_that_was_not_given_is_refused,
    what_is_no_text_cannot_be_said,
)
