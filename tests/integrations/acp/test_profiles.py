"""Whose habits an agent has, and how its failures are read. The texts are what the real ones said."""

from __future__ import annotations

import pytest

from meantime.integrations.acp.profiles import BY_NAME, failure_in, profile_of
from meantime.integrations.acp.troubles import AgentError, failed, refused, tokens
from meantime.ports.session import AgentSettings

GOOSE = (
    "Ran into this error: Rate limit exceeded: scripted error 429.\n\n"
    "Please retry if you think this is a transient or recoverable error."
)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["goose", "acp"], "goose"),
        (["/opt/bin/opencode", "acp"], "opencode"),
        (["npx", "claude-agent-acp"], "claude"),
        (["node", "/lib/node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js"], "claude"),
        (["codex-acp"], "codex"),
        (["gemini", "--acp"], "gemini"),
        (["qwen", "--acp"], "qwen"),
        (["copilot", "--acp"], "copilot"),
        (["my-agent", "--about", "goose"], "generic"),
    ],
)
def test_it_is_known_by_its_command(command: list[str], name: str):
    assert profile_of(AgentSettings(runner="acp", command=tuple(command))).name == name


def test_a_name_is_stronger_than_the_command():
    settings = AgentSettings(runner="acp", command=("wrapper",), profile="goose")
    assert profile_of(settings).name == "goose"


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("goose", GOOSE, "Rate limit exceeded: scripted error 429."),
        ("goose", "I ran into this error: 429, and mended it.", ""),
        ("copilot", "Error: 400 scripted error 400", "400 scripted error 400"),
        ("copilot", "Error: the file is not there, so I made it.", ""),
        ("opencode", GOOSE, ""),
    ],
)
def test_a_failure_that_comes_as_the_last_words_is_told_from_other_words(name: str, text: str, found: str):
    assert failure_in(BY_NAME[name], text) == found


@pytest.mark.parametrize(
    ("text", "code", "retryable", "limited"),
    [
        ("Rate limit exceeded: scripted error 429.", 0, True, True),
        ("Internal error: scripted error 400", -32603, False, False),
        ("Internal error: 503 Service Unavailable", -32603, True, False),
        ("Overloaded", -32603, True, True),
        ("read ECONNRESET", -32603, True, False),
        ("quota", 429, True, True),
        ("The context of 50000 tokens is too long", -32603, False, False),
    ],
)
def test_what_passes_is_worth_another_try(text: str, code: int, retryable: bool, limited: bool):
    turned = failed(text, code)
    assert turned.error is not None
    assert (turned.error.message, turned.retryable, turned.rate_limited) == (text, retryable, limited)


@pytest.mark.parametrize(("text", "after"), [("429, retry-after: 7", 7.0), ("429 retry_after=1500ms", 1.5)])
def test_the_provider_says_how_long(text: str, after: float):
    assert failed(text).retry_after == after


def test_an_abort_that_nobody_asked_for_is_tried_again():
    turned = refused(BY_NAME["qwen"], AgentError(-32603, "Request was aborted.", None))
    assert turned.retryable


@pytest.mark.parametrize(
    ("answer", "count"),
    [
        ({"usage": {"totalTokens": 9, "inputTokens": 4, "outputTokens": 5}}, 9),
        ({"_meta": {"quota": {"token_count": {"input_tokens": 3, "output_tokens": 4}}}}, 7),
        ({"usage": "many"}, 0),
        ({}, 0),
    ],
)
def test_tokens_are_found_where_the_agent_puts_them(answer: dict[str, object], count: int):
    assert tokens(answer) == count
