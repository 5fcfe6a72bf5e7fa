"""The client of a2a-sdk, unchanged, against this server."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.client import Client
from a2a.types.a2a_pb2 import (
    AgentCard,
    CancelTaskRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import TaskNotCancelableError, TaskNotFoundError, UnsupportedOperationError
from google.protobuf.json_format import ParseDict
from guide import examples
from tests.waiting import LIMIT, until_async

from meantime import HttpDoor

from .agent_daemon import SLOW, agent_daemon
from .test_agent_protocol import door

__all__ = ["door"]
pytestmark = pytest.mark.anyio


def saying(text: str, **message: Any) -> SendMessageRequest:
    parts = [Part(text=text)]
    return SendMessageRequest(message=Message(message_id="m", role=Role.ROLE_USER, parts=parts, **message))


async def last(events: AsyncIterator[StreamResponse]) -> StreamResponse:
    return [event async for event in events][-1]


async def card_of(http: httpx.AsyncClient, url: str) -> AgentCard:
    return await A2ACardResolver(http, f"{url}/a2a/explore").get_agent_card()


def client_of(http: httpx.AsyncClient, card: AgentCard, **config: Any) -> Client:
    return ClientFactory(ClientConfig(httpx_client=http, **config)).create(card)


def authorized(token: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=LIMIT, trust_env=False)


async def test_the_client_sends_streams_answers_lists_and_cancels(door: HttpDoor):
    async with authorized(door.token) as http:
        card = await card_of(http, door.url)
        client = client_of(http, card, streaming=False)
        task = (await last(client.send_message(saying("look")))).task
        assert (task.status.state, task.artifacts[0].parts[0].text) == (
            TaskState.TASK_STATE_COMPLETED,
            "done: look",
        )
        streaming = client_of(http, card, streaming=True)
        found = [event async for event in streaming.send_message(saying("x", context_id=task.context_id))]
        assert found[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED
        assert [e.artifact_update.artifact.parts[0].text for e in found if e.HasField("artifact_update")] == [
            "done: x"
        ]
        asked = (await last(streaming.send_message(saying("ask")))).status_update
        assert asked.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        assert asked.status.message.parts[0].text == "Which colour?"
        painted = (await last(client.send_message(saying("blue", task_id=asked.task_id)))).task
        assert painted.artifacts[0].parts[0].text == "painted blue"
        listed = await client.list_tasks(ListTasksRequest(context_id=task.context_id))
        assert [one.status.state for one in listed.tasks] == [TaskState.TASK_STATE_COMPLETED] * 2
        slow = await begun(http, card)
        canceled = await client.cancel_task(CancelTaskRequest(id=slow.id))
        assert canceled.status.state == TaskState.TASK_STATE_CANCELED


async def begun(http: httpx.AsyncClient, card: AgentCard, text: str = "slow") -> Task:
    polling = client_of(http, card, streaming=False, polling=True)
    return (await last(polling.send_message(saying(text)))).task


async def test_errors_are_those_of_the_protocol(door: HttpDoor):
    async with authorized(door.token) as http:
        client = client_of(http, await card_of(http, door.url), streaming=False)
        task = (await last(client.send_message(saying("fail")))).task
        assert task.status.state == TaskState.TASK_STATE_FAILED
        with pytest.raises(TaskNotFoundError):
            await client.get_task(GetTaskRequest(id="t_none.1"))
        with pytest.raises(TaskNotCancelableError):
            await client.cancel_task(CancelTaskRequest(id=task.id))
        with pytest.raises(UnsupportedOperationError):
            await last(client.send_message(saying("x", task_id=task.id)))


async def test_the_client_sets_and_lists_push_configurations(door: HttpDoor):
    async with authorized(door.token) as http:
        card = await card_of(http, door.url)
        client, task = client_of(http, card, streaming=False), await begun(http, card)
        given = TaskPushNotificationConfig(task_id=task.id, url="http://127.0.0.1:9/told", token="secret")
        made = await client.create_task_push_notification_config(given)
        asked = ListTaskPushNotificationConfigsRequest(task_id=task.id)
        assert list((await client.list_task_push_notification_configs(asked)).configs) == [made]


async def test_a_task_is_found_again_after_a_kill_of_the_daemon(tmp_path: Path):
    with agent_daemon(tmp_path) as daemon:
        async with authorized(daemon.token) as http:
            card = await card_of(http, daemon.url)
            task = await begun(http, card, SLOW)
            await until_async(daemon.waiting, "the agent is at its gate")
            await asyncio.to_thread(daemon.end, signal.SIGKILL)
            await asyncio.to_thread(daemon.up)
        async with authorized(daemon.token) as http:
            client = client_of(http, card, streaming=True)
            found = await client.get_task(GetTaskRequest(id=task.id))
            assert found.status.state == TaskState.TASK_STATE_WORKING
            subscribed = client.subscribe(SubscribeToTaskRequest(id=task.id))
            assert (await anext(subscribed)).task.id == task.id
            daemon.open_gate()
            events = [event async for event in subscribed]
            results = [event for event in events if event.HasField("artifact_update")]
            assert [one.artifact_update.artifact.parts[0].text for one in results] == ["two"]
            assert events[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED
            assert daemon.starts() == 1


class Webhook:
    """A receiver that reads what it is sent with the types of a2a-sdk."""

    def __init__(self) -> None:
        self.got: list[tuple[str | None, StreamResponse]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                told = self.headers.get("X-A2A-Notification-Token"), ParseDict(body, StreamResponse())
                outer.got.append(told)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *told: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/told"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def states(self) -> list[Any]:
        return [told.task.status.state for _, told in self.got]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    made = Webhook()
    yield made
    made.close()


async def test_the_webhook_of_a_client_is_told_of_a_question_and_of_the_ending(
    door: HttpDoor, webhook: Webhook
):
    push = TaskPushNotificationConfig(url=webhook.url, token="secret")
    async with authorized(door.token) as http:
        card = await card_of(http, door.url)
        client = client_of(http, card, streaming=False, polling=True, push_notification_config=push)
        task = (await last(client.send_message(saying("ask")))).task
        asks = [TaskState.TASK_STATE_INPUT_REQUIRED]
        await until_async(lambda: webhook.states() == asks, "the webhook is told of the question")
        await last(client.send_message(saying("blue", task_id=task.id)))  # with the same configuration
        asked = ListTaskPushNotificationConfigsRequest(task_id=task.id)

        async def is_forgotten() -> bool:
            return not (await client.list_task_push_notification_configs(asked)).configs

        await until_async(is_forgotten, "it is forgotten, as the webhook was told of the ending")
    assert webhook.states() == [*asks, TaskState.TASK_STATE_COMPLETED]
    token, told = webhook.got[1]
    assert token == "secret"
    assert told.task.id == task.id
    assert told.task.artifacts[0].parts[0].text == "painted blue"


async def test_a_webhook_is_told_once_even_if_the_daemon_was_killed(tmp_path: Path, webhook: Webhook):
    with agent_daemon(tmp_path) as daemon:
        push = TaskPushNotificationConfig(url=webhook.url)
        async with authorized(daemon.token) as http:
            card = await card_of(http, daemon.url)
            client = client_of(http, card, streaming=False, polling=True, push_notification_config=push)
            await last(client.send_message(saying(SLOW)))
            await until_async(daemon.waiting, "the agent is at its gate")
            await asyncio.to_thread(daemon.end, signal.SIGKILL)
            await asyncio.to_thread(daemon.up)
            daemon.open_gate()
            await until_async(lambda: webhook.got, "the webhook is told")
            await asyncio.to_thread(daemon.end, signal.SIGKILL)
            await asyncio.to_thread(daemon.up)  # what it was told is remembered
            client = client_of(http, card, streaming=False)
            assert (await client.list_tasks(ListTasksRequest())).tasks
        assert webhook.states() == [TaskState.TASK_STATE_COMPLETED]


def test_the_code_of_the_guide_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    for example in examples("a2a.md"):
        assert example.run() == example.prints
