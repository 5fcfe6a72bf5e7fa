"""Checks of a host's optional abilities; an ability that it does not claim is not used."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, cast

from meantime.kernel.errors import MeantimeError
from meantime.ports.session import KeepingHost, LastingHost

from ..suite.patience import within
from .host_fixture import NOWHERE, HostFixture, Recorder


async def a_session_outlives_its_host(bench: HostFixture) -> None:
    """`resume`: also after a restart."""
    if not bench.host.abilities.resume:
        return
    session, brief = await bench.begin()
    await bench.say(session, brief, "walnut")
    await bench.restart()
    assert await within(bench.host.exists(session, bench.settings), "exists()"), "gone with its host"
    turned = await bench.turn(session, brief, bench.script.recall)
    assert "walnut" in turned.text, f"after a restart it knows only {turned.text!r}"


async def a_fork_knows_what_its_source_knew(bench: HostFixture) -> None:
    if not bench.host.abilities.fork:
        return
    session, brief = await bench.begin()
    await bench.say(session, brief, "walnut")
    other = bench.brief()
    copy = await within(bench.host.fork(session, other), "fork()")
    assert copy != session, "a fork is a session of its own"
    await bench.say(copy, other, "hazel")
    turned = await bench.turn(copy, other, bench.script.recall)
    assert "walnut" in turned.text, f"the fork knows only {turned.text!r}"
    turned = await bench.turn(session, brief, bench.script.recall)
    assert "hazel" not in turned.text, "a message to a fork reached its source"


async def a_busy_session_can_be_forked(bench: HostFixture) -> None:
    if not bench.host.abilities.fork:
        return
    session, brief = await bench.begin()
    await bench.say(session, brief, "walnut")
    going = asyncio.ensure_future(bench.turn(session, brief, bench.script.slow, "hazel"))
    await bench.middle(going)
    other = bench.brief()
    copy = await within(bench.host.fork(session, other), "fork()")
    turned = await bench.turn(copy, other, bench.script.recall)
    assert "walnut" in turned.text, f"the fork knows only {turned.text!r}"
    assert "hazel" in (await going).text, "the fork harmed its source"


async def a_fork_of_nothing_is_an_error(bench: HostFixture) -> None:
    if not bench.host.abilities.fork:
        return
    try:
        copy = await within(bench.host.fork(NOWHERE, bench.brief()), "fork()")
    except MeantimeError:
        return
    raise AssertionError(f"a fork of a session that is not there is {copy!r}")


async def a_running_turn_can_be_steered(bench: HostFixture) -> None:
    if not bench.host.abilities.steer:
        return
    session, brief = await bench.begin()
    going = asyncio.ensure_future(bench.turn(session, brief, bench.script.slow, "walnut"))
    await bench.middle(going)
    assert not going.done(), "the turn was not slow"
    assert await within(bench.host.steer(session, "hurry"), "steer()"), "a turn continues, and is not steered"
    await going


async def where_no_turn_goes_on_nothing_is_steered(bench: HostFixture) -> None:
    """It must not be said at all: whoever asked says it in another way."""
    if not bench.host.abilities.steer:
        return
    session, brief = await bench.begin()
    await bench.say(session, brief, "walnut")
    assert not await within(bench.host.steer(session, "hurry"), "steer()"), "no turn continues"


async def history_has_both_sides(bench: HostFixture) -> None:
    if not bench.host.abilities.history:
        return
    session, brief = await bench.begin()
    await bench.say(session, brief, "walnut")
    lines = await within(bench.host.lines(session, bench.settings), "lines()")
    for role in ("user", "assistant"):
        own = [line.text for line in lines if line.role == role]
        assert any("walnut" in text for text in own), f"the {role}'s words are not in {own}"


async def a_turn_that_is_left_goes_on_and_is_followed(bench: HostFixture) -> None:
    """`lasting`: nothing is repeated."""
    if not bench.host.abilities.lasting:
        return
    host = cast("LastingHost", bench.host)
    session, brief = await bench.begin()
    prompt = bench.prompt(bench.script.slow, brief, "walnut")
    going = asyncio.ensure_future(host.prompt(session, prompt, brief, Recorder()))
    await bench.middle(going)
    assert not going.done(), "the turn was not slow"
    assert await within(host.leave(session), "leave()"), "a lasting host cannot leave"
    going.cancel()
    await asyncio.wait({going})
    recorder = Recorder()
    turned = await within(host.follow(session, prompt, brief, recorder), "follow()")
    assert "walnut" in turned.text, f"what was followed ended with {turned}"
    recalled = await bench.turn(session, brief, bench.script.recall)
    assert recalled.text.count("walnut") == 1, f"it was said again: {recalled.text!r}"


async def a_prompt_that_was_never_given_is_given_by_follow(bench: HostFixture) -> None:
    if not bench.host.abilities.lasting:
        return
    session, brief = await bench.begin()
    prompt = bench.prompt(bench.script.say, brief, "walnut")
    host = cast("LastingHost", bench.host)
    turned = await within(host.follow(session, prompt, brief, Recorder()), "follow()")
    assert "walnut" in turned.text, f"it ended with {turned}"


async def a_session_that_is_forgotten_is_gone(bench: HostFixture) -> None:
    """`keeps`: once and for all, and no other with it."""
    if not bench.host.abilities.keeps:
        return
    host = cast("KeepingHost", bench.host)
    session, brief = await bench.begin()
    await bench.say(session, brief, "walnut")
    other, beside = await bench.begin()
    await bench.say(other, beside, "hazel")
    assert {session, other} <= set(host.old_sessions(0.0)), "it does not know what it keeps"
    assert session not in host.old_sessions(86_400.0), "it is not a day old"
    for _ in range(2):  # the second time there is nothing to forget
        host.forget(session)
    assert session not in host.old_sessions(0.0), "it still keeps something of it"
    await bench.restart()
    assert not await within(bench.host.exists(session, bench.settings), "exists()"), "it is still there"
    turned = await bench.turn(other, beside, bench.script.recall)
    assert "hazel" in turned.text, "another session was forgotten with it"


async def what_it_cannot_is_refused(bench: HostFixture) -> None:
    """A caller that asks for it all the same is told so, and nothing is done."""
    able = bench.host.abilities
    session, brief = await bench.begin()
    await bench.say(session, brief, "walnut")
    if not able.fork:
        await _refused(bench.host.fork(session, bench.brief()), "fork()")
    if not able.history:
        await _refused(bench.host.lines(session, bench.settings), "lines()")
    if not able.steer:
        going = asyncio.ensure_future(bench.turn(session, brief, bench.script.slow, "hazel"))
        await bench.middle(going)
        assert not await within(bench.host.steer(session, "hurry"), "steer()"), "it cannot be"
        await going
    if not able.resume:
        assert not await within(bench.host.exists(session, bench.settings), "exists()"), "it cannot go on"


async def _refused(asked: Coroutine[Any, Any, Any], what: str) -> None:
    try:
        answer = await within(asked, what)
    except MeantimeError:
        return
    raise AssertionError(f"its abilities do not say {what}, which answered {answer!r}")


CHECKS = (
    a_session_outlives_its_host,
    a_fork_knows_what_its_source_knew,
    a_busy_session_can_be_forked,
    a_fork_of_nothing_is_an_error,
    a_running_turn_can_be_steered,
    where_no_turn_goes_on_nothing_is_steered,
    history_has_both_sides,
    a_turn_that_is_left_goes_on_and_is_followed,
    a_prompt_that_was_never_given_is_given_by_follow,
    a_session_that_is_forgotten_is_gone,
    what_it_cannot_is_refused,
)
