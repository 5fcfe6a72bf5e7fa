"""The duties of every host: sessions and turns that begin, end, stop, and know the conversation."""

from __future__ import annotations

import asyncio

import msgspec

from meantime.kernel.errors import MeantimeError
from meantime.kernel.lines import storable
from meantime.ports.session import Brief, Turned

from ..suite.patience import within
from .host_fixture import NOWHERE, HostFixture, Recorder


async def a_prompt_is_answered(bench: HostFixture) -> None:
    session, brief = await bench.begin()
    turned = await bench.say(session, brief, "walnut")
    assert not turned.stopped, "nobody asked it to stop"
    assert not turned.lost, "it is there"


async def what_the_agent_says_is_heard(bench: HostFixture) -> None:
    session, brief = await bench.begin()
    recorder = Recorder()
    await bench.say(session, brief, "walnut", recorder)
    assert "walnut" in recorder.text, f"it reported only {recorder.text!r}"


async def the_prompt_is_not_said_back(bench: HostFixture) -> None:
    """The driver of the host has kept it already."""
    session, brief = await bench.begin()
    recorder = Recorder()
    await bench.say(session, brief, "walnut", recorder)
    own = [line for line in recorder.lines if line.role == "user"]
    assert not own, f"it reported a line of the user: {own}"


async def a_session_knows_what_was_said_before(bench: HostFixture) -> None:
    session, brief = await bench.begin()
    for word in ("walnut", "hazel"):
        await bench.say(session, brief, word)
    turned = await bench.turn(session, brief, bench.script.recall)
    assert "walnut" in turned.text, f"the first word is not in {turned.text!r}"
    assert "hazel" in turned.text, f"the second word is not in {turned.text!r}"


async def two_sessions_at_once_do_not_mix(bench: HostFixture) -> None:
    (one, brief), (two, other) = await bench.begin(), await bench.begin()
    assert one != two, "two sessions have one id"
    await asyncio.gather(bench.say(one, brief, "walnut"), bench.say(two, other, "hazel"))
    told, others = await asyncio.gather(
        bench.turn(one, brief, bench.script.recall), bench.turn(two, other, bench.script.recall)
    )
    assert "hazel" not in told.text, f"the other session's word is in {told.text!r}"
    assert "walnut" not in others.text, f"the other session's word is in {others.text!r}"


async def a_stop_ends_the_turn(bench: HostFixture) -> None:
    session, brief = await bench.begin()
    await _stopped(bench, session, brief)


async def a_stopped_session_can_be_gone_on_with(bench: HostFixture) -> None:
    if not bench.host.abilities.resume:
        return
    session, brief = await bench.begin()
    await bench.say(session, brief, "walnut")
    await _stopped(bench, session, brief)
    turned = await bench.turn(session, brief, bench.script.recall)
    assert "walnut" in turned.text, f"after a stop it knows only {turned.text!r}"


async def a_stop_of_one_leaves_the_other_alone(bench: HostFixture) -> None:
    (one, brief), (two, other) = await bench.begin(), await bench.begin()
    slow = asyncio.ensure_future(bench.turn(two, other, bench.script.slow, "hazel"))
    await _stopped(bench, one, brief)
    turned = await slow
    assert "hazel" in turned.text, f"the other turn ended with {turned}"


async def what_exists_is_known(bench: HostFixture) -> None:
    if not bench.host.abilities.resume:
        return
    session, brief = await bench.begin()
    await bench.say(session, brief, "walnut")
    assert await within(bench.host.exists(session, bench.settings), "exists()"), "its own session"
    assert not await within(bench.host.exists(NOWHERE, bench.settings), "exists()"), "a session of nobody"


async def an_unknown_session_is_an_error_and_no_new_one(bench: HostFixture) -> None:
    if not bench.host.abilities.resume:
        return
    try:
        turned = await bench.turn(NOWHERE, bench.brief(), bench.script.say, "walnut")
    except MeantimeError:
        return
    assert turned.error or turned.lost, f"a session that is not there answered: {turned}"


async def odd_characters_harm_nobody(bench: HostFixture) -> None:
    session, brief = await bench.begin()
    recorder = Recorder()
    turned = await bench.turn(session, brief, bench.script.odd, hearer=recorder)
    assert turned.error is None, f"the turn failed: {turned.error}"
    assert "漢字 😀" in turned.text, f"characters were lost: {turned.text!r}"
    for line in recorder.lines:
        msgspec.json.encode(storable(line, at=0.0, run=1))
    await bench.say(session, brief, "walnut")


async def closing_twice_is_harmless(bench: HostFixture) -> None:
    session, brief = await bench.begin()
    await bench.say(session, brief, "walnut")
    await within(bench.host.close(), "close()")
    await within(bench.host.close(), "a second close()")


async def _stopped(bench: HostFixture, session: str, brief: Brief) -> None:
    prompt = bench.prompt(bench.script.wait, brief)
    turning = asyncio.ensure_future(bench.host.prompt(session, prompt, brief, Recorder()))
    await bench.middle(turning)
    assert not turning.done(), f"the turn did not wait: {turning}"
    turning.cancel()
    await within(_over(turning), "a stopped prompt()")
    if not turning.cancelled():
        turned = turning.result()
        assert turned.stopped or turned.text or turned.error, f"a stop that says nothing: {turned}"


async def _over(turning: asyncio.Future[Turned]) -> None:
    await asyncio.wait({turning})


CHECKS = (
    a_prompt_is_answered,
    what_the_agent_says_is_heard,
    the_prompt_is_not_said_back,
    a_session_knows_what_was_said_before,
    two_sessions_at_once_do_not_mix,
    a_stop_ends_the_turn,
    a_stopped_session_can_be_gone_on_with,
    a_stop_of_one_leaves_the_other_alone,
    what_exists_is_known,
    an_unknown_session_is_an_error_and_no_new_one,
    odd_characters_harm_nobody,
    closing_twice_is_harmless,
)
