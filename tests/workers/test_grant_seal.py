"""A grant is sealed for the worker that claimed: for its key, its claim, its task and its attempt."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from msgspec.structs import replace
from tests.waiting import LIMIT, until_async

from meantime import Call, Shell, Status
from meantime.kernel.model import Claim, Run, Task, Work
from meantime.kernel.pool_slots import Need
from meantime.kernel.questions import Reply
from meantime.workers import messages as say
from meantime.workers.grant_seal import MOST_KEYS, InputMessage, OwnerSeal, WorkerSealKey
from meantime.workers.owner_state import OwnerState

from . import jobs
from .conftest import PLACE, Site
from .test_trust import Recorder

SECRET = "hunter2-of-the-seal"
WORK = Work("shell", SECRET, {"command": SECRET, "env": ["A"]}, faithful=False)
GRANTED = say.GrantedMessage(
    nonce="n1",
    task=Task(id="t_1", thread="a", work=WORK, status=Status.RUNNING, run=Run()),
    env={"A": SECRET, "B": None},
    stdin=b"\xff" + SECRET.encode(),
)
KEY = WorkerSealKey()


def sealed(key: WorkerSealKey = KEY) -> say.GrantedMessage:
    found = OwnerSeal().sealed(GRANTED, key.public, "w1")
    assert found is not None
    return found


def test_a_sealed_grant_shows_nothing_and_opens_to_what_was_sealed():
    data = say.encode(sealed())
    assert SECRET.encode() not in data
    assert base64.b64encode(SECRET.encode())[2:-4] not in data
    received = say.from_owner(data)
    assert isinstance(received, say.GrantedMessage)
    assert (received.env, received.stdin, received.task.work) == ({}, None, Work("shell"))
    assert KEY.opened(received, "w1") == GRANTED


def test_two_grants_of_the_same_work_do_not_look_alike():
    seal = OwnerSeal()
    one, two = (seal.sealed(GRANTED, KEY.public, "w1") for _ in range(2))
    assert one is not None
    assert two is not None
    assert one.sealed != two.sealed


def flipped(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


def run(**given: Any) -> Task:
    return replace(GRANTED.task, work=Work("shell"), run=Run(**given))


OTHERS: dict[str, dict[str, Any]] = {
    "another claim": {"nonce": "n2"},
    "another task": {"task": replace(GRANTED.task, work=Work("shell"), id="t_2")},
    "another attempt": {"task": run(attempt=2)},
    "another run": {"task": run(number=2)},
}


@pytest.mark.parametrize("other", OTHERS)
def test_a_seal_opens_for_nothing_else(other: str):
    assert KEY.opened(replace(sealed(), **OTHERS[other]), "w1") is None


def test_a_seal_opens_for_nobody_else():
    assert KEY.opened(sealed(), "w2") is None
    assert WorkerSealKey().opened(sealed(), "w1") is None


BROKEN = {
    "a flipped bit": lambda one: say.Sealed(one.key, flipped(one.data)),
    "nothing": lambda one: say.Sealed(one.key, b""),
    "a nonce alone": lambda one: say.Sealed(one.key, one.data[:12]),
    "the key of another owner": lambda one: say.Sealed(WorkerSealKey().public, one.data),
    "no key": lambda one: say.Sealed("", one.data),
    "a key that is not text of a key": lambda one: say.Sealed("ä" * 43, one.data),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_seal_opens_to_nothing(broken: str):
    grant = sealed()
    assert grant.sealed is not None
    assert KEY.opened(replace(grant, sealed=BROKEN[broken](grant.sealed)), "w1") is None


@pytest.mark.parametrize(
    "key",
    ["", "x", "A" * 43, "é" * 43, "\0", KEY.public[:-1], KEY.public * 100],
    ids=["none", "short", "zeros", "no base64", "a control", "cut", "long"],
)
def test_a_key_that_nothing_can_be_sealed_for_is_refused(key: str):
    """One of zeros would make the same secret with everybody."""
    seal = OwnerSeal()
    assert not seal.can_reach(key)
    assert seal.sealed(GRANTED, key, "w1") is None


def test_keys_of_workers_have_a_limit(monkeypatch: pytest.MonkeyPatch):
    seal = OwnerSeal()
    monkeypatch.setattr("meantime.workers.grant_seal.MOST_KEYS", 3)
    keys = [WorkerSealKey().public for _ in range(5)]
    assert all(map(seal.can_reach, keys))
    assert list(seal._shared) == keys[2:]
    assert MOST_KEYS == 2_000


# -- on its way


@pytest.mark.anyio
async def test_whoever_reads_the_carrier_learns_no_input(site: Site):
    mt = await site.open()
    await site.worker()
    recorder = Recorder(site)
    handle = await mt.thread("a").start(
        Shell(f": {SECRET}; read x; exit 3", env={"A": SECRET}, stdin=f"{SECRET}\n"), place=PLACE
    )
    assert getattr((await handle.wait(LIMIT)).outcome, "exit_code", None) == 3
    called = await mt.thread("a").start(Call(jobs.length, SECRET), place=PLACE)
    assert await called.result(LIMIT) == len(SECRET)
    sent = b"".join([data for _, data in recorder.messages] + [data for *_, data in recorder.offers])
    assert b'"granted"' in sent
    assert SECRET.encode() not in sent
    assert base64.b64encode(f"{SECRET}\n".encode())[:-4] not in sent


@pytest.mark.anyio
async def test_a_claim_without_a_key_is_denied(site: Site):
    mt = await site.open()
    told: list[say.FromOwner] = []
    site.pools._post.tell = lambda worker, message: told.append(message)  # type: ignore[method-assign]
    handle = await mt.thread("a").start(Shell("true"), place=PLACE)
    task = await handle.get()
    for key in ("", "A" * 43):
        claim = say.ClaimMessage(task=task.id, fence=(1, 1), nonce="n", home="h", boot="b", key=key)
        site.pools._take("w1", claim)
    assert told == [say.DeniedMessage(nonce="n")] * 2
    await handle.cancel()


# -- another version


@pytest.mark.breadth
@pytest.mark.anyio
async def test_a_worker_of_an_earlier_version_claims_nothing_and_people_see_why(site: Site):
    """It has neither the key nor the label, and knows nothing of them; a newer worker takes the work."""
    mt = await site.open()
    old = await site.worker("old")
    old._labels = old._settings.labels
    old._seal_key.public = old.state.key = ""
    await until_async(
        lambda: any(one.alive and not one.key for one in site.pools.state.workers.values()),
        "the owner knows the worker",
    )
    handle = await mt.thread("a").start(Shell("true"), place=PLACE)
    assert site.pools.state.missing(Need(PLACE, "shell")) == (
        "no worker of pool default opens sealed work: update Meantime there (old cannot)"
    )
    site.broker.put("default", "offered all the same", site.pools._post.signer.signed(_offer()))
    await site.worker("new")
    assert (await handle.wait(LIMIT)).status is Status.COMPLETED
    assert not old.state.pending
    assert not old.runs


def _offer() -> bytes:
    task = Task(id="t_9", thread="a", work=Work("shell"), status=Status.QUEUED, run=Run(), place=PLACE)
    return say.encode(say.offer_of(task))


def test_a_grant_of_an_earlier_owner_is_not_sealed_and_opens_as_it_is():
    assert KEY.opened(GRANTED, "w1") == GRANTED


def test_the_owner_seals_for_the_key_that_a_worker_sent_last():
    state = OwnerState()
    claim = say.ClaimMessage(task="t_1", fence=(1, 1), nonce="n", home="h", boot="b", key="first")
    state.claim("w1", claim)
    on_record = Claim("w1", "h", "b", "n")
    assert state.key_of(on_record) == "first"
    state.alive("w1", say.AliveMessage(home="h", boot="b", pool="default", slots=1, key="second"))
    assert state.key_of(on_record) == "second"
    assert state.key_of(replace(on_record, worker="w2")) == ""


# -- texts and answers

SENT = say.SendMessage(ask="a.1", nonce="n1", number=3, data=SECRET.encode(), eof=True, sender="life")
REPLIED = say.RepliedMessage(nonce="n1", question="q1", reply=Reply(question="q1", text=SECRET))


@pytest.mark.parametrize("message", [SENT, REPLIED], ids=["send", "replied"])
def test_sealed_input_shows_nothing_and_opens_to_what_was_sealed(message: InputMessage):
    found = OwnerSeal().sealed_input(message, KEY.public, "w1")
    assert found is not None
    data = say.encode(found)
    assert SECRET.encode() not in data
    assert base64.b64encode(SECRET.encode())[2:-4] not in data
    received = say.from_owner(data)
    assert isinstance(received, say.SendMessage | say.RepliedMessage)
    assert KEY.opened_input(received, "w1") == message


OTHER_INPUT: dict[str, tuple[InputMessage, dict[str, Any]]] = {
    "another claim": (SENT, {"nonce": "n2"}),
    "another number": (SENT, {"number": 4}),
    "another owner's life": (SENT, {"sender": "other"}),
    "an end that was not said": (SENT, {"eof": False}),
    "another claim's question": (REPLIED, {"nonce": "n2"}),
    "another question": (REPLIED, {"question": "q2"}),
}


@pytest.mark.parametrize("other", OTHER_INPUT)
def test_sealed_input_opens_for_nothing_else(other: str):
    message, changed = OTHER_INPUT[other]
    found = OwnerSeal().sealed_input(message, KEY.public, "w1")
    assert found is not None
    assert KEY.opened_input(replace(found, **changed), "w1") is None
    assert KEY.opened_input(found, "w2") is None
    assert WorkerSealKey().opened_input(found, "w1") is None
    assert found.sealed is not None
    bent = replace(found, sealed=replace(found.sealed, data=flipped(found.sealed.data)))
    assert KEY.opened_input(bent, "w1") is None


def test_a_refused_answer_has_nothing_to_seal():
    refused = say.RepliedMessage(nonce="n1", question="q1")
    assert OwnerSeal().sealed_input(refused, KEY.public, "w1") == refused
    assert KEY.opened_input(refused, "w1") == refused


@pytest.mark.breadth
@pytest.mark.anyio
async def test_what_is_sent_to_a_command_crosses_sealed_even_after_a_restart_of_its_worker(site: Site):
    """The new life of the worker has another key; the owner learns it with its next message."""
    mt = await site.open()
    seen = Recorder(site)
    await site.worker()
    line = f"while read x; do printf '%s ' $x >>{site.folder}/got; done"
    handle = await mt.thread("a").start(Shell(line, open_stdin=True), place=PLACE)
    await until_async(lambda: site.workers["w1"].runs, "the worker has a run")
    await handle.send(f"{SECRET}-1\n")
    await site.leave()
    await site.worker()
    await handle.send(f"{SECRET}-2\n", eof=True)
    await handle.wait(LIMIT)
    assert (site.folder / "got").read_text() == f"{SECRET}-1 {SECRET}-2 "
    sent = b"".join(data for _, data in seen.messages)
    assert b'"send"' in sent
    assert SECRET.encode() not in sent
    assert base64.b64encode(SECRET.encode())[2:-4] not in sent


@pytest.mark.anyio
async def test_a_worker_of_an_earlier_version_is_sent_what_it_can_read(
    site: Site, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(OwnerState, "opens_input", lambda self, claim: False)
    monkeypatch.setattr(WorkerSealKey, "opened_input", lambda self, message, worker: message)
    mt = await site.open()
    await site.worker()
    handle = await mt.thread("a").start(Shell("read x; echo got $x", open_stdin=True), place=PLACE)
    await until_async(lambda: site.workers["w1"].runs, "the worker has a run")
    await handle.send("hello\n")
    await handle.wait(LIMIT)
    assert (await handle.log.read()).text == "got hello\n"
