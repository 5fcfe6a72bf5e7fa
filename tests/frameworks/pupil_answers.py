"""What a model answers that does what the prompts of the session host suite ask for."""

from __future__ import annotations

import asyncio
import re

from tests.waiting import pause_async

from meantime.testing.session_host.host_fixture import ODD


async def pupil_answer(said: list[str]) -> str:
    """said: all that the model was told, oldest first."""
    last = said[-1].rpartition("\n")[2]
    if last == "wait":
        await asyncio.Event().wait()
    if last == "odd":
        return ODD
    if last == "recall":
        return " ".join(re.findall(r"say (\w+)", " ".join(said)))
    if last.startswith("slowly"):
        await pause_async(0.5, "it answers slowly")
    return last.rpartition(" ")[2]
