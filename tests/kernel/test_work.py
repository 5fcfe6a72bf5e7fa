"""What a user hands off, and what of it is stored."""

from __future__ import annotations

import functools
from typing import Any

import msgspec
import pytest

from meantime.kernel.errors import InvalidInput
from meantime.kernel.model import Work
from meantime.kernel.work import MAX_INPUT, Agent, Call, Tool, function_name


def index_repo(path: str, depth: int = 1) -> str:
    return f"{path}:{depth}"


class Unreadable:
    def __repr__(self) -> str:
        raise RuntimeError("no text for you")


class Indexer:
    def run(self) -> str:
        return "run"

    def __call__(self) -> str:
        return "called"


HERE = index_repo.__module__


# Functions


@pytest.mark.behaviour("F2")
def test_a_call_is_stored_by_name_with_its_arguments():
    work = Call(index_repo, "src", depth=3).order().work
    assert work == Work("call", f"{HERE}:index_repo", {"args": ["src"], "kwargs": {"depth": 3}})


@pytest.mark.behaviour("F2")
def test_a_call_without_arguments_stores_none():
    assert Call(index_repo).order().work.input is None  # pyright: ignore[reportCallIssue]


@pytest.mark.behaviour("F2")
def test_the_live_function_and_its_arguments_are_kept_for_this_process():
    order = Call(index_repo, "src", depth=3).order()
    assert order.target(*order.args, **order.kwargs) == "src:3"  # pyright: ignore[reportOptionalCall]


@pytest.mark.behaviour("F2")
def test_arguments_that_are_not_json_run_but_are_marked():
    gate: Any = object()
    order = Call(index_repo, gate).order()
    assert not order.work.faithful
    assert order.args == (gate,)


@pytest.mark.behaviour("F2")
def test_arguments_that_cannot_be_read_still_run():
    odd: Any = Unreadable()
    order = Call(index_repo, odd, depth=odd).order()
    assert not order.work.faithful
    assert msgspec.json.encode(order.work)


@pytest.mark.behaviour("F2")
def test_the_functions_own_keywords_may_be_called_fn():
    assert Call(dict, fn=1, self=2).kwargs == {"fn": 1, "self": 2}


@pytest.mark.behaviour("F13")
@pytest.mark.parametrize("fn", [None, "index_repo", 7])
def test_a_call_that_was_already_made_is_refused_with_what_to_do(fn):
    with pytest.raises(InvalidInput, match=r"Call\(fn, 1, 2\), not Call\(fn\(1, 2\)\)"):
        Call(fn)


@pytest.mark.behaviour("F2")
@pytest.mark.parametrize(
    ("fn", "name"),
    [
        (index_repo, f"{HERE}:index_repo"),
        (Indexer().run, f"{HERE}:Indexer.run"),
        (Indexer(), f"{HERE}:Indexer"),
        (functools.partial(index_repo, "src"), f"{HERE}:index_repo"),
        (len, "builtins:len"),
    ],
    ids=["function", "method", "callable", "partial", "builtin"],
)
def test_every_callable_has_a_name(fn, name):
    assert function_name(fn) == name


@pytest.mark.behaviour("L27")
@pytest.mark.parametrize(
    "fn", [functools.partial(index_repo, "src"), Indexer().run], ids=["partial", "method"]
)
def test_a_callable_that_its_name_does_not_find_again_is_not_faithful(fn):
    """After a restart the name gives back `index_repo`, without the "src" that was bound to it."""
    assert not Call(fn).order().work.faithful


def test_a_call_shows_what_it_calls():
    assert repr(Call(index_repo, "secret")) == f"Call({HERE}:index_repo)"


# Agents


@pytest.mark.behaviour("F1")
def test_an_agent_is_stored_with_its_prompt_and_input():
    work = Agent("reviewer", "look at src", files=["a.py"]).order().work
    assert work == Work("agent", "reviewer", {"prompt": "look at src", "files": ["a.py"]})


@pytest.mark.behaviour("F1")
def test_an_agent_has_nothing_to_run_in_this_process():
    assert Agent("reviewer", "look").order().target is None


@pytest.mark.behaviour("F13")
@pytest.mark.parametrize(
    ("name", "prompt"), [("", "x"), ("x", ""), ("  ", "x"), ("x", "\n"), (None, "x"), ("x", 7)]
)
def test_an_agent_needs_a_name_and_a_prompt(name, prompt):
    with pytest.raises(InvalidInput, match="text that is not empty"):
        Agent(name, prompt)


@pytest.mark.behaviour("F13")
def test_a_prompt_that_cannot_be_stored_is_refused():
    with pytest.raises(InvalidInput, match="lone surrogate"):
        Agent("reviewer", "look at \ud800")


@pytest.mark.behaviour("F1")
def test_an_agents_input_that_cannot_be_read_does_not_break_the_order():
    assert not Agent("reviewer", "look", gate=Unreadable()).order().work.faithful


def test_an_agent_shows_its_name():
    assert repr(Agent("reviewer", "look")) == "Agent('reviewer')"


@pytest.mark.behaviour("F4")
def test_a_tool_is_stored_with_its_arguments():
    order = Tool("files/search", {"text": "todo"}).order()
    assert order.work == Work("tool", "files/search", {"text": "todo"})
    assert order.kwargs == {"arguments": {"text": "todo"}}
    assert repr(Tool("files/search")) == "Tool('files/search')"


@pytest.mark.behaviour("F13")
@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("search", {}, "does not name a tool of a server"),
        ("/search", {}, "does not name a tool of a server"),
        ("files/", {}, "does not name a tool of a server"),
        ("files/search", ["todo"], "are a dict, not list"),
        ("files/search", {"text": object()}, "The arguments of 'files/search' are not JSON"),
    ],
)
def test_a_tool_that_cannot_be_called_is_refused(name: str, arguments: Any, says: str):
    with pytest.raises(InvalidInput, match=says):
        Tool(name, arguments)


@pytest.mark.behaviour("F4", "P10")
def test_arguments_of_a_tool_that_are_too_big_are_sent_and_kept_in_part():
    text = "x" * MAX_INPUT
    order = Tool("files/search", {"text": text}).order()
    assert order.kwargs == {"arguments": {"text": text}}
    assert not order.work.faithful
    assert len(msgspec.json.encode(order.work.input)) < MAX_INPUT
