"""Told once, in order, at the next request, whatever comes between."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from ..suite.patience import until, within
from .talk_site import TalkFixture, ToolCall, first, ids_in


async def a_quick_function_answers_at_once(fixture: TalkFixture) -> None:
    site = fixture.site
    site.script(ToolCall("crawl", {"site": "a.org"}), "3 pages")
    async with fixture.site.opened() as mt:
        talk = site.talk(mt.thread("t"), fixture.gates.crawl)
        assert await within(talk.say("how big is a.org?")) == "3 pages"
        assert "crawl" in site.requests[0].tools
        assert site.requests[1].results == ["a.org has 3 pages"], f"{site.requests[1].results}"
        assert await mt.list() == [], "nothing was handed off"


async def a_slow_one_goes_on_and_the_agent_is_woken_and_told_once(fixture: TalkFixture) -> None:
    site = fixture.site
    fixture.gates.shut("a.org")
    site.script(ToolCall("crawl", {"site": "a.org"}), "it takes a while", "3 pages", "as I said: 3")
    async with fixture.site.opened() as mt:
        talk = site.talk(mt.thread("t"), fixture.gates.crawl, threshold=0.01)
        assert await within(talk.say("how big is a.org?")) == "it takes a while"
        assert "goes on in the background as task t_" in site.requests[1].results[0]
        fixture.gates.open("a.org")
        assert await first(talk.woken()) == "3 pages"
        (told,) = site.requests[2].notices
        assert "a.org has 3 pages" in told, told
        assert await within(talk.say("sorry?")) == "as I said: 3"
        assert site.requests[3].notices == [told], "it is in the conversation once"
        assert await mt.notices() == []


async def five_endings_are_told_in_one_turn_in_order_before_the_prompt(fixture: TalkFixture) -> None:
    site = fixture.site
    site.script("ok")
    async with fixture.site.opened() as mt:
        thread = mt.thread("t")
        ended = [await fixture.ended(thread, f"{letter}.org") for letter in "cabed"]
        await within(site.talk(thread).say("hello"))
        assert ids_in(site.requests[0].notices) == [f"{task.id}.1" for task in ended]
        assert site.requests[0].prompts[-1] == "hello", f"{site.requests[0].prompts}"
        assert "not yet told" not in site.requests[0].instructions, "the reminder beside them agrees"
        assert await mt.notices() == []


async def what_ends_during_a_turn_is_told_with_the_next_request(fixture: TalkFixture) -> None:
    site, gates = fixture.site, fixture.gates
    site.script(ToolCall("crawl", {"site": "b.org"}), ToolCall("crawl", {"site": "c.org"}, "call-2"), "done")
    async with fixture.site.opened() as mt:
        thread = mt.thread("t")
        gates.shut("b.org")
        talking = asyncio.ensure_future(site.talk(thread, gates.crawl, threshold=None).say("crawl both"))
        await until(lambda: site.requests, "the model is asked")
        task = await fixture.ended(thread)
        gates.open("b.org")
        assert await within(talking) == "done"
        assert ids_in(site.requests[0].notices) == []
        for request in site.requests[1:]:
            assert ids_in(request.notices) == [f"{task.id}.1"], "from then on, at every request, once"
        assert await mt.notices() == []
        site.script("hm?")
        await within(site.talk(thread, gates.crawl).say("and after a restart?"))
        assert ids_in(site.requests[-1].notices) == [f"{task.id}.1"], "it was kept, and is not told again"


async def what_is_told_before_the_last_answer_is_answered_by_it(fixture: TalkFixture) -> None:
    site, gates = fixture.site, fixture.gates
    site.script(ToolCall("crawl", {"site": "b.org"}), "done")
    async with fixture.site.opened() as mt:
        thread = mt.thread("t")
        gates.shut("b.org")
        talking = asyncio.ensure_future(site.talk(thread, gates.crawl, threshold=None).say("crawl it"))
        await until(lambda: site.requests, "the model is asked")
        await fixture.ended(thread)
        gates.open("b.org")
        assert await within(talking) == "done"
        assert len(site.requests[-1].notices) == 1
        assert await within(site.talk(thread, gates.crawl).say()) is None, "nothing waits for an answer"
        assert len(site.requests) == 2


async def what_ends_while_the_model_answers_is_left_for_the_next_turn(fixture: TalkFixture) -> None:
    """The answer to the person is not lost behind an answer to the notice."""
    site, answers = fixture.site, asyncio.Event()
    site.script(answers, "hello to you", "3 pages")
    async with fixture.site.opened() as mt:
        thread = mt.thread("t")
        talk = site.talk(thread)
        talking = asyncio.ensure_future(talk.say("hello"))
        await until(lambda: site.requests, "the model is asked")
        task = await fixture.ended(thread)
        answers.set()
        assert await within(talking) == "hello to you"
        assert [len(request.notices) for request in site.requests] == [0]
        assert await first(talk.woken()) == "3 pages"
        assert ids_in(site.requests[-1].notices) == [f"{task.id}.1"]
        assert await mt.notices() == []


async def what_the_agent_read_itself_is_not_told_again(fixture: TalkFixture) -> None:
    site = fixture.site
    async with fixture.site.opened() as mt:
        thread = mt.thread("t")
        fixture.gates.shut("a.org")
        task = await thread.start(fixture.gates.crawl.work("a.org"))
        site.script(ToolCall("wait", {"ids": [task.id], "seconds": 20}), "3 pages")
        talking = asyncio.ensure_future(site.talk(thread).say("wait for it"))
        await until(lambda: site.requests, "the model is asked")
        fixture.gates.open("a.org")
        assert await within(talking) == "3 pages"
        assert "a.org has 3 pages" in site.requests[1].results[0], site.requests[1].results[0]
        assert site.requests[1].notices == []
        assert await mt.notices() == []


async def a_crash_between_the_answer_and_the_ack_tells_nothing_twice(fixture: TalkFixture) -> None:
    site = fixture.site
    site.script("3 pages", "as I said")
    async with fixture.site.opened() as mt:
        thread = mt.thread("t")
        await fixture.ended(thread)
        talk = site.talk(thread)

        async def crash(turn: object) -> None:
            raise ConnectionError("just before the ack")

        talk._settle = crash  # pyright: ignore[reportAttributeAccessIssue]
        with suppress(ConnectionError):
            await within(talk.say())
        assert len(site.requests) == 1
    async with fixture.site.opened() as mt:
        assert len(await mt.notices()) == 1, "it was not acknowledged"
        talk = site.talk(mt.thread("t"))
        assert await within(talk.say()) is None, "it was told and answered; only the ack was missing"
        assert await mt.notices() == []
        assert await within(talk.say("sorry?")) == "as I said"
        assert len(site.requests[-1].notices) == 1


async def an_error_of_the_model_loses_nothing_and_doubles_nothing(fixture: TalkFixture) -> None:
    site = fixture.site
    site.script(ConnectionError("the provider is away"), "3 pages")
    async with fixture.site.opened() as mt:
        thread = mt.thread("t")
        await fixture.ended(thread)
        talk = site.talk(thread)
        try:
            await within(talk.say())
        except Exception:
            assert len(await mt.notices()) == 1, "the turn failed: it is not told"
        else:
            raise AssertionError("the error of the model was swallowed")
        assert await within(talk.say()) == "3 pages"
        assert len(site.requests[-1].notices) == 1
        assert await mt.notices() == []


async def a_turn_that_is_cancelled_loses_nothing_and_doubles_nothing(fixture: TalkFixture) -> None:
    site, gates = fixture.site, fixture.gates
    site.script(ToolCall("crawl", {"site": "b.org"}))
    async with fixture.site.opened() as mt:
        thread = mt.thread("t")
        task = await fixture.ended(thread)
        gates.shut("b.org")
        talk = site.talk(thread, gates.crawl, threshold=None)
        talking = asyncio.ensure_future(talk.say("crawl b.org"))
        await until(lambda: gates.entered("b.org"), "the function has begun")
        talking.cancel()
        with suppress(asyncio.CancelledError):
            await within(talking)
        assert len(await mt.notices()) == 1, "the turn did not come to its end: it is not told"
        site.script("3 pages")
        assert await within(talk.say("go on")) == "3 pages"
        assert ids_in(site.requests[-1].notices) == [f"{task.id}.1"]
        assert await mt.notices() == []


async def a_task_that_the_agent_cancels_is_told_at_most_once(fixture: TalkFixture) -> None:
    site = fixture.site
    async with fixture.site.opened() as mt:
        thread = mt.thread("t")
        fixture.gates.shut("a.org")
        task = await thread.start(fixture.gates.crawl.work("a.org"))
        site.script(ToolCall("cancel", {"id": task.id}), "stopped", "as I said")
        talk = site.talk(thread)
        assert await within(talk.say("stop it")) == "stopped"
        await within(thread.wait(task))
        assert await within(talk.say("sorry?")) == "as I said"
        told = ids_in(site.requests[-1].notices)
        assert told in ([], [f"{task.id}.1"]), f"{told}"
        assert "cancelled" in " ".join([*site.requests[-1].results, *site.requests[-1].notices])
        assert await mt.notices() == []


async def every_run_of_an_agent_that_is_resumed_and_forked_is_told_once(fixture: TalkFixture) -> None:
    site = fixture.site
    async with fixture.site.opened(agents={"echo": _echo}) as mt:
        thread = mt.thread("t")
        talk = site.talk(thread, agents=("echo",))
        site.script(ToolCall("start_agent", {"agent": "echo", "prompt": "one"}), "started")
        await within(talk.say("start it"))
        (task,) = await mt.list()
        await within(thread.wait(task.id))
        site.script("heard", ToolCall("resume", {"id": task.id, "prompt": "two"}, "call-2"), "resumed")
        await within(talk.say("and?"))
        await within(talk.say("go on with it"))
        await within(thread.wait(task.id))
        fork = await thread.fork(task.id, "three")
        await within(thread.wait(fork))
        site.script("told of all", "as I said")
        await within(talk.say("is that all?"))
        await within(talk.say("sorry?"))
        told = ids_in(site.requests[-1].notices)
        assert told == [f"{task.id}.1", f"{task.id}.2", f"{fork.id}.1"], f"{told}"
        assert await mt.notices() == []


async def _echo(conversation: Any) -> str:
    return conversation.messages[-1].text


async def wrong_arguments_are_answered_to_the_model(fixture: TalkFixture) -> None:
    site = fixture.site
    site.script(ToolCall("crawl", {"folder": 5}), "I see", ToolCall("crawl", "{not json"), "I see")
    async with fixture.site.opened() as mt:
        talk = site.talk(mt.thread("t"), fixture.gates.crawl)
        assert await within(talk.say("do it wrongly")) == "I see"
        with suppress(Exception):  # some frameworks refuse such a call themselves
            await within(talk.say("and again"))
        assert await mt.list() == [], "nothing was started"


async def nothing_to_say_asks_no_model(fixture: TalkFixture) -> None:
    async with fixture.site.opened() as mt:
        assert await within(fixture.site.talk(mt.thread("t")).say()) is None
        assert fixture.site.requests == []


async def a_reminder_of_what_runs_is_in_every_request(fixture: TalkFixture) -> None:
    site = fixture.site
    site.script("nothing", "something")
    fixture.gates.shut("a.org")
    async with fixture.site.opened() as mt:
        thread = mt.thread("t")
        talk = site.talk(thread)
        await within(talk.say("what runs?"))
        await thread.start(fixture.gates.crawl.work("a.org"), description="crawl a.org")
        await within(talk.say("and now?"))
        assert "crawl a.org" not in site.requests[0].instructions
        assert "crawl a.org" in site.requests[1].instructions, site.requests[1].instructions
        fixture.gates.open("a.org")


async def the_tools_can_have_the_words_of_another_dialect(fixture: TalkFixture) -> None:
    site = fixture.site
    site.script(ToolCall("list_jobs", {}), "none")
    async with fixture.site.opened() as mt:
        assert await within(site.talk(mt.thread("t"), dialect="psi").say("what runs?")) == "none"
        assert "list_jobs" in site.requests[0].tools, f"{site.requests[0].tools}"
        assert "wait" not in site.requests[0].tools
        assert len(site.requests[1].results) == 1, "the call was answered"


async def two_conversations_at_once_keep_apart(fixture: TalkFixture) -> None:
    site = fixture.site
    site.script("one", "two")
    async with fixture.site.opened() as mt:
        tasks = [await fixture.ended(mt.thread(name)) for name in ("left", "right")]
        talks = [site.talk(mt.thread(name)) for name in ("left", "right")]
        await within(asyncio.gather(*(talk.say() for talk in talks)))
        told = sorted(tuple(ids_in(request.notices)) for request in site.requests)
        assert told == sorted((f"{task.id}.1",) for task in tasks), f"{told}"
        assert await mt.notices() == []


async def two_talks_of_one_conversation_at_once_keep_both_exchanges(fixture: TalkFixture) -> None:
    """As in a web server that makes a Talk for each request."""
    site = fixture.site
    site.script("one", "two")
    async with fixture.site.opened() as mt:
        talks = [site.talk(mt.thread("t")) for _ in range(2)]
        answers = await within(asyncio.gather(talks[0].say("Q-one"), talks[1].say("Q-two")))
        assert sorted(answers) == ["one", "two"], f"{answers}"
        assert len(_questions(site.requests[0].prompts)) == 1
        assert len(_questions(site.requests[1].prompts)) == 2, "the second turn holds the first"
        for talk in (talks[0], site.talk(mt.thread("t"))):
            site.script("as I said")
            await within(talk.say("and?"))
            assert _questions(site.requests[-1].prompts) == _questions(site.requests[1].prompts)


def _questions(prompts: Sequence[str]) -> list[str]:
    return [text for text in prompts if text in ("Q-one", "Q-two")]


CHECKS = (
    a_quick_function_answers_at_once,
    a_slow_one_goes_on_and_the_agent_is_woken_and_told_once,
    five_endings_are_told_in_one_turn_in_order_before_the_prompt,
    what_ends_during_a_turn_is_told_with_the_next_request,
    what_is_told_before_the_last_answer_is_answered_by_it,
    what_ends_while_the_model_answers_is_left_for_the_next_turn,
    what_the_agent_read_itself_is_not_told_again,
    a_crash_between_the_answer_and_the_ack_tells_nothing_twice,
    an_error_of_the_model_loses_nothing_and_doubles_nothing,
    a_turn_that_is_cancelled_loses_nothing_and_doubles_nothing,
    a_task_that_the_agent_cancels_is_told_at_most_once,
    every_run_of_an_agent_that_is_resumed_and_forked_is_told_once,
    wrong_arguments_are_answered_to_the_model,
    nothing_to_say_asks_no_model,
    a_reminder_of_what_runs_is_in_every_request,
    the_tools_can_have_the_words_of_another_dialect,
    two_conversations_at_once_keep_apart,
    two_talks_of_one_conversation_at_once_keep_both_exchanges,
)
