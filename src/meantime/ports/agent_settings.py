"""The settings of an agent, each with its constraint: one place says it, for Python and the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Any, TypeAlias, cast
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct, structs

from meantime.kernel.budgets import Budget
from meantime.kernel.constraints import (
    DEPTH,
    TIMEOUT,
    Constraint,
    constraints_of,
    one_of,
    or_minus_one,
    seconds,
    shown,
    whole,
)
from meantime.kernel.errors import InvalidInput
from meantime.kernel.model import Json

RUNNERS = ("acp", "opencode", "cli", "python")


# -- what each setting must be


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and "\0" not in value


def _are_words(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(map(_is_text, cast("list[Any]", value)))


def _are_tools(value: Any) -> bool:
    return value is None or _are_words(value)


def _are_variables(value: Any) -> bool:
    found = cast("Mapping[Any, Any]", value)
    return isinstance(value, Mapping) and all(map(_is_text, (*found, *found.values())))


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping) and all(map(_is_text, cast("Mapping[Any, Any]", value)))


def _is_url(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        parts = urlsplit(value)
        return not value or (parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0)
    except ValueError:  # a port that is no number, half an IPv6 address
        return False


def _is_timeout(value: Any) -> bool:
    return value is None or TIMEOUT.fits(value)


def _is_budget(value: Any) -> bool:
    """Its values are checked one by one, so that a wrong one can be named."""
    return isinstance(value, Mapping | Budget)


Text: TypeAlias = Annotated[str, Constraint("a text", _is_text)]
Texts: TypeAlias = Annotated[tuple[str, ...], Constraint("a list of texts", _are_words)]
Seconds: TypeAlias = Annotated[float, seconds()]
BUDGET = cast("dict[str, Constraint]", constraints_of(Budget))
TABLE = Constraint(f"a table of {', '.join(BUDGET)}", _is_budget)
RUNNER = Constraint(", ".join(f'"{name}"' for name in RUNNERS[:-1]) + ' or "python"', one_of(*RUNNERS).fits)
VARIABLES = Constraint("a table of names, each with a text", _are_variables)
URL = Constraint("a URL that begins with http:// or https://", _is_url)
TOOLS = Constraint("a list of names; an empty one is none", _are_tools)
MAX_TIME = Constraint(TIMEOUT.must, _is_timeout)
Repeats: TypeAlias = Annotated[int, Constraint("a whole number from 0 up, or -1 for never", whole(-1).fits)]
OPTIONS = Constraint("a table", _is_table)
AnswerTime: TypeAlias = Annotated[
    float, or_minus_one(seconds(), "a number of seconds from 0 up, or -1 for ever")
]
Otherwise: TypeAlias = Annotated[str, one_of("ask", "allow", "deny")]
SILENCE = or_minus_one(seconds(), "a number of seconds from 0 up, or -1 for never")


class AgentSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One agent as it is configured: `[agents.NAME]`, or `Meantime.open(…, agents={"NAME": …})`."""

    runner: Annotated[str, RUNNER]  # "acp", "opencode", "cli", "python"
    description: Text = ""  # for the model that chooses an agent
    command: Texts = ()  # acp, cli, opencode: the program and its arguments
    env: Annotated[dict[str, str], VARIABLES] = {}  # more of its environment
    inherit: Texts = ()  # names of our own variables that it gets, beside PATH, HOME and LANG
    cwd: Text = ""  # where it works; else where its task was started
    url: Annotated[str, URL] = ""  # opencode: a server that runs already
    profile: Text = ""  # acp, cli: whose habits it has (goose, claude, codex, …); else known by its command
    agent: Text = ""  # opencode: its own agent of that name; python: "module:object"
    model: Text = ""  # "provider/model", where the host lets us choose
    instructions: Text = ""  # put before the first prompt
    tools: Annotated[tuple[str, ...] | None, TOOLS] = None  # None: all that it has; (): none
    allow: Texts = ()  # permissions that are given by rule, by tool ("*" is any)
    deny: Texts = ()  # and refused
    otherwise: Otherwise = "ask"  # or "allow", "deny": permissions that no rule names
    answer_within: AnswerTime = 900.0  # seconds; a question without an answer by then is refused
    timeout: Annotated[float | None, MAX_TIME] = None  # seconds, where the start names none
    depth: Annotated[int, DEPTH] = 0  # how deep what it starts may go: 0 is that it cannot start anything
    budget: Annotated[Budget, TABLE] = Budget()  # of one run
    tree: Annotated[Budget, TABLE] = Budget()  # of one run and all that it has started
    last_turn: Seconds = 30.0  # seconds to hand in what it has, before a timeout or a limit; 0: none
    repeats: Repeats = 12  # the same call with the same arguments so often in a row is a loop; -1: never
    stall: Annotated[float, SILENCE] = 300.0  # seconds of silence after which it is watched; -1: never
    on_stall: Annotated[str, one_of("warn", "stop")] = "warn"  # or "stop"
    options: Annotated[dict[str, Json], OPTIONS] = {}  # what only its host knows


KINDS = cast("dict[str, Constraint]", constraints_of(AgentSettings))
COMMANDS = {"acp": '["goose", "acp"]', "cli": '["codex"]'}
DEFAULTS = AgentSettings(runner="")


# -- settings as they are given


class Unfit(InvalidInput):
    """`key` is the setting, such as "budget.turns"; `says` is what is wrong with it, as the rest of a
    sentence."""

    def __init__(self, who: str, key: str, says: str, hint: str) -> None:
        super().__init__(f"{key} of {who} {says}", hint=hint)
        self.key = key
        self.says = says


def settled(given: Mapping[str, Any], who: str = "an agent", *, there: bool = False) -> AgentSettings:
    """Raises Unfit. `there`: the agent itself was given, so nothing needs to say where it is."""
    for name, value in given.items():
        _known(who, name, KINDS)
        if not KINDS[name].fits(value):
            raise _wrong(who, name, KINDS[name], value, getattr(DEFAULTS, name))
        if KINDS[name] is TABLE and isinstance(value, Mapping):
            _check_budget(who, name, cast("Mapping[str, Any]", value))
        elif isinstance(value, Budget):
            _check_budget(who, name, structs.asdict(value))
    if "runner" not in given:
        raise Unfit(who, "runner", "is missing.", f"It must be {KINDS['runner'].must}.")
    settings = msgspec.convert({name: _plain(value) for name, value in given.items()}, AgentSettings)
    if not there:
        _check_place(who, settings)
    return settings


def _check_budget(who: str, name: str, given: Mapping[str, Any]) -> None:
    for key, value in given.items():
        _known(who, key, BUDGET, f"{name}.")
        if not BUDGET[key].fits(value):
            raise _wrong(who, f"{name}.{key}", BUDGET[key], value, getattr(Budget(), key))


def _check_place(who: str, settings: AgentSettings) -> None:
    """Where it is found; what is there, its host looks at when it is started."""
    if settings.runner in COMMANDS and not settings.command:
        hint = f"Write command = {COMMANDS[settings.runner]}."
        raise Unfit(who, "command", f'is missing: an agent of runner "{settings.runner}" is a program.', hint)
    module, _, inside = settings.agent.partition(":")
    if settings.runner == "python" and not (module and inside):
        says = f"must name an object, not {shown(settings.agent)}." if settings.agent else "is missing."
        raise Unfit(who, "agent", says, 'Write agent = "module:object".')


def _known(who: str, name: object, names: Mapping[str, Constraint], prefix: str = "") -> None:
    if name in names:
        return
    near = get_close_matches(str(name), list(names), n=1, cutoff=0.5)
    hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(names)}."
    if near and prefix:  # few enough to name them all
        hint += f" There are: {', '.join(names)}."
    raise Unfit(who, f"{prefix}{name}", "is not a setting.", hint)


def _wrong(who: str, key: str, kind: Constraint, value: Any, default: Any) -> Unfit:
    simple = isinstance(default, int | float | str) and default != ""
    hint = f"The default is {shown(default)}." if simple else "Or leave it out."
    if key == "runner":
        hint = "It says who holds the agent's session."
    return Unfit(who, key, f"must be {kind.must}, not {shown(value)}.", hint)


def _plain(value: Any) -> Any:
    """Any mapping as the dict that msgspec knows."""
    return dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else value
