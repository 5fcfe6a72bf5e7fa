"""Family `verbs`: every public verb with hostile values. Nothing but a MeantimeError comes back, nothing
hangs, and the Meantime works afterwards.

The verbs are found by looking at the public classes, and their values by the names of their parameters: a
verb that is added is called by itself. So are the tools of every dialect. A round is one Meantime and a
number of calls on it, drawn by hypothesis; the seed makes the same calls again.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import os
import random
import shutil
import signal
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent import futures
from pathlib import Path
from typing import Any
from unittest import mock

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from tests.waiting import LIMIT

import meantime
from meantime import MeantimeError, blocking

from .judge import Tally
from .verb_calls import CALLS, DRAWN, IN_TURN, LAST, PICKS, VERBS, Draw, Given, Verb, call_of, show
from .verb_objects import KINDS, opened, opened_blocking
from .verb_values import Own, close_coroutines

WAITED = 0.005  # seconds that a call may wait which waits by design; then it is cancelled
LONGEST = 5_000  # characters of an error's text
# They wait for something to happen, or for work to end.
WAITS = frozenset(
    (
        *("wait", "result", "output", "call", "cancel", "cancel_all", "interrupt", "adopt", "promote"),
        *("events", "wakeups", "turns", "follow", "bus", "started", "command", "open", "connect", "close"),
        *("read", "ack", "save", "saving", "boundary"),
    )
)
RARE = {
    "Meantime.serve": 4,
    "HttpDoor.open": 8,
    "HttpDoor.__aenter__": 8,
}  # one in so many: they open sockets
MOST_PROBLEMS = 200
HANDS_ON = ("Thread.call", "Transcript.saving")  # they raise what a function of the caller raises
ALLOWED = (MeantimeError, Own, asyncio.CancelledError, futures.CancelledError)


class Verbs(Tally):
    def __init__(self, reproduce: str) -> None:
        super().__init__("hostile values in every verb", reproduce)
        self.calls: Counter[str] = Counter()
        self.digest = 0  # of all that was called, in its order

    def count(self, where: str) -> None:
        self.digest = zlib.crc32(where.encode(), self.digest)
        super().count(where)

    def __str__(self) -> str:
        least = min(self.calls.items(), key=lambda one: one[1], default=("none", 0))
        called = f"{self.faults:>5} calls of {len(self.calls)} verbs, at least {least[1]} of each"
        return f"{self.family:<44}{called}, {self.lost} wrong"


def run(seed: int, calls: int, reproduce: str) -> Verbs:
    """So many calls, on each kind of Meantime in turn."""
    tally = Verbs(reproduce)
    rounds = -(-calls // CALLS)

    @seeded(seed)
    @settings(
        max_examples=rounds,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[*HealthCheck],  # pyright: ignore[reportArgumentType]
        derandomize=False,
    )
    @given(drawn=DRAWN)
    def play(drawn: tuple[bytes, list[Any]]) -> None:
        nonlocal number
        if tally.faults < calls and len(tally.problems) < MOST_PROBLEMS:
            _round(tally, number, *drawn)
            number += 1

    number = 0
    with _own_folder(), _watched(tally):
        while (
            tally.faults < calls and len(tally.problems) < MOST_PROBLEMS
        ):  # it may draw less than it was asked
            play()
    return tally


def _round(tally: Verbs, number: int, picks: bytes, values: list[Any]) -> None:
    kind = KINDS[number % len(KINDS)]
    where = f"round {number} ({kind})"
    first = number // len(KINDS) * CALLS
    every = random.Random(first // len(IN_TURN)).sample(IN_TURN, len(IN_TURN))
    chosen = [every[(first + at) % len(every)] for at in range(CALLS)]  # all of them, in turn
    drawn = [Draw(picks[at * PICKS : (at + 1) * PICKS], values) for at in range(CALLS)]
    signal.setitimer(signal.ITIMER_REAL, 3 * LIMIT)
    try:
        if kind == "blocking":
            _blocking_round(tally, where, list(zip(chosen, drawn, strict=True)))
        else:
            asyncio.run(_async_round(tally, where, kind, list(zip(chosen, drawn, strict=True))))
    except ALLOWED as problem:
        tally.broke(f"the Meantime does not work afterwards: {problem!r} at {_line(problem)}", where)
    except Exception as problem:
        tally.broke(f"{type(problem).__name__}: {show(problem)} at {_line(problem)}", where)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        close_coroutines()


async def _async_round(tally: Verbs, where: str, kind: str, drawn: Sequence[tuple[Verb, Draw]]) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: _complained(tally, where, context))
    async with opened(kind) as world:
        for at, (verb, draw) in enumerate(drawn):
            if not draw.number() % RARE.get(verb.title, 1):
                await _one(tally, f"{where}, call {at}", verb, call_of(world, verb, draw))
        await world.works()
        verb = next(verb for verb in VERBS if verb.title == LAST)
        await _one(tally, f"{where}, its end", verb, call_of(world, verb, drawn[0][1]))


async def _one(tally: Verbs, where: str, verb: Verb, given: Given) -> None:
    tally.calls[verb.title] += 1
    place = f"{where}: {given}"
    try:
        async with asyncio.timeout(LIMIT):
            await _called(verb, given)
    except TimeoutError as problem:
        if isinstance(problem, MeantimeError):
            _check_text(tally, place, problem)
        else:
            tally.broke("it hangs", place)
    except BaseException as problem:
        _judge(tally, place, problem)
    tally.count(place)


async def _called(verb: Verb, given: Given) -> None:
    found = given.call()
    if verb.name in WAITS or inspect.isasyncgen(found):
        with contextlib.suppress(asyncio.TimeoutError):
            async with asyncio.timeout(WAITED) as limit:
                try:
                    await _taken(found)
                except TimeoutError:
                    if not limit.expired():
                        raise
    else:
        await _taken(found)


async def _taken(found: Any) -> None:
    if inspect.isasyncgen(found):
        try:
            await anext(found, None)
        finally:
            await found.aclose()
    elif inspect.isawaitable(found):
        result = await found
        if isinstance(result, meantime.Meantime | meantime.HttpDoor):
            await result.close()


def _blocking_round(tally: Verbs, where: str, drawn: Sequence[tuple[Verb, Draw]]) -> None:
    with opened_blocking() as world:
        for at, (verb, draw) in enumerate(drawn):
            if draw.number() % RARE.get(verb.title, 1) or verb.name == "__aenter__":
                continue
            given = call_of(world, verb, draw)
            tally.calls[f"blocking {verb.title}"] += 1
            place = f"{where}, call {at}: {given}"
            try:
                _called_blocking(verb, given)
            except BaseException as problem:
                _judge(tally, place, problem)
            tally.count(place)
        world.works_blocking()


def _called_blocking(verb: Verb, given: Given) -> None:
    method: Any = getattr(given.target, verb.name) if verb.name in WAITS else None
    if isinstance(given.target, vars(blocking)["Proxy"]) and hasattr(method, "__wrapped__"):
        args = (verb.tool, given.named) if verb.tool else given.args
        waiting = blocking.begin(method, *args, **({} if verb.tool else given.named))
        try:
            waiting.result(WAITED)
        except futures.TimeoutError as problem:
            if isinstance(problem, MeantimeError):
                raise
            waiting.cancel()
        return
    found = given.call()
    if isinstance(found, blocking.Meantime) or inspect.iscoroutine(found):
        found.close()


def _judge(tally: Verbs, place: str, problem: BaseException) -> None:
    if isinstance(problem, MeantimeError):
        _check_text(tally, place, problem)
    elif isinstance(problem, KeyboardInterrupt | SystemExit | Hang):
        raise problem
    elif isinstance(problem, TypeError) and " keyword argument " in str(problem):
        return  # Python's own, for one that is not known, or is given twice
    elif not isinstance(problem, ALLOWED):
        tally.broke(f"{type(problem).__name__}: {show(problem)} at {_line(problem)}", place)
    elif isinstance(problem, Own) and not any(verb in place for verb in HANDS_ON):
        tally.broke(f"what the value raised comes out at {_line(problem)}", place)


def _check_text(tally: Verbs, place: str, problem: MeantimeError) -> None:
    try:
        text = f"{problem} {problem!r}"
        text.encode()
    except Exception as worse:
        tally.broke(f"the text of {type(problem).__name__} cannot be shown: {type(worse).__name__}", place)
        return
    if len(str(problem)) > LONGEST:
        tally.broke(
            f"the text of {type(problem).__name__} has {len(str(problem))} characters: {text[:200]}", place
        )


def _line(problem: BaseException) -> str:
    """Where in our own code it was raised."""
    found, trace = "?", problem.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if "src/meantime" in file:
            found = f"{file.rpartition('src/meantime/')[2]}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


# -- what is said aside: an error that nobody got, and a tool that failed inside


def _complained(tally: Verbs, where: str, context: dict[str, Any]) -> None:
    problem = context.get("exception")
    if not isinstance(problem, ALLOWED) and "was never retrieved" in context["message"]:
        at = _line(problem) if problem is not None else ""
        tally.broke(f"{context['message']}: {show(problem)} at {at}", where)


class _Listening(logging.Handler):
    def __init__(self, tally: Verbs) -> None:
        super().__init__(logging.ERROR)
        self._tally = tally

    def emit(self, record: logging.LogRecord) -> None:
        problem = record.exc_info[1] if record.exc_info else None
        if problem is not None and not isinstance(problem, ALLOWED):
            said = show(record.getMessage())
            self._tally.broke(f"logged: {said} {show(problem)} at {_line(problem)}", "in some round")


class Hang(Exception):
    """A round took so long that something in it blocks."""


@contextlib.contextmanager
def _watched(tally: Verbs) -> Iterator[None]:
    def rings(*_: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, rings)
    listening = _Listening(tally)
    logger = logging.getLogger("meantime")
    logger.addHandler(listening)
    propagates, logger.propagate = logger.propagate, False
    try:
        yield
    finally:
        logger.propagate = propagates
        logger.removeHandler(listening)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _own_folder() -> Iterator[None]:
    """Names that are drawn become files here, and a daemon that is asked for has its home here."""
    folder = Path(tempfile.mkdtemp(prefix="meantime-verbs-"))
    before = os.getcwd()
    os.chdir(folder)
    try:
        with mock.patch.dict(os.environ, MEANTIME_HOME=str(folder / "home")):
            yield
    finally:
        os.chdir(before)
        shutil.rmtree(folder, ignore_errors=True)
