"""A question from the background makes its task wait, visibly and durably, until somebody answers."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from meantime import AlreadyAnswered, Call, InvalidInput, Meantime, Refused, current
from meantime.kernel.change import Change
from meantime.kernel.questions import MOST, Choice, Question, posed, reply_to
from meantime.ports.session import SessionAbilities
from meantime.ports.store import Committed
from meantime.system.platform import linux
from meantime.testing import FakeClock
from meantime.testing.scripted_host import LastingScriptedHost, ScriptedHost
from outcomes import completed, unfinished
from runtimes import runtime_of

from .stage import events, permission, start, waits, working

pytestmark = pytest.mark.anyio


def asking(*questions: Question):
    """A turn that asks, one after the other, and says what it was answered."""

    async def turn(prompt, hearer):
        if prompt.text.startswith("You were interrupted"):
            return prompt.text
        replies = [await hearer.ask(question) for question in questions]
        return "; ".join(f"{reply.by} {reply.allows} {reply.text}".strip() for reply in replies)

    return turn


WHICH = Question(id="q1", text="Which colour?", choices=(Choice("red", "Red"), Choice("blue", "Blue")))
OPEN = Question(id="q2", text="What is your name?")


@pytest.mark.behaviour("L28")
async def test_waiting_is_shown_everywhere(tmp_path: Path):
    async with working(tmp_path, asking(WHICH)) as mt:
        handle = await start(mt)
        task = await waits(mt, handle.id)
        assert (task.status, task.question.text) == ("waiting", "Which colour?")
        assert [listed.question.id for listed in await mt.list("waiting")] == ["q1"]
        reminder = await mt.thread("conv-1").reminder()
        assert "asks: Which colour? [red, blue]" in reminder
        await mt.thread("conv-1").answer(handle, "2")
        assert await handle.result() == "agent None"
        assert (await handle.get()).answers[0].choices == ("blue",)
        kinds = await events(mt, handle.id)
        assert [kind for kind in kinds if kind in ("asked", "answered", "ended")] == [
            "asked", "answered", "ended",
        ]  # fmt: skip


@pytest.mark.behaviour("L28")
async def test_any_text_answers_an_open_question(tmp_path: Path):
    async with working(tmp_path, asking(OPEN)) as mt:
        handle = await start(mt)
        await waits(mt, handle.id)
        with pytest.raises(InvalidInput, match="needs words"):
            await mt.answer(handle.id, " ")
        await mt.answer(handle.id, "Ada")
        assert await handle.result() == "user None Ada"


@pytest.mark.behaviour("L28")
async def test_an_answer_that_is_none_of_those_offered_is_refused(tmp_path: Path):
    async with working(tmp_path, asking(WHICH)) as mt:
        handle = await start(mt)
        await waits(mt, handle.id)
        for wrong in ("green", "3", ":", ": red"):
            with pytest.raises(InvalidInput, match="none of the answers"):
                await mt.answer(handle.id, wrong)
        assert (await mt.answer(handle.id, "Red")).status == "running"
        with pytest.raises(AlreadyAnswered) as caught:
            await mt.answer(handle.id, "blue")
        assert (caught.value.code, caught.value.by, caught.value.answer) == (
            "already_answered",
            "user",
            "red",
        )


@pytest.mark.behaviour("F18")
@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ({"allow": ("bash",)}, "rule True"),
        ({"allow": ("*",), "deny": ("ba*",)}, "rule False The rules of this agent do not allow it."),
        ({"otherwise": "deny"}, "rule False The rules of this agent do not allow it."),
        ({"otherwise": "allow"}, "rule True"),
    ],
)
async def test_a_permission_that_a_rule_decides_asks_nobody_and_is_written_down(
    tmp_path: Path, rules: dict[str, Any], said: str
):
    async with working(tmp_path, asking(permission()), **rules) as mt:
        handle = await start(mt)
        assert await handle.result() == said
        assert "asked" not in await events(mt, handle.id)
        (noted,) = await mt.lines(handle.id, roles=["system"])
        assert noted.text.startswith("permission ")
        assert noted.text.endswith("by rule: bash")


@pytest.mark.behaviour("F18")
async def test_an_answer_for_the_task_holds_for_all_of_it_and_one_for_once_does_not(tmp_path: Path):
    questions = [permission("p1"), permission("p2"), permission("p3", "write"), permission("p4", "write")]
    async with working(tmp_path, asking(*questions)) as mt:
        handle = await start(mt)
        await waits(mt, handle.id)
        await mt.answer(handle.id, "always")  # p1, and with it p2
        assert (await waits(mt, handle.id)).question.id == "p3"
        await mt.answer(handle.id, "yes")
        assert (await waits(mt, handle.id)).question.id == "p4"
        await mt.answer(handle.id, "no: not there", scope="task")
        assert await handle.result() == "user True; rule True; user True; user False not there"
        again = await mt.thread("conv-1").resume(handle, "more")
        assert completed(await again.wait()).result.startswith("rule True; rule True; rule False")


@pytest.mark.behaviour("L28")
async def test_an_agent_cannot_give_a_permission_but_can_refuse_it(tmp_path: Path):
    async with working(tmp_path, asking(permission())) as mt:
        handle = await start(mt)
        await waits(mt, handle.id)
        with pytest.raises(Refused) as caught:
            await mt.thread("conv-1").answer(handle, "allow")
        assert caught.value.code == "needs_a_person"
        assert f'mt.answer("{handle.id}", "allow")' in caught.value.hint  # its ledger may be no daemon's
        by: Any
        for by in ("person", "interrupt", "", None):
            with pytest.raises(InvalidInput, match="Use 'user' for a person, 'agent' for an agent"):
                await mt.thread("conv-1").answer(handle, "allow", by=by)
        await mt.thread("conv-1").answer(handle, "no")
        assert await handle.result() == "agent False"


@pytest.mark.breadth
@pytest.mark.behaviour("L28")
async def test_an_agent_goes_on_when_nobody_answers_in_time(tmp_path: Path):
    clock = FakeClock(quiet=0.02)
    async with working(tmp_path, asking(permission(), WHICH), clock=clock, answer_within=900.0) as mt:
        handle = await start(mt)
        for _ in range(2):
            await clock.advance_to_alarm(900.0)
        await clock.advance(0)
        nobody = "nobody False Nobody answered within 15m 0s."
        assert await handle.result() == f"{nobody}; {nobody}"
        assert [reply.by for reply in (await handle.get()).answers] == ["nobody", "nobody"]


def kept() -> ScriptedHost:
    """Its sessions survive with their folder."""
    return ScriptedHost(asking(permission()), kept=True)


@pytest.mark.behaviour("L28")
async def test_an_orderly_close_leaves_a_question_open(tmp_path: Path):
    """As after a crash: nobody has answered, so nothing has ended."""
    async with working(tmp_path, kept()) as mt:
        await waits(mt, (await start(mt, id="t_one")).id)
    async with working(tmp_path, kept()) as mt:
        task = await mt.get("t_one")
        assert (task.status, task.question and task.question.text) == ("waiting", "May I?")
        await mt.answer("t_one", "allow")
        (task,) = await mt.thread("conv-1").wait("t_one")
        assert task.status == "completed", task
        assert [kind for kind in await events(mt, "t_one") if kind == "asked"] == ["asked"]


@pytest.mark.behaviour("L28")
async def test_an_agent_that_nobody_could_go_on_with_is_stopped_when_its_owner_closes(tmp_path: Path):
    host = ScriptedHost(asking(permission()), abilities=SessionAbilities(resume=False))
    async with working(tmp_path, host) as mt:
        await waits(mt, (await start(mt, id="t_one")).id)
    async with working(tmp_path, kept()) as mt:
        assert (await mt.get("t_one")).status == "cancelled"


@pytest.mark.behaviour("L28")
async def test_a_close_that_stops_everything_stops_an_agent_that_asks(tmp_path: Path):
    async with working(tmp_path, kept()) as mt:
        await waits(mt, (await start(mt, id="t_one")).id)
        await mt.close(on_close="stop")
    async with working(tmp_path, kept()) as mt:
        assert (await mt.get("t_one")).status == "cancelled"


async def left_waiting(folder: Path, clock: FakeClock, seconds: float) -> Path:
    """What an owner leaves behind that is killed when its question has waited so long: its files as they were
    then. They are put back into the same files, as a copy is known to be one."""
    owned, then = folder / "owned", folder / "then"
    owned.mkdir()
    async with working(owned, kept(), clock=clock, answer_within=900.0) as mt:
        await waits(mt, (await start(mt, id="t_one")).id)
        await clock.advance(seconds)
        shutil.copytree(owned, then)
    for file in (path for path in then.rglob("*") if path.is_file()):
        (owned / file.relative_to(then)).write_bytes(file.read_bytes())
    return owned


@pytest.mark.breadth
@pytest.mark.behaviour("L28")
async def test_a_question_may_be_refused_before_it_is_on_record(tmp_path: Path):
    async with working(tmp_path, asking(permission(), WHICH), answer_within=0.0) as mt:
        nobody = "nobody False Nobody answered within 0s."
        assert await (await start(mt)).result() == f"{nobody}; {nobody}"


@pytest.mark.breadth
@pytest.mark.behaviour("L28")
async def test_the_time_to_answer_counts_over_a_restart(tmp_path: Path):
    clock = FakeClock(quiet=0.02)
    left = await left_waiting(tmp_path, clock, 600.0)
    await clock.advance(200.0)  # while nobody owns it
    clock.jump(-100_000.0)  # what a person does to the clock on the wall changes nothing
    async with working(left, kept(), clock=clock, answer_within=900.0) as mt:
        await clock.advance_to_alarm(100.0)
        (task,) = await mt.thread("conv-1").wait("t_one")
        assert "Nobody answered within 15m 0s." in completed(task).result


@pytest.mark.breadth
@pytest.mark.behaviour("L28")
async def test_a_question_that_waited_too_long_while_nobody_owned_it_is_refused_at_once(tmp_path: Path):
    clock = FakeClock(quiet=0.02)
    left = await left_waiting(tmp_path, clock, 600.0)
    await clock.advance(86_400.0)
    async with working(left, kept(), clock=clock, answer_within=900.0) as mt:
        (task,) = await mt.thread("conv-1").wait("t_one")  # time stands still
        assert "Nobody answered within 15m 0s." in completed(task).result


@pytest.mark.breadth
@pytest.mark.behaviour("L28")
@pytest.mark.linux_only("it plants another boot id where the kernel of Linux has it")
async def test_over_a_restart_of_the_machine_the_clock_on_the_wall_counts(tmp_path: Path, monkeypatch):
    clock = FakeClock(quiet=0.02)
    left = await left_waiting(tmp_path, clock, 600.0)
    monkeypatch.setattr(linux, "BOOT_ID", tmp_path / "another boot")
    clock = FakeClock(clock.now() + 200.0, quiet=0.02)  # its monotonic time begins anew
    async with working(left, kept(), clock=clock, answer_within=900.0) as mt:
        await clock.advance_to_alarm(100.0)
        (task,) = await mt.thread("conv-1").wait("t_one")
        assert "Nobody answered within 15m 0s." in completed(task).result


@pytest.mark.breadth
@pytest.mark.behaviour("L28")
async def test_a_turn_that_went_on_has_no_more_time_for_its_question_either(tmp_path: Path):
    """With a host that lasts, the agent asks again what it had asked of the former owner."""
    clock = FakeClock(quiet=0.02)
    host = LastingScriptedHost(asking(permission()))
    async with working(tmp_path, host, clock=clock, answer_within=900.0) as mt:
        await waits(mt, (await start(mt, id="t_one")).id)
        await clock.advance(600.0)
    await clock.advance(200.0)
    async with working(tmp_path, host, clock=clock, answer_within=900.0) as mt:
        await clock.advance_to_alarm(100.0)
        (task,) = await mt.thread("conv-1").wait("t_one")
        assert completed(task).result == "nobody False Nobody answered within 15m 0s."


@pytest.mark.behaviour("L28")
async def test_questions_of_one_run_are_asked_one_after_the_other(tmp_path: Path):
    async def turn(prompt, hearer):
        replies = await asyncio.gather(*(hearer.ask(permission(f"p{n}", f"tool{n}")) for n in range(3)))
        return " ".join(f"{reply.question}={reply.allows}" for reply in replies)

    async with working(tmp_path, turn) as mt:
        handle = await start(mt)
        for n, answer in enumerate(("allow", "reject", "allow")):
            assert (await waits(mt, handle.id)).question.id == f"p{n}"
            await mt.answer(handle.id, answer)
        assert await handle.result() == "p0=True p1=False p2=True"


@pytest.mark.behaviour("L28")
async def test_an_answer_for_the_task_settles_the_same_questions_beside_it(tmp_path: Path):
    async def turn(prompt, hearer):
        replies = await asyncio.gather(*(hearer.ask(permission(f"p{n}")) for n in range(3)))
        return " ".join(reply.by for reply in replies)

    async with working(tmp_path, turn) as mt:
        handle = await start(mt)
        await waits(mt, handle.id)
        await mt.answer(handle.id, "always")
        assert await handle.result() == "user rule rule"


@pytest.mark.behaviour("L28")
async def test_a_task_that_waits_for_an_answer_can_be_cancelled(tmp_path: Path):
    async with working(tmp_path, asking(WHICH)) as mt:
        handle = await start(mt)
        await waits(mt, handle.id)
        answer = await handle.cancel(wait=True)
        assert (answer.task.status, answer.task.question) == ("cancelled", None)


@pytest.mark.behaviour("L28")
async def test_the_timeout_goes_on_while_it_waits(tmp_path: Path):
    clock = FakeClock(quiet=0.02)
    async with working(tmp_path, asking(WHICH), clock=clock, last_turn=0) as mt:
        handle = await start(mt, timeout=60)
        await clock.until(lambda: runtime_of(mt).record.live[handle.id].question)
        await clock.advance(60)
        assert (await handle.wait()).status == "timed_out"


@pytest.mark.behaviour("L15", "L28")
async def test_a_last_turn_comes_in_place_of_an_answer_when_the_time_is_nearly_up(tmp_path: Path):
    async def turn(prompt, hearer):
        if prompt.last:
            return "as far as I came"
        return str(await hearer.ask(WHICH))

    clock = FakeClock(quiet=0.02)
    async with working(tmp_path, turn, clock=clock, last_turn=30) as mt:
        handle = await start(mt, timeout=60)
        await clock.until(lambda: runtime_of(mt).record.live[handle.id].question)
        await clock.advance(30)
        task = await handle.wait()
        assert (task.status, unfinished(task).partial) == ("timed_out", "as far as I came")


@pytest.mark.behaviour("L28")
async def test_the_same_id_in_a_later_run_is_another_question(tmp_path: Path):
    """Hosts may number their questions anew: an old answer is never given to a new question."""
    async with working(tmp_path, asking(permission("1"))) as mt:
        handle = await start(mt)
        await waits(mt, handle.id)
        await mt.answer(handle.id, "allow")
        await handle.wait()
        again = await mt.thread("conv-1").resume(handle, "more")
        assert (await waits(mt, handle.id)).question.id == "1"
        await mt.answer(handle.id, "reject")
        assert await again.result() == "user False"


@pytest.mark.behaviour("L28")
async def test_a_question_that_is_withdrawn_is_open_no_longer(tmp_path: Path):
    """It was answered where it was asked, in the agent's own window."""
    clicked = asyncio.Event()

    async def turn(prompt, hearer):
        answering = asyncio.ensure_future(hearer.ask(permission()))
        await clicked.wait()
        answering.cancel()
        await asyncio.wait({answering})
        return "somebody clicked there"

    async with working(tmp_path, turn) as mt:
        handle = await start(mt)
        await waits(mt, handle.id)
        clicked.set()
        assert await handle.result() == "somebody clicked there"
        assert [reply.by for reply in (await handle.get()).answers] == ["elsewhere"]


@pytest.mark.behaviour("L27", "L28")
async def test_an_answer_after_a_close_goes_to_the_agent_with_the_next_owner(tmp_path: Path):
    """A host whose turns go on asks again; the person answers once."""
    host = LastingScriptedHost(asking(WHICH, permission()))
    async with working(tmp_path, host) as mt:
        handle = await start(mt)
        await waits(mt, handle.id)
    async with working(tmp_path, host) as mt:
        assert (await mt.get(handle.id)).status == "waiting"
        await mt.answer(handle.id, "blue")
        await waits(mt, handle.id)
        await mt.answer(handle.id, "allow")
        task = (await mt.thread("conv-1").wait(handle.id))[0]
        assert completed(task).result == "user None; user True"
        assert len(host.prompts) == 1


# From functions


async def ask_and_tell() -> str:
    reply = await current().ask(WHICH)
    return f"{reply.choices[0]} by {reply.by}"


@pytest.mark.behaviour("L28")
async def test_a_function_can_ask_too(tmp_path: Path):
    async with Meantime.open(tmp_path / "work.db") as mt:
        handle = await mt.thread("conv-1").start(Call(ask_and_tell))
        await waits(mt, handle.id)
        await mt.answer(handle.id, "red")
        assert await handle.result() == "red by user"


@pytest.mark.behaviour("L28")
async def test_a_call_that_somebody_waits_for_cannot_ask(tmp_path: Path):
    async with Meantime.open(tmp_path / "work.db") as mt:
        with pytest.raises(Refused, match="somebody waits for"):
            await mt.thread("conv-1").call(Call(ask_and_tell))


@pytest.mark.behaviour("L28")
async def test_a_cancelled_function_hears_it_while_it_waits(tmp_path: Path):
    async with Meantime.open(tmp_path / "work.db") as mt:
        handle = await mt.thread("conv-1").start(Call(ask_and_tell))
        await waits(mt, handle.id)
        assert (await handle.cancel(wait=True)).task.status == "cancelled"


# The words of an answer


@pytest.mark.behaviour("L28")
@pytest.mark.parametrize(
    ("said", "allows", "scope"),
    [
        ("allow", True, "once"), ("YES", True, "once"), ("1", True, "once"), ("Allow once", True, "once"),
        ("always", True, "task"), ("2", True, "task"), ("all", True, "task"),
        ("no", False, "once"), ("reject: too dangerous", False, "once"), ("3", False, "once"),
    ],
)  # fmt: skip
def test_a_permission_can_be_given_in_plain_words(said: str, allows: bool, scope: str):
    reply = reply_to(permission(), said, by="user", now=1.0)
    assert (reply.allows, reply.scope, reply.subject) == (allows, scope, "bash")


@pytest.mark.behaviour("L28")
def test_a_permission_without_choices_has_the_usual_ones():
    bare = posed(Question(id="p", text="May I?", kind="permission"))
    assert reply_to(bare, "yes", by="user", now=1.0).allows is True
    with pytest.raises(InvalidInput):
        reply_to(bare, "perhaps", by="user", now=1.0)


@pytest.mark.behaviour("L28")
def test_one_answer_can_take_several_choices():
    several = Question(id="q", text="Which?", choices=(Choice("a"), Choice("b"), Choice("c")), several=True)
    assert reply_to(several, "a, 3", by="user", now=1.0).choices == ("a", "c")
    with pytest.raises(InvalidInput, match="'a, d' is none of the answers") as refused:
        reply_to(several, "a, d", by="user", now=1.0)
    assert refused.value.hint == "Answer with one of: a, b, c."


@pytest.mark.behaviour("L28")
def test_an_answer_has_a_limit():
    question = Question(id="q", text="Why?")
    assert len(reply_to(question, "x" * MOST, by="user", now=1.0).text) == MOST
    with pytest.raises(InvalidInput, match=f"An answer has at most {MOST} characters"):
        reply_to(question, "x" * (MOST + 1), by="user", now=1.0)


@pytest.mark.behaviour("L28")
async def test_a_question_in_the_journal_can_be_answered_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Even where we hear late that a change is in the ledger, in which the journal already has it."""
    async with Meantime.open(tmp_path / "work.db") as mt:
        commit, loop = runtime_of(mt).store.commit, asyncio.get_running_loop()

        def heard_late(change: Change) -> asyncio.Future[Committed]:
            late: asyncio.Future[Committed] = loop.create_future()
            commit(change).add_done_callback(
                lambda done: loop.call_later(0.1, late.set_result, done.result())
            )
            return late

        monkeypatch.setattr(runtime_of(mt).store, "commit", heard_late)
        handle = await mt.thread("conv-1").start(Call(ask_and_tell))
        async for event in mt.events():
            if event.kind == "asked":
                await mt.answer(event.task_id, "red")
                break
        assert await handle.result() == "red by user"
