"""Telling a conversation at a hook, once.

Nobody confirms what a hook prints. So its notices stay leased, under their ids, and the next hook of the
conversation looks into its transcript: what is there is acknowledged, what is not is told again. Where a
host shows no transcript, the next hook counts as its word.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from meantime.surfaces.cli.speaking import Daemon, part
from meantime.surfaces.cli.trouble import Refused

from . import transcript
from .call import SESSION_START, Call
from .shown import Shown, shown

LEASE = 90.0  # seconds: longer than the grace, and short enough that a vanished host's come back
GRACE = 30.0  # seconds in which a host writes down what it was given; other hooks may keep it waiting
SPOKEN = 3.0  # seconds after which a further hook of a host without a transcript is a later one
MOST = 20  # notices at once
MOST_CHARACTERS = 9_000  # Claude Code takes 10,000 of a hook, and puts more into a file
TAIL = 1_500  # of a long one, what is kept of its end


class Telling:
    def __init__(self, daemon: Daemon, folder: Path, call: Call, patience: float) -> None:
        self._daemon = daemon
        self._folder = folder
        self._call = call
        self._patience = patience

    def text(self) -> str:
        """What there is to tell now; it is leased, and counted as shown. Empty for nothing."""
        with shown(self._folder, self._call.thread, self._patience) as last:
            turn, fresh = self._leased(last)
            known = self._has([notice["id"] for notice in fresh], last)
            if known:
                self._ack(turn, known)
            fresh = _fitting([notice for notice in fresh if notice["id"] not in known])
            waiting = [] if turn != last.turn else last.notices
            ids = waiting + [notice["id"] for notice in fresh]
            if ids:
                last.keep(turn, ids, self._call.session)
            elif turn:
                last.forget()
                self._release(turn)
            return "\n\n".join(_text(notice) for notice in fresh)

    def give_back(self) -> None:
        """It could not be printed."""
        with shown(self._folder, self._call.thread, self._patience) as last:
            if last.turn:
                self._release(last.turn)
                last.forget()

    def _leased(self, last: Shown) -> tuple[str, list[Any]]:
        """Settles what was shown before. What may still be on its way into the transcript keeps its turn."""
        if last.turn:
            known = self._has(last.notices, last)
            lost = bool(known) and not self._ack(last.turn, known)
            missing = [id for id in last.notices if id not in known]
            if missing and not lost and last.age < GRACE and self._call.moment != SESSION_START:
                last.notices = missing
                with suppress(Refused):  # its lease is over
                    more = self._post(f"/v1/turns/{part(last.turn)}/boundary", {"limit": MOST})
                    return last.turn, more["notices"]
            self._release(last.turn)
        path = f"/v1/threads/{part(self._call.thread)}/turns"
        opened = self._post(path, {"lease": LEASE, "limit": MOST})
        return opened["turn"], opened["notices"]

    def _has(self, ids: list[str], last: Shown) -> set[str]:
        """What the conversation has for certain. Looked for before anything is sent."""
        known = transcript.found(self._call.transcript, ids) if self._call.transcript else None
        if known is None:
            later = last.session == self._call.session and last.age >= SPOKEN
            known = {id for id in ids if later and id in last.notices}
        return known

    def _ack(self, turn: str, ids: set[str]) -> bool:
        """Whether they were held. Else they come again, and are found again."""
        try:
            self._post(f"/v1/turns/{part(turn)}/ack", {"notices": sorted(ids)})
        except Refused as refused:
            if refused.status not in (404, 409):
                raise
            return False
        return True

    def _release(self, turn: str) -> None:
        with suppress(Refused):
            self._post(f"/v1/turns/{part(turn)}/release", {})

    def _post(self, path: str, body: object) -> Any:
        return self._daemon.post(path, body, patience=self._patience)


def _text(notice: Any) -> str:
    text = "\n".join(part["text"] for part in notice["message"]["parts"])
    if len(text) <= MOST_CHARACTERS:
        return text
    cut = len(text) - (MOST_CHARACTERS - 200)
    begin = text[: MOST_CHARACTERS - 200 - TAIL]
    note = f"[{cut} characters are left out here; `meantime result {notice['taskId']}` has all of it]"
    return f"{begin}\n{note}\n{text[-TAIL:]}"


def _fitting(notices: list[Any]) -> list[Any]:
    """As many as a host takes at once, and always the first. The others keep their place."""
    count, size = 0, 0
    for notice in notices:
        size += len(_text(notice)) + 2
        if count and size > MOST_CHARACTERS:
            break
        count += 1
    return notices[:count]
