"""An OpenCode session that is told what ended: exactly once, in order, and woken when it is idle.

The message of a notice has an id of its own that we choose, so sending it again changes nothing. It counts
as told when the model was asked with it: a server that is killed in between is asked again."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from meantime.kernel.errors import InvalidInput, Refused
from meantime.kernel.notices import Notice, Renderer
from meantime.ports.host import Delivery

from .errors import Away, Unknown, check_extra
from .message_ids import message_id, part_id
from .message_view import MessageView

if TYPE_CHECKING:
    from .wire.api_client import ApiClient
    from .wire.server_events import ServerEvents, Subscription

WINDOW = 50  # messages, beside those that we send
AGAIN = (5.0, 15.0, 30.0)  # seconds in which an idle session must have begun a turn
FRESH = 0.5  # seconds that a look holds for questions
LOOK = 10.0  # seconds between looks without any event
HINTS = frozenset({"gap", "message.updated", "session.idle", "session.status", "session.error"})


class NoticeMessage(NamedTuple):
    """A notice as a message of the session."""

    message: str
    parts: list[dict[str, Any]]
    tried: bool  # it may have been sent before, long ago

    def is_in(self, view: MessageView) -> bool:
        """A server that is killed may have kept the message, and not all of its parts."""
        return view.has(self.message) and all(part["id"] in view.parts for part in self.parts)


class OpenCodeHost:
    """`mt.attach(thread, OpenCodeHost(url, session))`.

    url: of a server that runs, such as http://127.0.0.1:4096; password: its OPENCODE_SERVER_PASSWORD.
    While the server is away, its notices wait for it.
    """

    delivery = Delivery("B", can_wake=True)

    def __init__(
        self, url: str, session: str, *, password: str = "", dialect: Renderer | None = None
    ) -> None:
        if not str(url).startswith(("http://", "https://")):
            raise InvalidInput(f"{url!r} is not a URL.", hint="Such as http://127.0.0.1:4096.")
        if not str(session).startswith("ses"):
            raise InvalidInput(f"{session!r} is not a session of OpenCode.", hint="Their ids begin with ses.")
        check_extra()
        self.url = url
        self.session = session
        self._password = password
        self._dialect = dialect
        self._wire: tuple[ApiClient, ServerEvents] | None = None
        self._directory = ""
        self._looked = (-math.inf, MessageView([]))

    async def has(self, thread: str, notice: str) -> bool:
        """Whether the session holds this notice. Asked for one after the other: one look answers for all of
        them.

        thread: the thread whose notices are pushed.
        notice: the id of the notice.
        """
        if not self._is_fresh():
            view = await self._look([])
            self._looked = (asyncio.get_running_loop().time(), view)
        view = self._looked[1]
        return any(view.was_seen(message) for message in view.marked(notice))

    async def deliver(self, thread: str, notices: Sequence[Notice]) -> None:
        """Puts the notices into the session, and returns when the model was asked with them.

        thread: the thread whose notices are pushed.
        notices: what it is told.
        """
        messages = [self._message(notice) for notice in notices]
        _, feed = self._connection()
        tries, due = 0, -1.0
        # What was never sent is not there: then the look of just now, for `has`, is enough to begin with.
        known = None if any(each.tried for each in messages) or not self._is_fresh() else self._looked[1]
        with feed.listening(self.session) as subscription:
            while True:
                view, known = known or await self._look(messages), None
                missing = [each for each in messages if not each.is_in(view)]
                if not missing and all(view.was_seen(each.message) for each in messages):
                    return
                now = asyncio.get_running_loop().time()
                if due < 0 and not missing:  # a former owner has sent them, perhaps just now
                    due = now + AGAIN[0]
                if now >= due and (missing or not view.is_busy):
                    if tries == len(AGAIN):
                        raise Refused(f"{self.session} of {self.url} was told, and took no turn.")
                    await self._send(missing or messages[-1:], view)
                    due = now + AGAIN[tries]
                    tries += 1
                await _hint(subscription, LOOK if view.is_busy else 1.0)

    def _is_fresh(self) -> bool:
        return asyncio.get_running_loop().time() - self._looked[0] < FRESH

    def _message(self, notice: Notice) -> NoticeMessage:
        """By the time of the ending, which is on record: the same however often it is sent."""
        at = notice.at
        message = message_id(self.session, notice.id, at, notice.number)
        said = notice.message(self._dialect).parts
        parts = [
            {
                "id": part_id(self.session, f"{notice.id} {place}", at, place),
                "type": "text",
                "text": part.text,
                "synthetic": part.hidden,
                "metadata": {"meantime": {"notice": notice.id}},
            }
            for place, part in enumerate(said)
        ]
        return NoticeMessage(message, parts, notice.delivery > 1)

    async def _look(self, messages: Sequence[NoticeMessage]) -> MessageView:
        """Waits for a server that is away."""
        client, _ = self._connection()
        while True:
            try:
                directory = self._directory or (await client.session(self.session))["directory"]
                self._directory = directory
                status = (await client.status(directory)).get(self.session)
                newest = await client.messages(self.session, directory, WINDOW + 2 * len(messages))
                older = [each for each in messages if each.message not in {m["info"]["id"] for m in newest}]
                found = [await client.message(self.session, each.message, directory) for each in older]
                return MessageView([*(message for message in found if message), *newest], status)
            except Away:
                await client.wait()
            except Unknown:
                raise Refused(f"There is no session {self.session} at {self.url} any more.") from None

    async def _send(self, messages: Sequence[NoticeMessage], view: MessageView) -> None:
        """All but the last begin no turn, so that one turn has them all. A session that works sees them at
        its next step."""
        client, _ = self._connection()
        *first, last = ({"messageID": one.message, "parts": one.parts, **view.voice} for one in messages)
        try:
            for body in first:
                await client.note(self.session, self._directory, body)
            await client.prompt(self.session, self._directory, last)
        except Away:
            return  # what it made of them is seen at the next look
        except Unknown:
            raise Refused(f"There is no session {self.session} at {self.url} any more.") from None

    def _connection(self) -> tuple[ApiClient, ServerEvents]:
        if self._wire is None:
            from .wire.api_client import ApiClient
            from .wire.server_events import ServerEvents

            client = ApiClient(self.url, self._password)
            self._wire = client, ServerEvents(client)
        return self._wire


async def _hint(subscription: Subscription, timeout: float) -> None:
    """Until something came that may have changed what we look for."""
    until = asyncio.get_running_loop().time() + timeout
    while (left := until - asyncio.get_running_loop().time()) > 0:
        if any(event.type in HINTS for event in await subscription.wait(left)):
            return
