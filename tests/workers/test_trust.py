"""Nobody who can only write to the broker can have something performed; and no login can fill the owner."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tests.waiting import LIMIT, stays_async, until_async

from meantime import Call, Shell, Status
from meantime.app.system_clock import SystemClock
from meantime.carriers.memory import MemoryBroker
from meantime.kernel.model import Run, Task, Work
from meantime.workers import message_parts
from meantime.workers import messages as say
from meantime.workers.message_parts import MOST_SENDERS, PIECE, PartAssembly, SenderParts, cut
from meantime.workers.owner_key import Signer
from meantime.workers.owner_post import OwnerPost
from meantime.workers.owner_state import MOST_HOMES, MOST_WORKERS, OwnerState
from meantime.workers.worker_process import Worker

from . import jobs
from .conftest import JOBS, PLACE, Site

pytestmark = pytest.mark.anyio
SRC = Path(__file__).resolve().parents[2] / "src" / "meantime"


class Recorder:
    """Somebody who reads everything that the owner sends, and can send it again."""

    def __init__(self, site: Site) -> None:
        self.offers: list[tuple[str, str, bytes]] = []
        self.messages: list[tuple[str, bytes]] = []
        put, tell = site.broker.put, site.broker.tell_worker

        def read_offer(pool: str, key: str, data: bytes) -> None:
            self.offers.append((pool, key, data))
            put(pool, key, data)

        def read_message(worker: str, data: bytes) -> None:
            self.messages.append((worker, data))
            tell(worker, data)

        site.broker.put = read_offer  # type: ignore[method-assign]
        site.broker.tell_worker = read_message  # type: ignore[method-assign]


def _offer(**given: object) -> bytes:
    known = {"task": "t_forged", "fence": (1, 1), "pool": "default", "work": "shell"}
    return say.encode(say.OfferMessage(**{**known, **given}))  # type: ignore[arg-type]


FORGED: dict[str, Callable[[bytes], bytes]] = {
    "unsigned": lambda offer: offer,
    "signed by somebody else": lambda offer: Signer.load(None).signed(offer),
    "a signature of zeros": lambda offer: bytes(64) + offer,
    "empty": lambda offer: b"",
    "shorter than a signature": lambda offer: b"x" * 63,
    "garbage": lambda offer: os.urandom(500),
    "as large as a carrier takes": lambda offer: os.urandom(512 * 1024),
}


@pytest.mark.breadth
@pytest.mark.parametrize("forged", FORGED)
async def test_a_forged_offer_is_removed_and_nothing_is_claimed(site: Site, forged: str):
    mt = await site.open()
    worker = await site.worker()
    claims: list[bytes] = []
    tell = site.broker.tell_owners
    site.broker.tell_owners = lambda name, data: (claims.append(data), tell(name, data))  # type: ignore
    site.broker.put("default", "forged", FORGED[forged](_offer()))
    await until_async(lambda: site.broker.is_empty("default"), "the queue is empty")
    handle = await mt.thread("a").start(Call(jobs.add, 1, 2), place=PLACE)
    assert (await handle.wait(LIMIT)).status is Status.COMPLETED
    assert not [data for data in claims if b"t_forged" in data]
    assert not worker.state.pending


@pytest.mark.parametrize("forged", FORGED)
async def test_a_forged_grant_begins_nothing(site: Site, forged: str):
    """Even for a claim that waits: the attacker has read its nonce."""
    mt = await site.open()
    worker = await site.worker()
    recorder = Recorder(site)
    done = await mt.thread("a").start(Shell("true"), place=PLACE)
    await done.wait(LIMIT)
    granted = next(
        found for found in map(_opened, recorder.messages) if isinstance(found, say.GrantedMessage)
    )
    offer = say.OfferMessage(task="t_2", fence=(1, 1), pool="default", work="shell")
    worker.state.offered(offer, "n_waiting")
    evil = msgspec.structs.replace(
        granted.task,
        id="t_2",
        work=msgspec.structs.replace(granted.task.work, input={"command": f"touch {site.folder}/evil"}),
    )
    message = say.encode(say.GrantedMessage(nonce="n_waiting", task=evil))
    for frame in cut(FORGED[forged](message)):
        site.broker.tell_worker("w1", frame)
    assert "n_waiting" in worker.state.pending
    assert "n_waiting" not in worker.state.journal
    assert not (site.folder / "evil").exists()


async def test_messages_of_the_owner_that_are_sent_again_do_nothing_twice(site: Site):
    """Offers, grants and cancels were signed for another run, another worker, or a run that is over."""
    mt = await site.open()
    await site.worker("w1")
    recorder = Recorder(site)
    log = site.folder / "log"
    first = await mt.thread("a").start(Shell(f"echo run >> {log}"), place=PLACE)
    await first.wait(LIMIT)
    await until_async(lambda: not site.workers["w1"].state.journal, "the worker has forgotten the run")
    await site.worker("w2")
    sent, offers = list(recorder.messages), list(recorder.offers)
    for _ in range(3):
        for pool, key, data in offers:
            site.broker.put(pool, f"{key[:20]}x", data)
        for worker, data in sent:
            site.broker.tell_worker(worker, data)
            site.broker.tell_worker("w2", data)
    second = await mt.thread("a").start(Shell(f"echo second >> {log}"), place=PLACE)
    await second.wait(LIMIT)
    await until_async(lambda: site.broker.is_empty("default"), "the queue is empty")
    await until_async(
        lambda: not any(worker.state.pending for worker in site.workers.values()), "no claim waits"
    )
    assert log.read_text() == "run\nsecond\n"


def _grant(worker: Worker, site: Site, nonce: str, work: Work, place: str = PLACE) -> None:
    """As the owner would, signed and sealed, for a claim of this worker that waits."""
    offer = say.OfferMessage(task="t_1", fence=(1, 1), pool="default", work="call", name=f"{JOBS}:length")
    worker.state.offered(offer, nonce)
    task = Task(id=nonce, thread="a", work=work, status=Status.RUNNING, run=Run(), place=place)
    key = worker.state.key
    granted = site.pools._seal.sealed(say.GrantedMessage(nonce=nonce, task=task), key, "w1")
    assert granted is not None
    site.pools._post.tell("w1", granted)


async def test_a_grant_of_work_that_is_not_allowed_here_is_not_begun(site: Site):
    """Even with the owner's signature: commands only where they are allowed, functions only of `tools`."""
    await site.open()
    worker = await site.worker(shell=False)
    evil = site.folder / "evil"
    refused = {
        "a command": (Work("shell", "evil", {"command": f"touch {evil}"}), PLACE),
        "a function of no module": (Work("call", "os:system", {"args": [f"touch {evil}"]}), PLACE),
        "a name in a module": (Work("call", f"{JOBS}:os.system", {"args": [f"touch {evil}"]}), PLACE),
        "another pool": (Work("call", f"{JOBS}:touch", {"args": [str(evil)]}), "pool:other"),
        "a label that it lacks": (Work("call", f"{JOBS}:touch", {"args": [str(evil)]}), f"{PLACE}?gpu=a100"),
    }
    for nonce, (work, place) in refused.items():
        _grant(worker, site, nonce, work, place)
        await until_async(lambda nonce=nonce: nonce not in worker.state.pending, "the claim was answered")
        assert nonce not in worker.state.journal, nonce
        assert nonce not in worker.runs, nonce
    good = site.folder / "good"
    _grant(worker, site, "allowed", Work("call", f"{JOBS}:touch", {"args": [str(good)]}))
    await until_async(good.exists, "the function has run")
    assert not evil.exists()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"w",
        b"p",
        b"\0" * 1_000,
        b"wgarbage",
        b"w{}",
        b'w{"protocol":1,"kind":"os"}',
        random.Random(18).randbytes(600_000),
    ],
    ids=["nothing", "w", "p", "zeros", "garbage", "an object", "an unknown kind", "a lot"],
)
async def test_the_owner_survives_whatever_a_login_sends(site: Site, data: bytes):
    mt = await site.open()
    await site.worker()
    for _ in range(20):
        site.broker.tell_owners("w1", data)
        site.broker.tell_owners("stranger", data)
    handle = await mt.thread("a").start(Call(jobs.add, 1, 2), place=PLACE)
    assert (await handle.wait(LIMIT)).status is Status.COMPLETED


async def test_a_worker_cannot_end_the_run_of_another(site: Site):
    mt = await site.open()
    await site.worker("w1")
    handle = await mt.thread("a").start(Call(jobs.forever), place=PLACE)
    await until_async(lambda: site.workers["w1"].runs, "the worker has a run")
    (nonce,) = site.workers["w1"].runs
    (task,) = (run.granted.task for run in site.workers["w1"].runs.values())
    report = {"result": "stolen"}
    ended = {
        "kind": "ended", "protocol": 1, "nonce": nonce, "task": task.id, "fence": [1, 1], "age": 0.0,
        "report": report, "said": {"progress": None, "phases": {}, "emitted": None},
    }  # fmt: skip
    for frame in cut(msgspec.json.encode(ended)):
        site.broker.tell_owners("w2", frame)
    other = await mt.thread("b").start(Call(jobs.add, 1, 2), place=PLACE)
    await other.wait(LIMIT)
    assert (await handle.get()).status is Status.RUNNING
    await handle.cancel()


# -- another version


def _other_protocol(data: bytes) -> bytes:
    return data.replace(b'"protocol":1', b'"protocol":2')


async def test_an_offer_of_another_protocol_is_left_to_a_worker_that_knows_it(
    site: Site, caplog: pytest.LogCaptureFixture
):
    await site.open()
    worker = await site.worker()
    offer = site.pools._post.signer.signed(_other_protocol(_offer()))
    site.broker.put("default", "newer", offer)
    await until_async(lambda: "has protocol 2; this side speaks 1" in caplog.text, "the worker says so")
    assert not worker.state.pending
    assert not site.broker.is_empty("default")
    site.broker.withdraw("default", "newer")


async def test_an_offer_with_unknown_work_is_left_to_a_worker_that_knows_it(site: Site):
    await site.open()
    worker = await site.worker()
    signed = site.pools._post.signer.signed
    site.broker.put("default", "newer", signed(_offer(work="quantum")))
    site.broker.put("default", "missing", signed(_offer(work="call", name=f"{JOBS}:new")))
    await stays_async(
        lambda: not site.broker.is_empty("default") and not worker.state.pending, "the offers are left"
    )


async def test_a_worker_of_another_protocol_is_listed_and_both_sides_say_so(
    site: Site, caplog: pytest.LogCaptureFixture
):
    await site.open()
    await site.worker("w1")
    alive = say.AliveMessage(home="h", boot="b", pool="default", slots=4, version="9.9")
    for _ in range(3):
        for frame in cut(_other_protocol(say.encode(alive))):
            site.broker.tell_owners("newer", frame)
    (found,) = [one for one in site.pools.about() if one.name == "newer"]
    assert (found.slots, found.version) == (0, "protocol 2, not 1")
    assert caplog.text.count("A message of worker newer was refused") == 1
    assert "Install the same version of Meantime" in caplog.text


# -- limits


def _alive(home: str) -> say.AliveMessage:
    return say.AliveMessage(home=home, boot="b", pool="default", slots=1)


def test_a_login_that_invents_homes_is_remembered_a_few_times_only():
    state = OwnerState()
    state.alive("honest", _alive("home"))
    for number in range(1_000):
        state.alive("liar", _alive(f"home-{number}"))
    assert len(state.workers) == 1 + MOST_HOMES
    assert ("honest", "home") in state.workers


def test_workers_that_are_silent_longest_go_first_and_never_one_with_runs():
    from meantime.kernel.model import Claim

    state = OwnerState()
    state.follow("t_1", (1, 1), Claim("oldest", "home", "boot", "n1"))
    for number in range(MOST_WORKERS - 1):
        state.alive(f"w{number}", _alive("home"))
    state.tick(1.0)
    for number in range(1, MOST_WORKERS - 1):
        state.alive(f"w{number}", _alive("home"))
    for number in range(500):
        state.alive(f"new{number}", _alive("home"))
    assert len(state.workers) == MOST_WORKERS
    assert ("oldest", "home") in state.workers
    assert ("w0", "home") not in state.workers
    assert "t_1" in state.runs


def test_parts_of_messages_that_never_end_have_a_limit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(message_parts, "MOST_OPEN_BYTES", 8 * PIECE)
    assembly = PartAssembly()
    for number in range(10):
        *parts, _ = cut(number.to_bytes(1, "big") * (PIECE * 4))
        for part in parts:
            assembly.joined(part)
    held = sum(len(part) for parts in assembly._open.values() for part in parts.values())
    assert 0 < held <= 8 * PIECE
    assert assembly.held == held


# -- the source


def test_nothing_is_ever_unpickled():
    word = "pick" + "le"
    found = [path for path in SRC.rglob("*.py") if word in path.read_text("utf-8")]
    assert found == []


def _opened(sent: tuple[str, bytes]) -> say.FromOwner | None:
    """A part that is a whole message, without its signature."""
    _, frame = sent
    return say.from_owner(frame[1 + 64 :]) if frame[:1] == b"w" else None


def test_senders_that_are_invented_do_not_fill_the_memory():
    post = OwnerPost(MemoryBroker(SystemClock()).owner(), lambda: Signer.load(None), Counter(), print)
    for number in range(MOST_SENDERS + 10):
        post.read(f"w{number}", cut(bytes(PIECE + 1))[1])
    assert len(post._parts._by_sender) == MOST_SENDERS
    assert "w0" not in post._parts._by_sender


def test_the_parts_of_all_senders_together_have_a_limit(monkeypatch: pytest.MonkeyPatch):
    """Each of them stays within its own limit, and they are many."""
    monkeypatch.setattr(message_parts, "MOST_HELD", 8 * PIECE)
    senders = SenderParts()
    first, second = cut(bytes(PIECE + 1))
    for number in range(50):
        assert senders.joined(f"w{number}", first) is None
    assert senders.held == 8 * PIECE == sum(one.held for one in senders._by_sender.values())
    assert senders.joined("w0", second) is None  # its first part was forgotten
    assert senders.joined("w49", second) == bytes(PIECE + 1)
    assert "w49" not in senders._by_sender
    assert senders.joined("w0", first) == bytes(PIECE + 1)
    for number in range(50):
        senders.joined(f"w{number}", first)
        senders.joined(f"w{number}", second)
    assert (senders.held, len(senders._by_sender)) == (0, 0)


def test_a_part_that_is_sent_again_is_counted_once():
    assembly = PartAssembly()
    first, second = cut(bytes(PIECE + 1))
    assembly.joined(first)
    assembly.joined(first)
    assert assembly.held == PIECE
    assert assembly.joined(second) == bytes(PIECE + 1)
    assert assembly.held == 0
