"""A model that does what the prompts of the session host suite ask for."""

from __future__ import annotations

import re
from typing import Any

from tests.waiting import pause, until_async

from meantime.testing.session_host.host_fixture import ODD

from .scripted_api import ScriptedAPI


class Pupil(ScriptedAPI):
    def asked(self, body: dict[str, Any]) -> Any:
        super().asked(body)
        said = self.requests[-1].prompts
        last = said[-1].rpartition("\n")[2]
        if last == "wait":
            return None
        if last == "odd":
            return ODD
        if last == "recall":
            return " ".join(re.findall(r"say (\w+)", " ".join(said)))
        if last.startswith("slowly"):
            pause(1, "it answers slowly")
        return last.rpartition(" ")[2]

    async def middle(self) -> None:
        """Until it is asked once more: Claude Code takes its time to start."""
        before = len(self.requests)
        await until_async(lambda: len(self.requests) > before, "the model is asked")
