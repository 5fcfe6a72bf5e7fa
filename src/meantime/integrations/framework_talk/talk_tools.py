"""Background work as tools of any framework's agent: its thread's verbs, and functions that may be slow."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from msgspec import Struct

from meantime.conversation.dialect_lookup import OWN, Wording
from meantime.execution.containment import words
from meantime.kernel.argument_checks import as_number, shown
from meantime.kernel.constraints import LONGEST
from meantime.kernel.durations import seconds_of
from meantime.kernel.errors import InvalidInput, MeantimeError, TaskEnded
from meantime.kernel.payloads import as_text, jsonable
from meantime.kernel.plain_text import cut, escape_surrogates, plain
from meantime.kernel.work import Orderable
from meantime.thread import Thread
from meantime.toolset.arguments import decoded, parsed

T = TypeVar("T")
THRESHOLD = 5.0  # seconds that a function may take before it goes on in the background
MOST_ERROR = 2_000  # characters of an error that the model is told
SLOW = (
    "{name} takes longer and goes on in the background as task {id}. You are told when it ends. Do not poll "
    "or wait for it; go on with other work."
)


class Function(Protocol):
    """The result of `@background` on a function."""

    name: str
    description: str

    @property
    def schema(self) -> dict[str, Any]: ...

    @property
    def takes(self) -> type[Struct]: ...

    def check(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None: ...

    def work(self, *args: Any, **kwargs: Any) -> Orderable[Any]: ...


class DeclaredTool(NamedTuple):
    name: str
    description: str
    schema: dict[str, Any]


class ToolAnswer(NamedTuple):
    """The answer for the model."""

    text: str
    is_error: bool = False


class TalkTools:
    """functions: each, with `@background`, is a tool. It answers at once if it is done within `threshold`
        (seconds, or a text such as "5s"), and else goes on in the background, as the same run; with None it
        is always waited for.
    agents: those that may be started, by name, or a mapping that says what each is for; empty is any,
        None is none.
    commands: `Shell`, where the agent may start commands; None is not.
    dialect: the words of the thread's verbs.
    """

    def __init__(
        self,
        thread: Thread,
        functions: Sequence[Function],
        *,
        agents: Sequence[str] | Mapping[str, str] | None = None,
        commands: Callable[..., Orderable[Any]] | None = None,
        threshold: float | str | None = THRESHOLD,
        dialect: Wording = OWN,
    ) -> None:
        _check(thread, functions)
        self.thread = thread
        self._functions = {function.name: function for function in functions}
        self._threshold = _seconds(threshold)
        self.verbs = thread.toolset(dialect, agents=agents, commands=commands)
        _check_agents(thread, agents or ())
        self._declared: list[DeclaredTool] = []
        self._made: list[Any] = []
        self.declare()

    def declare(self) -> list[DeclaredTool]:
        verbs = [DeclaredTool(tool.name, tool.description, tool.schema) for tool in self.verbs.declare()]
        if taken := self._functions.keys() & {tool.name for tool in verbs}:
            raise _same_name(min(taken), "Meantime has a tool of this name")
        return verbs + [
            DeclaredTool(name, one.description, one.schema) for name, one in self._functions.items()
        ]

    def made(self, make: Callable[[DeclaredTool, TalkTools], T]) -> list[T]:
        """The framework's own tools, by its one function: made again only where they have changed."""
        declared = self.declare()
        if declared != self._declared:
            self._declared, self._made = declared, [make(tool, self) for tool in declared]
        return list(self._made)

    async def answer(self, name: str, given: Mapping[str, Any] | str, tool_call_id: str | None) -> ToolAnswer:
        """Performs a call of the model. Never raises for what a model or a function did wrong: the answer
        says it, and the turn continues."""
        if name not in self._functions:
            said = await self.verbs.call(name, given, tool_call_id=tool_call_id)
            return ToolAnswer(said.text, bool(said.code))
        try:
            return ToolAnswer(await self._result(self._functions[name], given, tool_call_id))
        except TaskEnded as problem:  # its hint is for programs
            return _failed(name, problem.message)
        except MeantimeError as problem:
            return ToolAnswer(cut(f"{problem.code}: {problem}", MOST_ERROR), is_error=True)
        except Exception as problem:
            return _failed(name, words(problem))
        except asyncio.CancelledError as problem:
            task = asyncio.current_task()
            if task is None or task.cancelling():  # it is the turn that is cancelled
                raise
            return _failed(name, words(problem))

    async def _result(
        self, function: Function, given: Mapping[str, Any] | str, tool_call_id: str | None
    ) -> str:
        arguments = _arguments(function, given)
        answer = await self.thread.call(
            function.work(**arguments),
            threshold=self._threshold,
            tool_call_id=tool_call_id,
            description=function.name,
        )
        if answer.task is None:
            return as_text(jsonable(answer.result).value)
        return SLOW.format(name=function.name, id=answer.task.id)


def _failed(name: str, text: str) -> ToolAnswer:
    return ToolAnswer(cut(escape_surrogates(f"{name} failed: {text}"), MOST_ERROR), is_error=True)


def _arguments(function: Function, given: Mapping[str, Any] | str) -> dict[str, Any]:
    """The arguments that were given, with the types of the function's annotations."""
    said = decoded(given)
    if not isinstance(said, Mapping):
        raise InvalidInput("The arguments are not an object.")
    names = list(cast("Mapping[str, Any]", said))
    checked = parsed(function.takes, cast("object", said))
    found = {name: getattr(checked, name) for name in names}
    function.check((), found)
    return found


def _check(thread: object, functions: Sequence[object]) -> None:
    if not isinstance(thread, Thread):
        raise InvalidInput(f"{thread!r:.100} is not a thread.", hint='Use mt.thread("conversation-1").')
    for function in functions:
        if not hasattr(function, "work"):
            # Not marked here on the way: what is marked can be started by its name at every door.
            what = f"{function!r:.100} is not a function that can be handed off."
            raise InvalidInput(what, hint="Put @background (from meantime) above it.")
    names = Counter(cast("Function", function).name for function in functions)
    for name, count in names.items():
        if count > 1:
            raise _same_name(name, f"{count} functions have this name")


def _check_agents(thread: Thread, agents: Sequence[str] | Mapping[str, str]) -> None:
    for name in agents:
        try:
            thread._tasks.check_agent(name)  # pyright: ignore[reportPrivateUsage]
        except InvalidInput as problem:
            raise InvalidInput(
                f"agents names {shown(name)}, which this Meantime does not have.",
                hint="Give it to Meantime.open(…, agents={…}), or leave it out here.",
                code=problem.code,
            ) from None


def _same_name(name: str, why: str) -> InvalidInput:
    what = f"The function {name!r:.100} cannot be a tool of the agent: {why}."
    return InvalidInput(what, hint='Give it another name: @background(name="…").')


def _seconds(threshold: object) -> float | None:
    if threshold is None:
        return None
    given = seconds_of(plain(threshold)) if isinstance(threshold, str) else as_number(threshold)
    if given is None or not 0 < given <= LONGEST:
        raise InvalidInput(
            f"threshold={shown(threshold)} is not a time that a function may take.",
            hint='Give seconds above 0, a text such as "5s", or None: it is always waited for.',
        )
    return given
