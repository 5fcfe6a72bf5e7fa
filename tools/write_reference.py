"""Writes docs/reference.md again, from the classes as they are.

python tools/write_reference.py

Signatures come from inspect. What a thing means comes from its docstring, or from the comment behind a
field; only where the source says nothing, and for the options of a start, it comes from TEXTS. A name
that nobody explains is an error, and so is a text for a name that is gone.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import textwrap
import tokenize
import typing
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import meantime
from meantime.kernel import change, errors, events, model
from meantime.ports import store, tasks
from meantime.runners.background import BackgroundFunction

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference.md"
WIDTH = 100
OBJECTS = [
    "Meantime", "Thread", "Turn", "Loop", "Handle", "Log", "Batch", "Transcript", "Toolset", "HttpDoor",
]  # fmt: skip
SETTINGS = ["Settings", "Limits", "ProcessLimits", "InlineLimits", "Retention"]
SERVERS = ["StdioServer", "HttpServer"]
OUTCOMES = ["Completed", "Failed", "Cancelled", "TimedOut", "Lost"]
VALUES = [
    "Task",
    "Work",
    "Run",
    "Progress",
    "Output",
    "Chunk",
    "Spill",
    "Answer",
    "CancelAnswer",
    "BatchCount",
]
VALUES += ["Said", "ToolInfo", "Notice", "Message", "Part", "Settled", "Entry", "Event", "Delivery"]
HOMES = [meantime, model, tasks, store, events, change]  # where a value that is handed out may live
SKIPPED = {  # public in the code, but not for who uses Meantime
    "Agent.order",
    "Shell.order",
    "Tool.order",
    "BackgroundFunction.check",
    "Call.order",
    "Context.count_stop",
    "Context.in_session",
    "Context.noticed",
    "Context.stops",
    "Transcript.saving",
}

TEXTS = {
    # -- the options of open and of a start: always from here
    "open.durability": '`"full"` survives a power cut; `"fast"` survives a crash, not a power cut.',
    "open.settings": "See [Settings](#settings).",
    "open.runners": "Runners for more kinds of work than functions and commands.",
    "open.servers": "MCP servers by name; see [Servers](#servers).",
    "open.agents": "Who `Agent(name, …)` is: `AgentSettings`, a Pydantic AI agent or an async function, or"
    " either with its settings: `PythonAgent(agent, tools=…)`; see [agents in Python](agents-in-python.md).",
    "open.clock": "Another clock, for tests.",
    "open.store": "Another store instead of the one that `path` names, for tests.",
    "open.link": "A unix socket at which other processes of the same user can `connect`.",
    "open.salvage": "True: goes on with what can be read of a damaged ledger that was set aside.",
    "start.timeout": "Seconds it may run; None is `Settings.default_timeout`, -1 is no timeout.",
    "start.description": "What people and the agent call it; else it has the name of its work.",
    "start.batch": "The batch it joins; None is the thread's open batch, or a new one.",
    "start.tool_call_id": "The tool call that asked; a second start for the same one is a `Duplicate`.",
    "start.message_id": "The message of the conversation that asked; kept with the task.",
    "start.id": "An id of your own; None makes one. An id that is taken is a `Duplicate`.",
    "start.notify": "False: the ending is recorded, and nobody is told.",
    "start.retry": '`"idempotent"`: it may run again after a crash. Else it ends `lost`.',
    "start.on_limit": 'With no slot free: `"queue"` or `"reject"`; None is what `Limits.on_limit` says.',
    "start.inline": "How much of the result stays in the message; None is what `Settings` says.",
    "start.fork": "For agents: begin with a conversation: `fork_of`, `context`, `session`, or the thread's"
    " own transcript. Kept as `task.forked`. Not together with `resume`.",
    "start.fork_of": "For agents: a task whose conversation it goes on from, ended or not.",
    "start.context": "For agents: the lines of the conversation it goes on from.",
    "start.resume": "For runners of agents: an ended task to take up again, instead of a new one.",
    "start.executor": "Filled in by a connected process: it is the one that has the function.",
    "start.parent": "Filled in by a connected process that works for a task: that task.",
    "start.session": "For runners of agents: the agent's own conversation, where it has one already.",
    "start.meta": "A JSON object of yours, kept with the task as `task.meta`; at most 16 KB.",
    # -- members without a docstring
    "Meantime.get": "Any thread's task, as it is now.",
    "Meantime.list": "Newest first, over all threads: everything, or the statuses you name.",
    "Meantime.output": "What can be read of a task now; `wait` gives it so many seconds to end first.",
    "Meantime.cancel": "Asks a task to stop; `wait` answers with its ending.",
    "Meantime.stats": "Counts by name: rows in the ledger, slots in use, work that waits.",
    "Meantime.limits": "The limits now.",
    "Meantime.detach": "Ends what `attach` began.",
    "Thread.id": "As you named it.",
    "Thread.get": "The task as it is now.",
    "Thread.runs": "The task as each of its runs left it, oldest first; the last is as it is now.",
    "Thread.position": "A queued task's place in its queue: 1 is next; None is not queued.",
    "Thread.output": "What can be read of it now; `wait` gives it so many seconds to end first.",
    "Thread.result": "The whole result; StillRunning before there is one, TaskEnded where there is none.",
    "Thread.cancel_all": "Asks all active tasks of this thread to stop.",
    "Thread.retry": "Always refused with RetryNotSupported: resume, or start anew.",
    "Thread.batch": "Work handed off together, under a name of yours.",
    "Turn.id": "Empty before it is entered.",
    "Turn.said": "What the person said, for a turn of a `Loop`.",
    "Turn.notices": "What this turn tells, in the order of completion.",
    "Turn.renew": "Still alive: the lease begins anew.",
    "Turn.render": "The notices as messages for the conversation, in our words or a dialect's.",
    "Turn.reminder": "As on the thread.",
    "Turn.output": "As on the thread; an ending that is read here counts as told with the ack.",
    "Turn.wait": "As on the thread, for the tasks you name; endings count as told with the ack.",
    "Turn.cancel": "As on the thread; the ending counts as told with the ack.",
    "Handle.task": "The task as it was when it was started.",
    "Handle.id": "The task's id.",
    "Handle.get": "The task as it is now.",
    "Handle.output": "What can be read of it now; `wait` gives it so many seconds to end first.",
    "Handle.cancel": "Asks it to stop; `wait` answers with its ending.",
    "Batch.id": "As you named it.",
    "Batch.start": "As on the thread, with the same options but `batch`.",
    "Batch.count": "How many of how many have ended.",
    "Batch.list": "Newest first: all of them, or the statuses you name.",
    "Batch.wait": "Waits until all, or any, have ended; never longer than `timeout`.",
    "Batch.cancel": "Asks all that are active to stop.",
    "Batch.clear": "Hides what has ended from listings.",
    "Transcript.save": "Writes what was added; `turn.ack(transcript=…)` does it together with the ack.",
    "Transcript.has": "Whether the conversation holds this notice already.",
    "Transcript.messages": "The conversation so far.",
    "Transcript.entries": "The same, with the notice that each message carries.",
    "Toolset.dialect": "Whose words it speaks.",
    "Toolset.tools": "What the model is offered now: name, description, schema.",
    "Toolset.commands": "What a person can type, with a slash before it.",
    "BackgroundFunction.work": "The work to hand over: `thread.start(fn.work(1, 2))`.",
    "Context.task_id": "The task that this run belongs to.",
    "Context.thread": "The id of the thread that asked.",
    "Context.progress": "How far it is; what is left out stays as it was.",
    # -- fields without a comment
    "Settings.limits": "how much may run at once: `Limits`",
    "Settings.inline": "when a result goes to a file instead of the message: `InlineLimits`",
    "Settings.retention": "what is kept, and for how long: `Retention`",
    "Settings.upkeep_every": "seconds between the times at which what is too old is deleted",
    "Limits.per_thread": "tasks of one kind that one thread may have running",
    "Limits.total": "tasks that may run in all",
    "Limits.per_kind": "by kind of work: overrides `per_thread`",
    "InlineLimits.max_bytes": "the most bytes",
    "InlineLimits.max_lines": "the most lines",
    "Retention.journal_events": "events that the journal keeps",
    "Completed.result": "what the work returned, as JSON; None where it was spilled",
    "Failed.message": "what went wrong, in one line",
    "Failed.code": "what kind of failure",
    "Failed.exit_code": "of a process, where there was one",
    "Cancelled.by": "who asked",
    "Cancelled.reason": "why, if they said",
    "TimedOut.seconds": "the timeout",
    "Lost.reason": "why nobody can know how it ended",
    "ending.partial": "what there was of a result",
    "ending.spill": "the whole output, where it was over the limits",
    "ending.abandoned": "it would not stop; we stopped waiting",
    "ending.emitted_vars": "what the work emitted by name",
    "ending.final_message": "an agent's last words",
    "ending.terminate_reason": "why an agent stopped, in its own terms",
    # -- errors that the tree in kernel/errors.py names without a word
    "TaskFailed": "the work raised",
    "TaskCancelled": "it was stopped",
    "TaskTimedOut": "it ran out of time",
    "TaskLost": "nobody can know how it ended",
    "LedgerBusy": "another process owns the file",
    "LedgerDamaged": "the file is damaged and was set aside; `salvage=True` goes on with what can be read",
    "LedgerTooNew": "a newer Meantime wrote it",
}

HEAD = """\
# Reference

Generated by `tools/write_reference.py` from the code; do not edit. New here? Begin with
the [README](../README.md). The words are in the [glossary](glossary.md).

What you make or catch yourself is `from meantime import …`; the rest is handed out. `await` and
`async for` stand before what needs them; `meantime.blocking` has the same names without.
Times are in seconds.

- `Ref` is a task's id, a unique prefix of one, a `Handle` or a `Task`.
- `Orderable` is work: a `Call`, a `Shell`, a `Tool`, or an `Agent`.
- `Json` is JSON as Python holds it. `Until` is `"all"` or `"any"`.
- `history=True` lists also what was cleared, and endings beyond `Retention.hot`.
- `by` says who asked for a cancel; it is kept with the outcome.
"""


class Field(NamedTuple):
    name: str
    kind: str
    default: str  # as the source has it; empty where there is none
    comment: str


class Texts:
    """TEXTS, with an eye on what is missing and what is left over."""

    def __init__(self, texts: dict[str, str]) -> None:
        self._texts = texts
        self._left = set(texts)
        self._missing: list[str] = []

    def get(self, *keys: str, said: str = "") -> str:
        """What the source says, else our text under the first key that has one."""
        found = [key for key in keys if key in self._texts]
        self._left -= set(found)
        if not said and not found:
            self._missing.append(keys[0])
        return said or (self._texts[found[0]] if found else "")

    def check(self) -> None:
        if self._missing:
            raise ValueError(f"no docstring, comment or text in TEXTS: {', '.join(self._missing)}")
        if self._left:
            raise ValueError(f"texts in TEXTS for nothing: {', '.join(sorted(self._left))}")


def write(explained: dict[str, str] | None = None) -> str:
    texts = Texts(TEXTS if explained is None else explained)
    parts = [
        HEAD,
        *(_object(texts, name) for name in OBJECTS),
        _work(texts),
        _inside(texts),
        _settings(texts),
        _servers(texts),
        _outcomes(texts),
        _errors(texts),
        _values(),
    ]
    texts.check()
    return "\n".join(parts)


# -- sections


def _object(texts: Texts, name: str) -> str:
    cls = getattr(meantime, name)
    head = f"## {name}\n\n{_line(cls)}"
    if "__aenter__" in vars(cls):
        head += " Use it with `async with`."
    more = {"Meantime": _open_options, "Thread": _start_options}.get(name)
    return f"{head}\n\n{_block(_members(texts, cls))}" + (f"\n{more(texts)}" if more else "")


def _open_options(texts: Texts) -> str:
    options = _keywords(meantime.Meantime.open)
    return f"### The options of open\n\n{_option_table(texts, 'open', options)}"


def _start_options(texts: Texts) -> str:
    """The keywords of Thread.start; where it takes them as **options, the fields of Options."""
    fields = {field.name: (field.kind, field.default) for field in _fields(tasks.Options)}
    options = fields | _keywords(meantime.Thread.start)
    only = ", ".join(_code(name) for name in options if name not in fields)
    note = "`Thread.call` takes them too" + (f", except {only}." if only else ".")
    return f"### The options of start\n\n{note}\n\n{_option_table(texts, 'start', options)}"


def _keywords(fn: Callable[..., Any]) -> dict[str, tuple[str, str]]:
    """By name: the type and the default of what can be given by keyword only."""
    return {
        one.name: (_annotation(one.annotation), "" if one.default is one.empty else _value(one.default))
        for one in inspect.signature(fn).parameters.values()
        if one.kind is one.KEYWORD_ONLY
    }


def _option_table(texts: Texts, verb: str, options: dict[str, tuple[str, str]]) -> str:
    rows = [
        (f"`{name}`", _code(kind), _code(default), texts.get(f"{verb}.{name}"))
        for name, (kind, default) in options.items()
    ]
    return _table("option type default means", rows)


def _work(texts: Texts) -> str:
    parts = ["## Work\n"]
    for name in ("Call", "Shell", "Tool", "Agent"):
        cls = getattr(meantime, name)
        parts.append(f"{_line(cls)}\n\n{_block([_signature(name, cls)])}")
        parts += [f"- {_option(line)}" for line in (_doc(cls) or "").splitlines()[1:] if ": " in line]
        parts.append("")
    forms = typing.get_overloads(meantime.background) or [meantime.background]
    parts.append(f"{_line(meantime.background)} The function can still be called as before.\n")
    parts.append(_block([_signature("@background", form, result=False) for form in forms]))
    parts.append("What it makes of the function has also:\n")
    parts.append(_block(_members(texts, BackgroundFunction, attributes=False)))
    return "\n".join(parts)


def _option(line: str) -> str:
    name, _, means = line.strip().partition(": ")
    return f"`{name}`: {means}"


def _inside(texts: Texts) -> str:
    members = _members(texts, meantime.Context)
    return (
        f"## Inside work\n\n{_line(meantime.current)}\n\n"
        f"{_block([_signature('current', meantime.current)])}\n{_line(meantime.Context)}\n\n"
        f"{_block(members)}\n`Stopped`: {_line(meantime.Stopped)}\n"
    )


def _settings(texts: Texts) -> str:
    parts = [
        "## Settings and limits\n\n`Meantime.open(path, settings=Settings(…))`. Every field is optional.\n"
    ]
    return "\n".join([*parts, *(_struct(texts, name) for name in SETTINGS)])


def _servers(texts: Texts) -> str:
    head = '## Servers\n\n`Meantime.open(path, servers={"name": StdioServer(…)})`; see [MCP](mcp.md).\n'
    return "\n".join([head, *(_struct(texts, name) for name in SERVERS)])


def _struct(texts: Texts, name: str) -> str:
    cls = getattr(meantime, name)
    line = f"{_line(cls)}\n\n" if _doc(cls) else ""
    rows = [
        (
            f"`{one.name}`",
            _code(one.kind),
            _code(one.default),
            texts.get(f"{name}.{one.name}", said=one.comment),
        )
        for one in _fields(cls)
    ]
    return f"### {name}\n\n{line}{_table('field type default means', rows)}"


def _outcomes(texts: Texts) -> str:
    parts = ["## Outcomes\n\n`task.outcome` and `notice.outcome`: how a run ended; None while it has not.\n"]
    for name in OUTCOMES:
        rows = []
        for one in _fields(getattr(meantime, name)):
            means = texts.get(f"{name}.{one.name}", f"ending.{one.name}", said=one.comment)
            rows.append((f"`{one.name}`", _code(one.kind), _code(one.default), means))
        parts.append(f"### {name}\n\n{_table('field type default means', rows)}")
    return "\n".join(parts)


def _errors(texts: Texts) -> str:
    said = dict(re.findall(r"^[│├└─ ]*([A-Z]\w+) {2,}(\S.*)$", errors.__doc__ or "", re.MULTILINE))
    known = [value for name in meantime.__all__ if _is_error(value := getattr(meantime, name))]
    codes = _codes({cls.__name__ for cls in known})
    rows = []
    for cls in sorted(known, key=lambda cls: [one.__name__ for one in reversed(_lineage(cls))]):
        own = list(dict.fromkeys([cls.code, *codes.get(cls.__name__, ())]))
        carries = [name for name, _ in _attributes(cls)]
        words = re.sub(r"(; \.\w+| \(also .*\))$", "", said.get(cls.__name__, ""))  # other columns say it
        means = texts.get(cls.__name__, said=words or _line(cls))
        rows.append(
            (
                f"`{cls.__name__}`",
                ", ".join(_code(base.__name__) for base in cls.__bases__),
                ", ".join(map(_code, own)),
                ", ".join(_code("." + name) for name in carries),
                means,
            )
        )
    intro = "The codes are stable; the texts may be reworded.\n"
    return f"## Errors\n\n{intro}\n{_table('error is_a codes carries means', rows)}"


def _values() -> str:
    """What the methods hand out, with the comments of the source beside it."""
    statuses = ", ".join(f"`{status}`" for status in meantime.Status)
    answers = ", ".join(f"`{one}`" for one in change.Disposition)
    parts = [
        f"## Values\n\nAll are frozen. `Status` is one of {statuses}. `Disposition`, the answer to a cancel, "
        f"is one of {answers}.\n"
    ]
    for name in VALUES:
        cls = next(getattr(home, name) for home in HOMES if hasattr(home, name))
        lines = []
        for one in _fields(cls):
            line = f"{one.name}: {one.kind}" + (f" = {one.default}" if one.default else "")
            lines.append(line + (f"  # {one.comment}" if one.comment else ""))
        for member, fn, is_property in _callables(cls):
            if is_property:
                lines.append(f"{member}: {_result(fn)}" + (f"  # {_line(fn)}" if _doc(fn) else ""))
            else:
                lines.append(_signature(member, fn) + _below(_doc(fn)))
        doc = f"\n{_line(cls)}\n" if _doc(cls) else ""
        parts.append(f"### {name}\n{doc}\n{_block(lines, gap=False)}")
    host = meantime.Host
    lines = [f"{one.name}: {one.kind}" for one in _fields(host)]
    lines += [_signature(name, fn) + _below(_doc(fn)) for name, fn, _ in _callables(host)]
    parts.append(f"### Host\n\nWhat `Meantime.attach` takes: your side, as a class.\n\n{_block(lines)}")
    made = _block([_signature("OpenCodeHost", meantime.OpenCodeHost)])
    says = "A session of OpenCode as such a host; see [OpenCode](opencode.md)."
    parts.append(f"### OpenCodeHost\n\n{says}\n\n{made}")
    spoken = meantime.Dialect
    lines = [f"{one.name}: {one.kind}" for one in _fields(spoken)]
    lines += [_signature(name, fn) + _below(_doc(fn)) for name, fn, _ in _callables(spoken)]
    where = "[dialects](dialects.md) shows how to write one; `dialect(name)` gives one of ours."
    parts.append(f"### Dialect\n\nThe words of a `Toolset`: {where}\n\n{_block(lines)}")
    return "\n".join(parts)


# -- reading the code


def _members(texts: Texts, cls: type, *, attributes: bool = True) -> list[str]:
    """Attributes, properties and methods, each with what it means below it."""
    lines: list[str] = []
    for name, kind in _attributes(cls) if attributes else ():
        lines.append(f"{name}: {kind}" + _below(texts.get(f"{cls.__name__}.{name}")))
    for name, fn, is_property in _callables(cls):
        key = f"{cls.__name__}.{name}"
        shown = name if not isinstance(inspect.getattr_static(cls, name), classmethod) else key
        line = f"{name}: {_result(fn)}" if is_property else _signature(shown, fn)
        lines.append(line + _below(texts.get(key, said=_doc(fn))))
    return lines


def _callables(cls: type) -> Iterator[tuple[str, Callable[..., Any], bool]]:
    """Public methods and properties that the class itself defines, in the order of the source."""
    for name, found in vars(cls).items():
        if name.startswith("_") or f"{cls.__name__}.{name}" in SKIPPED:
            continue
        if isinstance(found, property) and found.fget is not None:
            yield name, found.fget, True
        elif isinstance(found, cached_property):
            yield name, found.func, True
        elif isinstance(found, classmethod | staticmethod):
            yield name, found.__func__, False
        elif inspect.isfunction(found):
            yield name, found, False


def _attributes(cls: type) -> Iterator[tuple[str, str]]:
    """What the constructor keeps under a public name, with its type where the source shows one."""
    init = vars(cls).get("__init__")
    if not inspect.isfunction(init) or init.__module__ != cls.__module__:
        return
    function = _parsed(init).body[0]
    assert isinstance(function, ast.FunctionDef)
    given = {arg.arg: arg.annotation for arg in [*function.args.args, *function.args.kwonlyargs]}
    for node in function.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if not isinstance(target, ast.Attribute) or target.attr.startswith("_"):
            continue
        value = getattr(node, "value", None)
        kind = node.annotation if isinstance(node, ast.AnnAssign) else None
        if kind is None and isinstance(value, ast.Name):
            kind = given.get(value.id)
        if kind is None and isinstance(value, ast.Constant):
            kind = ast.Name(type(value.value).__name__)
        yield target.attr, ast.unparse(kind) if kind is not None else "Any"


def _fields(cls: type) -> list[Field]:
    """The fields of a struct or tuple as its source has them, with the comments behind them."""
    source = textwrap.dedent(inspect.getsource(cls))
    comments = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT and not token.string.startswith("# noqa")
    }
    inherited = [base for base in cls.__bases__ if base.__module__ == cls.__module__]
    found = [field for base in inherited for field in _fields(base)]
    for node in _body(_parsed(cls)):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            default = ast.get_source_segment(source, node.value) or "" if node.value else ""
            if isinstance(node.value, ast.Call) and ast.unparse(node.value.func) in (
                "field",
                "msgspec.field",
            ):
                default = _made(cls, node.target.id)
            comment = comments.get(node.end_lineno or 0, "").partition("  noqa")[0]
            found.append(Field(node.target.id, ast.unparse(node.annotation), _flat(default), comment))
    return found


def _made(cls: Any, name: str) -> str:
    """The value that a default factory makes."""
    try:
        return _value(getattr(cls(), name))
    except TypeError:
        return "…"


def _body(tree: ast.Module) -> list[ast.stmt]:
    return tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []


def _parsed(thing: Any) -> ast.Module:
    return ast.parse(textwrap.dedent(inspect.getsource(thing)))


def _codes(names: set[str]) -> dict[str, list[str]]:
    """Codes that are given where an error is made, by the name of its class."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "src" / "meantime").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
                for keyword in node.keywords:
                    if keyword.arg == "code" and isinstance(keyword.value, ast.Constant):
                        found.setdefault(node.func.id, []).append(str(keyword.value.value))
    return {name: sorted(set(codes)) for name, codes in found.items()}


def _is_error(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, meantime.MeantimeError)


def _lineage(cls: type) -> list[type]:
    """Its own errors, from itself up to the root: a table sorted by this shows families together."""
    return [one for one in cls.__mro__ if _is_error(one)]


# -- words


def _signature(name: str, thing: Callable[..., Any], *, result: bool = True) -> str:
    found = inspect.signature(thing)
    words: list[str] = []
    parameters = [one for one in found.parameters.values() if one.name not in ("self", "cls")]
    last: Any = None
    for one in parameters:
        if last is not None and last.kind is one.POSITIONAL_ONLY is not one.kind:
            words.append("/")
        if one.kind is one.KEYWORD_ONLY and (
            last is None or last.kind not in (one.KEYWORD_ONLY, one.VAR_POSITIONAL)
        ):
            words.append("*")
        words.append(_parameter(one))
        last = one
    if last is not None and last.kind is last.POSITIONAL_ONLY:
        words.append("/")
    kind = _annotation(found.return_annotation) if result and not inspect.isclass(thing) else ""
    after = f" -> {kind}" if kind else ""
    before = "await " if inspect.iscoroutinefunction(thing) else ""
    before = "async for … in " if inspect.isasyncgenfunction(thing) else before
    line = f"{before}{name}({', '.join(words)}){after}"
    if len(line) <= WIDTH:
        return line
    inner = "".join(f"    {word},\n" for word in words)
    return f"{before}{name}(\n{inner}){after}"


def _parameter(one: inspect.Parameter) -> str:
    stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
    kind = _annotation(one.annotation)
    text = stars + one.name + (f": {kind}" if kind else "")
    if one.default is one.empty:
        return text
    return f"{text} = {_value(one.default)}" if kind else f"{text}={_value(one.default)}"


def _annotation(kind: Any) -> str:
    if kind in (inspect.Parameter.empty, inspect.Signature.empty):
        return ""
    text = kind if isinstance(kind, str) else inspect.formatannotation(kind)
    return text.strip("'\"").replace("'", '"')


def _value(default: Any) -> str:
    text = repr(default)
    return "…" if " at 0x" in text or text.startswith("<") else text.replace("'", '"')


def _result(fn: Callable[..., Any]) -> str:
    return _annotation(inspect.signature(fn).return_annotation) or "Any"


def _doc(thing: Any) -> str:
    """Its own docstring: not one that it inherits, nor the one that a named tuple makes up."""
    doc = getattr(thing, "__doc__", None) or ""
    return "" if doc.startswith(f"{thing.__name__}(") else inspect.cleandoc(doc)


def _line(thing: Any) -> str:
    return _flat(_doc(thing))


def _flat(text: str) -> str:
    return " ".join(text.split())


def _below(text: str) -> str:
    """Indented under a signature: one paragraph each, and one for each `name: meaning` line."""
    paragraphs: list[str] = []
    for block in text.split("\n\n"):
        for line in block.splitlines():
            if paragraphs and line is not block.splitlines()[0] and not re.match(r"\w+: ", line):
                paragraphs[-1] += " " + line.strip()
            else:
                paragraphs.append(line.strip())
    fill = textwrap.TextWrapper(
        WIDTH, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False, break_long_words=False
    )
    return "".join("\n" + fill.fill(paragraph) for paragraph in paragraphs if paragraph)


def _block(entries: list[str], *, gap: bool = True) -> str:
    """A `text` block: tests/meta/test_docs.py runs those marked as Python."""
    return "```text\n" + ("\n\n" if gap else "\n").join(entries) + "\n```\n"


def _table(head: str, rows: Iterable[tuple[str, ...]]) -> str:
    heads = [word.replace("_", " ") for word in head.split()]
    lines = [heads, ["---"] * len(heads), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


if __name__ == "__main__":
    PAGE.write_text(write(), "utf-8")
