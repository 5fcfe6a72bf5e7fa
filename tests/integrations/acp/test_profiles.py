"""Whose habits an agent has, and how its failures are read. The texts are what the real ones said."""

from __future__ import annotations

import pytest

from meantime.integrations.acp.profiles import BY_NAME, failure_in, profile_of
from meantime.integrations.acp.turn_result import AgentError, answered_with_error, tokens
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


def test_an_abort_that_nobody_asked_for_is_tried_again():
    turned = answered_with_error(BY_NAME["qwen"], AgentError(-32603, "Request was aborted.", None))
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
