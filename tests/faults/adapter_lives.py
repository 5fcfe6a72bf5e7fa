"""A conversation of a framework's agent in a program that is killed again and again.

    python -m tests.faults.adapter_lives <adapter> <folder> <seed> <kills> [PLANT]

Each life is a fork, as frameworks take long to load. It talks, hands work off and is woken, until it is
killed at a moment of the seed's choice. Outside is written down what was handed off, what ended, and what
each request showed the model. The last life goes on until everything was told, and ends.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import threading
from collections import Counter
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from tests.waiting import LIMIT, pause_async

from meantime import Call, Limits, Settings, Thread, WakeBudget, background
from meantime.testing.talk import ModelRequest, ToolCall
from meantime.testing.talk.talk_site import ids_in

from . import adapter_plants, works
from .adapter_sites import ADAPTERS, Adapter, Site, opened

THREAD = "c"
MOMENTS = ("opening", "asked", "answered", "tool", "keeping", "kept", "settling", "settled")
# One that was in many lives' turns is not parked, as it would be after so many failures.
SETTINGS = Settings(limits=Limits(per_thread=-1, total=-1), wakes=WakeBudget(rounds=-1), parks_after=1_000)


class Moment(NamedTuple):
    """The Nth time that something is reached, and how long after it, in seconds."""

    name: str = ""
    number: int = 0
    after: float = 0.0

    def __str__(self) -> str:
        return f"{self.name} #{self.number} +{self.after * 1000:.1f} ms"


def moment_of(rng: random.Random, adapter: Adapter, life: int) -> Moment:
    """Every kind in turn; half of them a little later, in the middle of what follows."""
    names = [
        name for name in MOMENTS if adapter.name != "claude_agent_sdk" or name not in ("keeping", "kept")
    ]
    after = 10 ** rng.uniform(-4, -1.5) if rng.random() < 0.5 else 0.0
    return Moment(names[life % len(names)], rng.randint(1, adapter.deepest), after)


class Life:
    def __init__(self, number: int, rng: random.Random, moment: Moment) -> None:
        self.number = number
        self.rng = rng
        self._moment = moment
        self._reached = Counter[str]()
        self._count = 0

    # -- the kill

    def reached(self, name: str) -> None:
        self._reached[name] += 1
        if (name, self._reached[name]) == self._moment[:2]:
            if not self._moment.after:
                os.kill(os.getpid(), signal.SIGKILL)
            threading.Timer(self._moment.after, os.kill, (os.getpid(), signal.SIGKILL)).start()

    def watch(self, site: Site, talk: Any) -> None:
        """Names the moments of a talk."""
        for object, name in site.keeping(talk):
            _around(self, object, name, "keeping", "kept")
        _around(self, talk, "_told", "opening")
        _around(self, talk, "_settle", "settling", "settled")
        requests, steps = Shown(self), Answers(self)
        setattr(site.model, site.requests, requests)
        setattr(site.model, site.steps, steps)

    # -- what it does

    async def errand(self, thread: Thread) -> None:
        """One piece of work that ends."""
        self._count += 1
        task = f"w{self.number}x{self._count}"
        id = f"{task}.1"
        works.say("attempt", THREAD, id)
        handle = await thread.start(Call(works.gated, id, THREAD), id=task)
        works.say("accepted", THREAD, id)
        (ended,) = await thread.wait(handle)
        works.say("ended", THREAD, id, ended.status)

    async def talk(self, talk: Any, thread: Thread) -> None:
        """A person says something, and work ends, until the kill."""
        listening = asyncio.create_task(_listen(talk))
        while not listening.done():
            for _ in range(self.rng.randint(1, 3)):
                await self.errand(thread)
            if self.rng.random() < 0.6:
                works.say("person", THREAD, "")
                await talk.say("what is new?")
                works.say("said", THREAD, "")
            await pause_async(self.rng.random() * 0.02, "a paced load")
        listening.result()


class Shown(list[ModelRequest]):
    """Requests to the model, each written down."""

    def __init__(self, life: Life) -> None:
        super().__init__()
        self._life = life

    def append(self, request: ModelRequest) -> None:
        works.say("shown", THREAD, str(self._life.number), " ".join(ids_in(request.notices)))
        super().append(request)
        self._life.reached("asked")


class Answers(list[Any]):
    """The model's: a call now and then, and never two in a row."""

    def __init__(self, life: Life) -> None:
        super().__init__()
        self._life = life
        self._called = False
        self._calls = 0

    def __bool__(self) -> bool:
        return True

    def pop(self, index: Any = -1) -> Any:
        self._called = not self._called and self._life.rng.random() < 0.5
        self._life.reached("answered")
        if not self._called:
            return "I see."
        self._calls += 1
        return ToolCall("work", {"place": "here"}, f"call-{self._life.number}-{self._calls}")


def _around(life: Life, object: Any, name: str, before: str, after: str = "") -> None:
    call = getattr(object, name)

    async def awaited(*args: Any, **more: Any) -> Any:
        life.reached(before)
        done = await call(*args, **more)
        life.reached(after)
        return done

    def called(*args: Any, **more: Any) -> Any:
        life.reached(before)
        done = call(*args, **more)
        life.reached(after)
        return done

    setattr(object, name, awaited if asyncio.iscoroutinefunction(call) else called)


async def _listen(talk: Any) -> None:
    async for _ in talk.woken():
        works.say("said", THREAD, "")


async def live(adapter: Adapter, folder: Path, life: Life, *, last: bool) -> None:
    async with opened(adapter, folder) as site, site.site.opened(settings=SETTINGS) as mt:
        thread = mt.thread(THREAD)

        @background
        async def work(place: str) -> str:
            """Works somewhere, while other work ends."""
            life.reached("tool")
            await life.errand(thread)
            return f"worked {place}"

        talk = site.site.talk(thread, work, threshold=None)
        life.watch(site, talk)
        if not last:
            await life.talk(talk, thread)
            return
        while await mt.notices() or any(not task.ended for task in await mt.list()):
            await talk.say()
        works.say("person", THREAD, "")
        await talk.say("is that all?")
        works.say("said", THREAD, "")


# -- lives, one after the other


def main() -> None:
    name, folder, seed, kills, *plant = sys.argv[1:]
    adapter, where, rng = ADAPTERS[name], Path(folder), random.Random(int(seed))
    import_module(adapter.module)
    if plant:
        getattr(adapter_plants, plant[0])(name)
    works.SYNCED = False
    works.open_ledger(where)
    for number in range(int(kills) + 1):
        last = number == int(kills)
        moment = Moment() if last else moment_of(rng, adapter, number)
        works.say("life", THREAD, str(number), str(moment))
        _one_life(adapter, where, Life(number, random.Random(rng.random()), moment), last, rng.random() < 0.5)


def _one_life(adapter: Adapter, folder: Path, life: Life, last: bool, whole: bool) -> None:
    """whole: what it started is killed with it; otherwise Claude Code goes on for a while."""
    pid = os.fork()
    if not pid:
        os.setsid()
        code = 1
        try:
            works.watch(2 * LIMIT)
            asyncio.run(live(adapter, folder, life, last=last))
            code = 0
        except BaseException as problem:
            print(f"life {life.number} ({life._moment}): {problem!r}", file=sys.stderr, flush=True)
        finally:
            os._exit(code)
    ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if whole or last:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    wanted = 0 if last else -signal.SIGKILL
    if ended != wanted:
        sys.exit(f"life {life.number} ({life._moment}) ended with {ended} and not with {wanted}")


if __name__ == "__main__":
    main()
