"""Webhooks: told once of each question and of the ending, tried again a few times, and after a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.waiting import until_async

from meantime.surfaces.a2a import push_sender
from meantime.surfaces.a2a.push_file import read_pushes
from meantime.surfaces.http.protocol_endpoint import PUSHES

from .conftest import Site, Webhook, call, result, saying

pytestmark = pytest.mark.anyio


def with_push(text: str, webhook: Webhook, **push: Any) -> dict[str, Any]:
    given = saying(text, at_once=True)
    given["configuration"]["taskPushNotificationConfig"] = {"url": webhook.url, **push}
    return given


async def told(webhook: Webhook, count: int) -> list[str]:
    await until_async(lambda: len(webhook.got) >= count, f"the webhook is told {count} times")
    return [body["task"]["status"]["state"] for _, body in webhook.got]


async def forgotten(folder: Path | None) -> None:
    assert folder is not None
    await until_async(lambda: not read_pushes(folder / PUSHES), "the webhooks are forgotten")


@pytest.mark.breadth
async def test_a_webhook_is_told_of_a_question_and_of_the_ending_once(site: Site, webhook: Webhook):
    push = {"token": "secret", "authentication": {"scheme": "Bearer", "credentials": "key"}}
    task = (await result(site, "SendMessage", with_push("may I?", webhook, **push)))["task"]
    assert await told(webhook, 1) == ["TASK_STATE_INPUT_REQUIRED"]
    await result(site, "SendMessage", saying("allow", taskId=task["id"]))
    assert await told(webhook, 2) == ["TASK_STATE_INPUT_REQUIRED", "TASK_STATE_COMPLETED"]
    headers, body = webhook.got[1]
    assert (headers["X-A2A-Notification-Token"], headers["Authorization"]) == ("secret", "Bearer key")
    assert body["task"]["artifacts"][0]["parts"] == [{"text": "allowed: True, by user"}]
    await forgotten(site.door._settings.folder)
    assert len(webhook.got) == 2


@pytest.mark.breadth
async def test_a_configuration_that_comes_with_each_message_is_one(site: Site, webhook: Webhook):
    given = with_push("may I?", webhook, token="secret")
    task = (await result(site, "SendMessage", given))["task"]
    assert await told(webhook, 1) == ["TASK_STATE_INPUT_REQUIRED"]
    again = {**saying("allow", taskId=task["id"]), "configuration": given["configuration"]}
    await result(site, "SendMessage", again)
    await forgotten(site.door._settings.folder)
    assert await told(webhook, 2) == ["TASK_STATE_INPUT_REQUIRED", "TASK_STATE_COMPLETED"]


async def test_configurations_are_listed_found_and_deleted(site: Site, webhook: Webhook):
    task = (await result(site, "SendMessage", saying("slow", at_once=True)))["task"]["id"]
    made = await result(site, "CreateTaskPushNotificationConfig", {"taskId": task, "url": webhook.url})
    asked = {"taskId": task, "id": made["id"]}
    assert await result(site, "GetTaskPushNotificationConfig", asked) == made
    assert await result(site, "ListTaskPushNotificationConfigs", {"taskId": task}) == {
        "configs": [made],
        "nextPageToken": "",
    }
    assert await result(site, "DeleteTaskPushNotificationConfig", asked) == {}
    assert (await call(site, "GetTaskPushNotificationConfig", asked))["error"]["code"] == -32001
    site.gate.set()
    assert webhook.got == []


async def test_a_webhook_that_refuses_is_tried_again_and_not_for_ever(
    site: Site, webhook: Webhook, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(push_sender, "PAUSES", (0.0,) * len(push_sender.PAUSES))
    webhook.statuses[:] = [500] * 100
    await result(site, "SendMessage", with_push("look", webhook))
    assert len(await told(webhook, 5)) == len(push_sender.PAUSES) + 1
    await forgotten(site.door._settings.folder)
    assert len(webhook.got) == 5
    assert "did not take its notification: it answered 500" in caplog.text


async def test_a_webhook_that_was_not_told_is_told_by_the_next_server(site: Site, webhook: Webhook):
    await result(site, "SendMessage", with_push("slow", webhook))
    await site.door.close()
    assert len(read_pushes(site.door._settings.folder / PUSHES)) == 1
    async with site.mt.serve(port=0, folder=site.door._settings.folder):
        site.gate.set()
        assert await told(webhook, 1) == ["TASK_STATE_COMPLETED"]


async def test_addresses_and_numbers_of_webhooks_have_limits(site: Site, webhook: Webhook):
    task = (await result(site, "SendMessage", saying("slow", at_once=True)))["task"]["id"]
    for url in ("", "ftp://x/", "http://", "http://x:99999999/", "http://a b/", "http://x/\r\nHost: y"):
        found = await call(site, "CreateTaskPushNotificationConfig", {"taskId": task, "url": url})
        assert found["error"]["code"] == -32602, url
    for number in range(push_sender.MOST_OF_TASK):
        url = f"{webhook.url}?{number}"  # the same one twice would be one
        await result(site, "CreateTaskPushNotificationConfig", {"taskId": task, "url": url})
    full = await call(site, "CreateTaskPushNotificationConfig", {"taskId": task, "url": webhook.url})
    assert (full["error"]["code"], "too many" in full["error"]["message"]) == (-32004, True)


async def test_a_damaged_file_of_webhooks_is_put_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    path = tmp_path / PUSHES
    path.write_text("{")
    path.chmod(0o600)
    assert read_pushes(path) == []
    assert (path.exists(), (tmp_path / f"{PUSHES}.damaged").exists()) == (False, True)
    assert "The file of webhooks" in caplog.text
