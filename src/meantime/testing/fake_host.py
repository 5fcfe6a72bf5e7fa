"""A host with its conversation in memory, which refuses, doubles and dies when it is told to."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from meantime.kernel.notices import Notice
from meantime.ports.host import Delivery


class HostDown(Exception):
    """The exception of a scripted failure."""


class _Failure(NamedTuple):
    keeps: int | None  # notices written before it fails; None is all of them


class FakeHost:
    """Keeps what it is given in `transcript`, by thread; `attempts` has every delivery as it was tried.

    grade: A and B can look into their transcript, C cannot (ports/host.py).
    """

    def __init__(self, grade: str = "B", *, can_wake: bool = True) -> None:
        self.delivery = Delivery(grade, can_wake=can_wake)
        self.transcript: dict[str, list[Notice]] = {}
        self.attempts: list[list[str]] = []
        self._script: deque[_Failure] = deque()
        self._poison: set[str] = set()

    # -- the script: what the next deliveries do; after it, everything is accepted

    def refuse(self, times: int = 1) -> None:
        """The next deliveries raise, and nothing is kept of them."""
        self._script.extend([_Failure(0)] * times)

    def accept_then_raise(self, times: int = 1) -> None:
        """The next deliveries are kept whole, but their answer is lost."""
        self._script.extend([_Failure(None)] * times)

    def die_mid_write(self, times: int = 1, *, after: int = 1) -> None:
        """The next deliveries keep only their first notices."""
        self._script.extend([_Failure(after)] * times)

    def choke_on(self, task: str) -> None:
        """Every delivery that holds a notice of this task is refused, until `swallow(task)`."""
        self._poison.add(task)

    def swallow(self, task: str) -> None:
        self._poison.discard(task)

    # -- the port

    async def has(self, thread: str, notice: str) -> bool:
        return self.delivery.grade != "C" and notice in self.ids(thread)

    async def deliver(self, thread: str, notices: Sequence[Notice]) -> None:
        self.attempts.append([notice.id for notice in notices])
        if any(notice.task_id in self._poison for notice in notices):
            raise HostDown("it cannot take this one")
        failure = self._script.popleft() if self._script else None
        kept = notices if failure is None or failure.keeps is None else notices[: failure.keeps]
        self.transcript.setdefault(thread, []).extend(kept)
        if failure is not None:
            raise HostDown(f"it died after {len(kept)} of {len(notices)}")

    # -- what a test looks at

    def ids(self, thread: str) -> list[str]:
        """The notice ids that the conversation holds, in order."""
        return [notice.id for notice in self.transcript.get(thread, ())]

    def tasks(self, thread: str) -> list[str]:
        return [notice.task_id for notice in self.transcript.get(thread, ())]
