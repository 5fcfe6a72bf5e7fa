"""The scripted model does what scripts say, in every dialect: what tests with real agents rely on."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.waiting import LIMIT

from .model import Model, script

pytestmark = pytest.mark.agents

SAID = "one two three four"
CALLS = {"tools": [{"tool": "look", "arguments": {"at": 1}}, {"tool": "look", "arguments": {"at": 2}}]}


@pytest.fixture
def model() -> Iterator[Model]:
    one = Model()
    yield one
    one.close()


def chat(model: Model, *said: tuple[str, str], stream: bool = False) -> httpx.Response:
    messages = [{"role": role, "content": text} for role, text in said]
    tools = [{"type": "function", "function": {"name": "look"}}]
    body = {"messages": messages, "tools": tools, "stream": stream}
    return httpx.post(f"{model.url}/v1/chat/completions", json=body, timeout=LIMIT)


def responses(model: Model, text: str, stream: bool) -> httpx.Response:
    body = {"input": text, "tools": [{"type": "function", "name": "look"}], "stream": stream}
    return httpx.post(f"{model.url}/v1/responses", json=body, timeout=LIMIT)


def messages(model: Model, text: str, stream: bool) -> httpx.Response:
    body = {"messages": [{"role": "user", "content": text}], "tools": [{"name": "look"}], "stream": stream}
    return httpx.post(f"{model.url}/v1/messages", json=body, timeout=LIMIT)


def gemini(model: Model, text: str, stream: bool) -> httpx.Response:
    verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
    tools = [{"functionDeclarations": [{"name": "look"}]}]
    body = {"contents": [{"role": "user", "parts": [{"text": text}]}], "tools": tools}
    return httpx.post(f"{model.url}/v1beta/models/m:{verb}", json=body, timeout=LIMIT)


DIALECTS = [
    lambda model, text, stream: chat(model, ("user", text), stream=stream),
    responses,
    messages,
    gemini,
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("ask", DIALECTS, ids=["chat", "responses", "messages", "gemini"])
def test_every_dialect_says_texts_and_calls(model: Model, ask: Callable[..., Any], stream: bool):
    usage = {"input": 1001, "output": 77}
    said = ask(model, script({"text": SAID, "chunks": 3, "usage": usage}), stream).text
    assert "1001" in said
    assert "77" in said
    for piece in ("one tw", "o thre", "e four") if stream else (SAID,):
        assert f'"{piece}"' in said
    called = ask(model, script(CALLS), stream).text.replace("\\", "")
    assert called.count("look") >= 2
    assert '"at": 1' in called
    assert '"at": 2' in called


def test_the_step_is_the_number_of_answers_since_the_script(model: Model):
    steps = script({"text": "first"}, {"text": "second"})
    told = [("user", steps), ("assistant", "first"), ("user", "by the way")]
    assert _text(chat(model, *told)) == "second"
    assert _text(chat(model, *told, ("assistant", "second"), ("user", "and?"))) == "ECHO and?"
    assert [asked.answer for asked in model.turns] == [{"text": "second"}, {"text": "ECHO and?"}]


def test_refusals_stalls_and_resets(model: Model, tmp_path: Path):
    refused = chat(model, ("user", script({"error": 429, "retry_after": 3})))
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "3")
    twice = ("user", script({"text": "at last", "errors": 2, "error": 500}))
    assert [chat(model, twice).status_code for _ in range(3)] == [500, 500, 200]
    gate = tmp_path / "gate"
    model.before_answer = lambda asked: gate.touch()
    assert _text(chat(model, ("user", script({"text": "open", "wait_file": str(gate)})))) == "open"
    with pytest.raises(httpx.TransportError):
        chat(model, ("user", script({"text": SAID, "chunks": 4, "reset": True})), stream=True)
    body = {
        "messages": [{"role": "user", "content": script({"hang": True})}],
        "tools": [{"function": {"name": "a"}}],
    }
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{model.url}/v1/chat/completions", json=body, timeout=httpx.Timeout(LIMIT, read=0.2))


def test_a_script_in_a_file_and_a_slow_one(model: Model, tmp_path: Path):
    path = tmp_path / "steps.json"
    path.write_text(json.dumps([{"text": SAID, "chunks": 4, "chunk_delay": 0.05, "delay": 0.1}]))
    began = time.monotonic()
    said = chat(model, ("user", f"%%{path}%%"), stream=True).text
    assert time.monotonic() - began > 0.25  # the delay, and four pauses
    assert said.count('"content"') == 4


def _text(answer: httpx.Response) -> str:
    return answer.json()["choices"][0]["message"]["content"]
