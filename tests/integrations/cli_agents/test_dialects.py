"""How each program is asked, and what its words mean: without the program."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as set_up
from hypothesis import strategies as st

from meantime import InvalidInput
from meantime.integrations.cli_agents import programs
from meantime.integrations.cli_agents.cli_adapter import TurnRequest
from meantime.integrations.cli_agents.turn_output import TurnOutput
from meantime.integrations.cli_agents.turn_result import judge
from meantime.kernel.lines import Line
from meantime.ports.commands import CommandEnd, Piece
from meantime.ports.session import AgentSettings, Turned

KNOWN = list(programs.KNOWN)


class Heard:
    """A hearer that remembers."""

    gate: Any = None

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.tokens = 0

    def said(self, text: str) -> None:
        raise NotImplementedError

    def line(self, line: Line) -> None:
        self.lines.append(line)

    def has(self, id: str) -> bool:
        return any(line.id == id for line in self.lines)

    def spent(self, *, turns: int = 0, tokens: int = 0, cost: float = 0.0) -> None:
        self.tokens += tokens

    def phase(self, text: str) -> None:
        pass

    def alive(self) -> None:
        pass

    async def ask(self, question: Any) -> Any:
        raise NotImplementedError


def turned(
    name: str, *events: Any, ending: CommandEnd | None = None, stderr: str = "", used: int = 0
) -> Turned:
    dialect = programs.KNOWN[name]
    hearing = TurnOutput(dialect, Heard(), 1, used)
    data = "".join(json.dumps(event) + "\n" for event in events).encode()
    hearing.piece(Piece(0, data))
    hearing.end()
    return judge(dialect, hearing, CommandEnd(exit_code=0) if ending is None else ending, stderr)


def settings(**more: Any) -> AgentSettings:
    return AgentSettings(runner="cli", command=("x",), **more)


def arguments(name: str, **more: Any) -> list[str]:
    given = {key: more.pop(key) for key in ("source", "resumes", "last") if key in more}
    return programs.KNOWN[name].arguments(TurnRequest(settings(**more), "S", **given))


# -- how it is asked


def test_a_first_turn_a_later_one_and_a_fork():
    assert arguments("claude")[-2:] == ["--session-id", "S"]
    assert arguments("claude", resumes=True)[-2:] == ["--resume", "S"]
    forked = ["--resume", "O", "--fork-session", "--session-id", "S"]
    assert arguments("claude", source="O")[-5:] == forked
    assert arguments("codex")[-1:] == ["-"]
    assert arguments("codex", resumes=True)[-3:] == ["resume", "S", "-"]
    assert arguments("codex", source="O")[-3:] == ["fork", "O", "-"]
    assert "-s" not in arguments("opencode")
    assert arguments("opencode", resumes=True)[-2:] == ["-s", "S"]
    assert arguments("opencode", source="O")[-3:] == ["-s", "O", "--fork"]
    assert "--resume" not in arguments("goose")
    assert "--resume" in arguments("goose", resumes=True)
    assert arguments("gemini")[-2:] == ["--session-id", "S"]
    assert arguments("gemini", resumes=True)[-2:] == ["--resume", "S"]


@pytest.mark.parametrize("name", KNOWN)
def test_the_model_is_passed_on(name: str):
    said = arguments(name, model="provider/fine")
    assert "provider/fine" in said or ("provider" in said and "fine" in said)


def test_rules_become_flags_or_configuration():
    rules = {"allow": ("Bash(git *)", "Read"), "deny": ("Write",), "tools": ("Bash", "Read")}
    said = arguments("claude", **rules)
    assert "--allowedTools=Bash(git *),Read" in said
    assert "--disallowedTools=Write" in said
    assert said[said.index("--tools") + 1] == "Bash,Read"
    ask = TurnRequest(settings(allow=("bash",), deny=("edit",), tools=("bash",)), "S")
    config = json.loads(programs.KNOWN["opencode"].environment(ask)["OPENCODE_CONFIG_CONTENT"])
    assert config == {
        "tools": {"*": False, "bash": True},
        "permission": {"bash": "allow", "edit": "deny"},
    }


@pytest.mark.parametrize("name", KNOWN)
def test_everything_is_allowed_only_where_it_is_said(name: str):
    dialect = programs.KNOWN[name]

    def asked(**more: Any) -> tuple[list[str], dict[str, str]]:
        ask = TurnRequest(settings(**more), "S")
        return dialect.arguments(ask), dialect.environment(ask)

    assert asked(otherwise="allow") == asked(allow=("*",)) != asked() == asked(otherwise="deny")


@pytest.mark.parametrize("name", KNOWN)
def test_a_last_turn_cannot_do_anything_any_more(name: str):
    dialect, free = programs.KNOWN[name], settings(otherwise="allow")
    last, other = TurnRequest(free, "S", resumes=True, last=True), TurnRequest(free, "S", resumes=True)
    said = (dialect.arguments(last), dialect.environment(last))
    assert said != (dialect.arguments(other), dialect.environment(other))


# -- who is meant


def test_a_program_is_known_by_its_name():
    for command in ("codex", "/opt/bin/codex", "./codex.js"):
        agent = AgentSettings(runner="cli", command=(command,))
        assert programs.adapter_of("one", agent).name == "codex"
    wrapped = AgentSettings(runner="cli", command=("npx", "something"), profile="claude")
    assert programs.adapter_of("one", wrapped).name == "claude"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"command": ("cat",)}, "claude, codex, gemini, goose, opencode"),
        ({"command": ()}, "no command"),
        ({"command": ("/nowhere/codex",)}, "was not found"),
        ({"command": ("codex",), "tools": ("Bash",)}, "codex has no flag"),
        ({"command": ("goose",), "deny": ("shell",)}, "goose has no flag"),
        ({"command": ("gemini",), "options": {"leftovers": "sell"}}, "leftovers"),
    ],
)
def test_what_can_never_run_is_refused(given: dict[str, Any], words: str):
    with pytest.raises(InvalidInput, match=words):
        programs.check("one", AgentSettings(runner="cli", **given))


# -- what it means


def test_codex_a_warning_is_no_failure_and_a_failure_is():
    item = {"type": "item.completed", "item": {"id": "0", "type": "error", "message": "Old model."}}
    said = {"type": "item.completed", "item": {"id": "1", "type": "agent_message", "text": "Done."}}
    assert turned("codex", item, said, {"type": "turn.completed"}).text == "Done."
    failed = turned("codex", said, {"type": "turn.failed", "error": {"message": "No."}}, ending=CommandEnd(1))
    assert failed.error is not None
    assert failed.error.message == "No."


def test_codex_counts_whole_sessions_and_we_count_turns():
    dialect, heard = programs.KNOWN["codex"], Heard()
    hearing = TurnOutput(dialect, heard, 2, 40)
    usage = {"type": "turn.completed", "usage": {"input_tokens": 50, "output_tokens": 10}}
    hearing.piece(Piece(0, json.dumps(usage).encode() + b"\n"))
    assert (heard.tokens, hearing.reader.total) == (20, 60)


def test_claude_says_what_it_was_not_allowed():
    dialect, heard = programs.KNOWN["claude"], Heard()
    hearing = TurnOutput(dialect, heard, 1, 0)
    denials = [{"tool_name": "Bash"}, {"tool_name": "Bash"}]
    event = {"type": "result", "result": "I could not.", "permission_denials": denials}
    hearing.piece(Piece(0, json.dumps(event).encode() + b"\n"))
    assert judge(dialect, hearing, CommandEnd(exit_code=0), "").text == "I could not."
    assert "Bash" in heard.lines[0].text
    assert "allow" in heard.lines[0].text


def test_what_comes_in_pieces_is_one_line():
    heard = Heard()
    hearing = TurnOutput(programs.KNOWN["gemini"], heard, 1, 0)
    event = {"type": "message", "role": "assistant", "delta": True}
    said = "".join(json.dumps({**event, "content": text}) + "\n" for text in ("It ", "is ", "done."))
    hearing.piece(Piece(0, said.encode()))
    hearing.end()
    assert [line.text for line in heard.lines] == ["It is done."]


@pytest.mark.parametrize(
    ("name", "stderr"),
    [
        ("claude", "No conversation found with session ID: 1"),
        ("codex", "Error: thread/resume failed: no rollout found for thread id 1 (code -32600)"),
        ("opencode", "\x1b[91mError: \x1b[0mSession not found"),
        ("goose", "Error: No session found with name '1'"),
        ("gemini", 'Error resuming session: Invalid session identifier "1".'),
    ],
)
def test_a_session_that_is_gone_is_named(name: str, stderr: str):
    found = turned(name, ending=CommandEnd(exit_code=1), stderr=stderr)
    assert found.error is not None
    assert found.error.code == "session_gone"


def test_finished_first_wins_against_a_stop():
    done = {"type": "result", "result": "Done.", "is_error": False}
    assert turned("claude", done, ending=CommandEnd(stopped=True)).text == "Done."
    assert turned("claude", ending=CommandEnd(stopped=True)).stopped


# -- anything may come

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
WORDS = st.sampled_from(
    [
        "type",
        "subtype",
        "message",
        "content",
        "role",
        "item",
        "id",
        "usage",
        "error",
        "part",
        "state",
        "tool",
        "text",
        "result",
        "stats",
        "tokens",
        "cost",
        "thread_id",
        "session_id",
        "sessionID",
        "toolCall",
        "value",
        "errors",
        "data",
        "permission_denials",
        "exit_code",
        "status",
    ]
)
KINDS = st.sampled_from(
    [
        "system",
        "assistant",
        "user",
        "result",
        "item.completed",
        "turn.completed",
        "turn.failed",
        "error",
        "text",
        "tool_use",
        "step_finish",
        "step_start",
        "message",
        "complete",
        "init",
        "tool_result",
        "toolRequest",
        "toolResponse",
        "command_execution",
    ]
)
NESTED = st.recursive(JSON | KINDS, lambda inner: st.dictionaries(WORDS, inner, max_size=5), max_leaves=12)


@given(st.lists(st.dictionaries(WORDS, NESTED, max_size=4), max_size=3), KINDS)
@set_up(max_examples=60)
def test_no_event_upsets_a_reader(events: list[dict[str, Any]], kind: str):
    for name in KNOWN:
        told = [{**event, "type": kind} for event in events]
        assert isinstance(turned(name, *told), Turned)


@given(st.data())
def test_lines_are_the_same_however_they_are_cut(data: st.DataObject):
    events = [
        {"type": "assistant", "message": {"content": [{"type": "text", "text": f"ü {n}"}]}} for n in range(5)
    ]
    whole = "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in events).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    heard, other = Heard(), Heard()
    one = TurnOutput(programs.KNOWN["claude"], heard, 1, 0)
    one.piece(Piece(0, whole))
    two = TurnOutput(programs.KNOWN["claude"], other, 1, 0)
    for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        two.piece(Piece(begin, whole[begin:end]))
    assert heard.lines == other.lines
    assert len({line.id for line in heard.lines}) == 5


def test_a_gap_costs_the_lines_it_cuts_and_no_other():
    heard = Heard()
    hearing = TurnOutput(programs.KNOWN["claude"], heard, 1, 0)

    def line(text: str) -> bytes:
        content = [{"type": "text", "text": text}]
        return json.dumps({"type": "assistant", "message": {"content": content}}).encode() + b"\n"

    hearing.piece(Piece(0, line("first") + line("second")[:20]))
    hearing.piece(Piece(5_000, line("third")[20:] + line("fourth")))
    hearing.end()
    assert [one.text for one in heard.lines] == ["first", "fourth"]
    assert not hearing.whole
