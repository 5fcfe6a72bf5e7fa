"""The CPU per request of one framework's agent, alone and in a Talk, or a profile of one of these.

python -m benchmarks.adapters.one_adapter NAME [bare|ours]
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

from meantime import Meantime

from .framework_agents import AGENTS, Conversation, Maker

CALLS = 3  # of a tool in a turn, before the answer
TURNS = 5  # of a conversation: what has been said grows, for both
ROUNDS = 30
SLOW_ROUNDS = 3  # of what starts a program for each turn


async def measured(make: Maker, mt: Meantime, rounds: int) -> tuple[float, float]:
    """In turn, so that a busy machine harms both; the first of each is not counted."""
    spent: dict[bool, list[float]] = {True: [], False: []}
    for number in range(rounds + 1):
        for bare in (True, False) if number % 2 else (False, True):
            conversation = await make(mt.thread(f"{bare}-{number}"), bare)
            taken = await _talked(conversation)
            if number:
                spent[bare].append(taken)
    return statistics.median(spent[True]), statistics.median(spent[False])


async def _talked(conversation: Conversation) -> float:
    gc.collect()
    began = _cpu()
    for turn in range(TURNS):
        conversation.script(CALLS, turn)
        said = await conversation.say(f"look {turn}")
        assert "all is well" in str(said), said
    return (_cpu() - began) / (TURNS * (CALLS + 1))


def _cpu() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


async def main() -> None:
    name, *more = sys.argv[1:]
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory(prefix="adapters-") as folder:
        async with AGENTS[name](Path(folder)) as make, Meantime.open(Path(folder) / "work.db") as mt:
            if more:
                await _profiled(make, mt, more[0])
                return
            rounds = SLOW_ROUNDS if name == "claude_agent_sdk" else ROUNDS
            bare, ours = await measured(make, mt, rounds)
            print(json.dumps({"bare": bare, "ours": ours}))


async def _profiled(make: Maker, mt: Meantime, which: str) -> None:
    import cProfile
    import pstats

    await _talked(await make(mt.thread("warm"), which == "bare"))
    conversations = [await make(mt.thread(f"p-{number}"), which == "bare") for number in range(10)]
    profile = cProfile.Profile(time.process_time)  # a busy machine harms it less
    profile.enable()
    for conversation in conversations:
        await _talked(conversation)
    profile.disable()
    for order in ("cumulative", "tottime"):
        pstats.Stats(profile).sort_stats(order).print_stats(70)


if __name__ == "__main__":
    asyncio.run(main())
