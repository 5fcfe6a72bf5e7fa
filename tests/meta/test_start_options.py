"""An option of start is declared once, in `Options`. A surface that repeats the list has each option, or has
a reason here why it does not.
"""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from msgspec import structs

from meantime import Thread
from meantime.kernel.constraints import constraints_of
from meantime.link.verb_messages import VERBS
from meantime.ports import asks
from meantime.ports.tasks import Options
from meantime.surfaces.cli.verbs import run
from meantime.surfaces.http.task_requests import StartBody
from meantime.testing.tasks import start_checks
from meantime.toolset import performer
from meantime.toolset import toolset as tools

pytestmark = pytest.mark.docs

ROOT = Path(__file__).resolve().parents[2]
EVERY = set(Options.__struct_fields__)
OURS = "processes set it themselves: it says who runs the work, or for whom"
BRINGS = ("perform", "start", "options_from")  # calls of the toolset whose keywords become options
SETTING = "the configuration says it for all"
FORKS = "a fork goes on from the thread's own transcript, or from a task"
COMMAND = "a command has no conversation, and an agent of the command line begins a new one"
HOST = "hosts know it, people do not"

# The options that a surface does not have, with the reason. Add one only with a reason that a user would
# accept; otherwise add the option to the surface.
LEFT_OUT: dict[str, dict[str, str]] = {
    "library": {"executor": OURS, "parent": OURS},
    "link": {},
    "HTTP": {"executor": OURS, "inline": SETTING, "context": FORKS, "session": FORKS},
    "command line": {
        "executor": OURS,
        "inline": SETTING,
        "context": COMMAND,
        "session": COMMAND,
        "fork": COMMAND,
        "fork_of": "`meantime fork` has it",
        "tool_call_id": HOST,
        "message_id": HOST,
        "meta": HOST,
        "on_limit": SETTING,
    },
    "toolset": {
        "executor": OURS,
        "parent": OURS,
        "id": "a model is told the id",
        "notify": "a model that starts something is told",
        "retry": "a model cannot know what may run twice",
        "fork_of": "a model forks its own conversation",
        "place": "the configuration places work: a model does not know the machines",
        "at": "a model knows how long to wait better than what time it is",
    },
}


def library() -> set[str]:
    return set(inspect.signature(Thread.start).parameters)


def link() -> set[str]:
    return set(get_type_hints(VERBS["start"].arguments)["options"].__struct_fields__)


def http() -> set[str]:
    return set(StartBody.__struct_fields__)


def command_line() -> set[str]:
    """The fields of the request that `meantime run` sends."""
    fields = {field.encode_name: field.name for field in structs.fields(StartBody)}
    return {fields[name] for name in keys_of("_order", run)}


def toolset() -> set[str]:
    """From the ask, from the call that brings it, from the policy, and of a fork."""
    asked = {name for kind in asks.Starting.__subclasses__() for name in kind.__struct_fields__}
    added = {
        word.arg
        for module in (performer, tools)
        for call in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(call, ast.Call) and ast.unparse(call.func).split(".")[-1] in BRINGS
        for word in call.keywords
        if word.arg is not None
    }
    return asked | added | set(performer.Forking().options())


def keys_of(function: str, module: Any) -> set[str]:
    """The keys of the dict that a function makes."""
    (found,) = [
        node
        for node in ast.parse(inspect.getsource(module)).body
        if isinstance(node, ast.FunctionDef) and node.name == function
    ]
    dicts = [node for node in ast.walk(found) if isinstance(node, ast.Dict)]
    return {str(key.value) for one in dicts for key in one.keys if isinstance(key, ast.Constant)}


SURFACES = {
    "library": library,
    "link": link,
    "HTTP": http,
    "command line": command_line,
    "toolset": toolset,
}


@pytest.mark.parametrize("surface", SURFACES)
def test_every_surface_has_every_option_or_says_why_not(surface: str):
    missing = EVERY - SURFACES[surface]()
    assert missing == set(LEFT_OUT[surface]), "add the option to the surface, or the reason to this file"


def test_every_option_declares_its_constraint():
    assert set(constraints_of(Options)) == EVERY


def test_every_option_is_read_by_the_runtime():
    read = {
        node.attr
        for file in (ROOT / "src/meantime/runtime").glob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "options"
    }
    assert EVERY - read == set()


def test_the_public_suite_tries_a_bad_value_of_every_option():
    tried = {name for name, _ in start_checks.BAD_OPTIONS}
    assert EVERY - tried == {"executor"}  # a connected process sets it, whatever its caller says
