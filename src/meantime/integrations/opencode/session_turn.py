"""One turn of a session: its prompt is given once, and it is followed to its end, wherever the server or we
were killed in between."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from meantime.integrations.agent_host.host_errors import failed, refused
from meantime.kernel.errors import MeantimeError
from meantime.kernel.model import Failed
from meantime.ports.session import Brief, Hearer, Prompt, Turned

from .errors import Away, Unknown
from .message_ids import message_id, part_id
from .message_lines import lines_of
from .message_view import MessageView
from .prompt_log import PromptLog
from .server_options import rules
from .turn_result import Undecided, verdict

if TYPE_CHECKING:
    from .session_questions import SessionQuestions
    from .wire.api_client import ApiClient
    from .wire.server_events import ServerEvent, ServerEvents, Subscription

POLL = 10.0  # seconds between looks while events come; without them it is looked more often
BLIND = 1.0
GRACE = 3.0  # seconds in which an idle session must have written down how its turn ended
CALM = 30.0  # the same where the server that was asked has been heard all the time: it is only slow
TRIES = 3  # times that a prompt is given to a session that does nothing with it
STOP = 10.0  # seconds for a session to stop
PAUSE = 0.1
WINDOW = 200  # messages
LOST = "The OpenCode server ended in the middle of the turn. How far the agent came is in its session."
GONE = "The session is gone."
NOTHING = [{"permission": "*", "pattern": "*", "action": "deny"}]  # as a last turn leaves a session
RESET = {"meantime-none": False}  # a rule about nothing, in place of those
GAP = "gap"
HINTS = frozenset({GAP, "session.idle", "session.error", "session.deleted"})


class ReachableServer(Protocol):
    """A server that answers, or is made to: `server.py`."""

    async def reach(self) -> tuple[ApiClient, ServerEvents]: ...


class SessionTurn:
    def __init__(
        self, server: ReachableServer, session: str, prompt: Prompt, brief: Brief, hearer: Hearer
    ) -> None:
        self._server = server
        self._session = session
        self._directory = ""
        self._prompt = prompt
        self._settings = brief.settings
        self._hearer = hearer
        self._log = PromptLog(brief.folder)
        self._given = self._log.was_given(prompt.key)  # also by a former owner: then it may be under way
        at = self._log.first_given(prompt.key)
        self._message = message_id(session, prompt.key, at)
        self._part = part_id(session, prompt.key, at)
        self._more = list[str]()  # what was said in the middle of it
        self._tries = 0
        self._before = set[str]()  # steps of earlier tries
        self._agents = set[str]()  # messages of the model, as they come
        self._problem: dict[str, Any] | None = None
        self._quiet_since: float | None = None
        self._breaks: int | None = None  # of the stream when the prompt was given; None if nobody listened
        self._stopping = False
        self.left = False

    async def run(self) -> Turned:
        try:
            return await self._followed()
        except asyncio.CancelledError:
            if self.left or not self._given:
                raise
            return await self._stopped()

    async def _followed(self) -> Turned:
        while True:
            client, feed = await self._server.reach()
            try:
                return await self._follow(client, feed)
            except Away:
                self._hearer.phase("waits for the OpenCode server")
                await asyncio.sleep(PAUSE)
            except Unknown:
                return failed(Failed(GONE, "session_gone"))
            except MeantimeError as problem:
                return refused(problem)

    async def _follow(self, client: ApiClient, feed: ServerEvents) -> Turned:
        from .session_questions import SessionQuestions

        about = await client.session(self._session)
        self._directory = about["directory"]
        asking = SessionQuestions(client, self._directory, self._hearer)
        self._quiet_since = self._breaks = None
        try:
            with feed.listening(self._session) as subscription:
                await feed.settle()
                await self._give(client, feed, about)
                missed = True
                while True:
                    if missed:
                        children = await client.children(self._session, self._directory)
                        subscription.sessions.update(child["id"] for child in children)
                        await asking.look(subscription.sessions)
                    turned = await self._judged(client, feed)
                    if turned is not None:
                        return turned
                    missed = await self._listen(subscription, asking, feed.connected.is_set())
        finally:
            asking.close()

    # -- saying it

    async def _give(self, client: ApiClient, feed: ServerEvents, about: dict[str, Any]) -> None:
        """Unless it is there. A prompt that is given again keeps its ids, and is the same message."""
        known = await client.message(self._session, self._message, self._directory)
        held = known is not None and any(part["id"] == self._part for part in known["parts"])
        if held and not (self._prompt.again and not self._tries):
            return
        if held:
            view = await self._look(client)
            self._before = {step["info"]["id"] for step in view.after(self._message)}
        if not self._prompt.last and about.get("permission") == NOTHING:
            await self._loosen(client)
        await self._say(client, feed)

    async def _loosen(self, client: ApiClient) -> None:
        """A last turn has taken all tools from the session, and what follows it needs them again."""
        await client.note(self._session, self._directory, {"parts": [], "tools": RESET})
        if allowed := rules(self._settings):
            await client.change(self._session, self._directory, {"permission": allowed})

    async def _say(self, client: ApiClient, feed: ServerEvents) -> None:
        self._tries += 1
        self._given = True
        self._quiet_since = self._problem = None
        self._breaks = feed.breaks if feed.connected.is_set() else None
        part = {"id": self._part, "type": "text", "text": self._prompt.text}
        body: dict[str, Any] = {"messageID": self._message, "parts": [part], **self._voice()}
        if self._prompt.last:
            body["tools"] = {"*": False}
        await client.prompt(self._session, self._directory, body)

    def _voice(self) -> dict[str, Any]:
        provider, _, model = self._settings.model.partition("/")
        voice: dict[str, Any] = {"model": {"providerID": provider, "modelID": model}} if model else {}
        return {**voice, "agent": self._settings.agent} if self._settings.agent else voice

    async def steer(self, text: str) -> bool:
        """A session that works sees it at its next step."""
        client, _ = await self._server.reach()
        if not self._directory or self._session not in await client.status(self._directory):
            return False
        key = f"{self._prompt.key}.{len(self._more) + 1}"
        at = self._log.first_given(key)
        message = message_id(self._session, key, at)
        part = {"id": part_id(self._session, key, at), "type": "text", "text": text}
        self._more.append(message)
        body = {"messageID": message, "parts": [part], **self._voice()}
        await client.prompt(self._session, self._directory, body)
        return True

    # -- hearing

    async def _listen(self, subscription: Subscription, asking: SessionQuestions, sees: bool) -> bool:
        """Until it should be looked at; whether something may have been missed."""
        loop = asyncio.get_running_loop()
        blind = not sees or self._quiet_since is not None or self._problem is not None
        until = loop.time() + (BLIND if blind else POLL)
        while (left := until - loop.time()) > 0:
            events = await subscription.wait(left)
            for event in events:
                self._on_event(event, asking)
            hints = HINTS.intersection(event.type for event in events)
            if hints:
                return GAP in hints
        return True

    def _on_event(self, event: ServerEvent, asking: SessionQuestions) -> None:
        data = event.data
        if event.type == "permission.asked":
            asking.permission(data)
        elif event.type == "question.asked":
            asking.question(data)
        elif event.type in ("permission.replied", "question.replied", "question.rejected"):
            asking.settled(data.get("requestID") or data.get("permissionID") or "")
        elif event.session != self._session:
            self._hearer.alive()  # those that it has started for itself
        elif event.type == "session.error":
            self._problem = self._problem or data.get("error")  # what follows the first says less
        elif event.type == "session.status":
            self._phase(data.get("status") or {})
        elif event.type == "message.updated" and data["info"]["role"] == "assistant":
            self._agents.add(data["info"]["id"])
        elif event.type == "message.part.delta" and data.get("messageID") in self._agents:
            if data.get("field") == "text":
                self._hearer.said(data.get("delta", ""))
        elif event.type == "message.part.updated" and data["part"]["messageID"] in self._agents:
            self._tell(data["part"])

    def _phase(self, status: dict[str, Any]) -> None:
        if status.get("type") == "retry":
            self._hearer.phase(
                f"waits for the provider (try {status.get('attempt')}): {status.get('message')}"
            )
        elif status.get("type") == "busy":
            self._hearer.alive()

    def _tell(self, part: dict[str, Any]) -> None:
        for line in lines_of("assistant", part):
            if self._log.is_news(line.id):
                self._hearer.line(line)
        if part["type"] == "step-finish" and self._log.is_news(part["id"]):
            tokens: dict[str, Any] = part.get("tokens") or {}
            spent = sum(tokens.get(name) or 0 for name in ("input", "output", "reasoning"))
            self._hearer.spent(turns=1, tokens=spent, cost=part.get("cost") or 0.0)

    # -- judging

    async def _judged(self, client: ApiClient, feed: ServerEvents) -> Turned | None:
        view = await self._look(client)
        self._phase(view.status)
        # Even while it works: what nobody listened to comes before the events that follow.
        steps = self._steps(view) if view.has(self._message) else []
        if view.is_busy:
            self._quiet_since = None
            return None
        found = verdict(steps, problem=self._problem)
        if isinstance(found, Turned):
            return found
        broken_off = found is Undecided.BROKEN_OFF
        heard = self._breaks == feed.breaks  # else it may be another server by now
        if not self._is_quiet_for(CALM if broken_off and heard else GRACE):
            return None
        if broken_off:
            return Turned(lost=LOST)
        if self._tries >= TRIES:
            return failed(Failed("OpenCode took the prompt, and no turn began.", "not_begun"))
        await self._say(client, feed)
        return None

    def _steps(self, view: MessageView) -> list[dict[str, Any]]:
        """The model's work since the prompt; all of it is reported, if it was not."""
        later = view.after(self._message)
        steps = [step for step in later if step["info"]["id"] not in self._before]
        for step in steps:
            self._agents.add(step["info"]["id"])
            for part in step["parts"]:
                self._tell(part)
        return steps

    def _is_quiet_for(self, seconds: float) -> bool:
        """It may be between its last step and its last words about it: but not for long."""
        now = asyncio.get_running_loop().time()
        if self._quiet_since is None:
            self._quiet_since = now
        return now - self._quiet_since >= seconds

    async def _look(self, client: ApiClient) -> MessageView:
        status = (await client.status(self._directory)).get(self._session)
        messages = await client.messages(self._session, self._directory, WINDOW)
        if len(messages) == WINDOW and all(each["info"]["id"] != self._message for each in messages):
            messages = await client.messages(self._session, self._directory)
        return MessageView(messages, status)

    # -- stopping

    async def _stopped(self) -> Turned:
        """Asked again as long as it works: a prompt that is under way begins after a first stop."""
        self._stopping = True
        with suppress(TimeoutError, Away, Unknown):
            async with asyncio.timeout(STOP):
                client, _ = await self._server.reach()
                self._directory = self._directory or (await client.session(self._session))["directory"]
                quiet = 0
                while quiet < 3:
                    await client.abort(self._session, self._directory)
                    view = await self._look(client)
                    quiet = 0 if view.is_busy else quiet + 1
                    steps = self._steps(view) if quiet and view.has(self._message) else []
                    found = verdict(steps, stopping=True)  # without any, it may still begin
                    if isinstance(found, Turned):
                        return found
                    await asyncio.sleep(PAUSE)
        return Turned(stopped=True)
