"""The rules for an agent's settings. One place says it, for Python and for the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec
from msgspec import structs

from meantime.kernel.budgets import Budget
from meantime.kernel.constraints import (
    DEPTH,
    LONGEST,
    TIMEOUT,
    Constraint,
    one_of,
    or_minus_one,
    seconds,
    shown,
    whole,
)
from meantime.kernel.errors import InvalidInput

from .session import AgentSettings

RUNNERS = ("acp", "opencode", "cli", "python")


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


# -- what each must be


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


def _is_amount(value: Any) -> bool:
    return type(value) in (int, float) and (0 <= value <= LONGEST or value == -1)


def _is_budget(value: Any) -> bool:
    """Its values are checked one by one, so that a wrong one can be named."""
    return isinstance(value, Mapping | Budget)


TEXT = Constraint("a text", _is_text)
WORDS = Constraint("a list of texts", _are_words)
AMOUNT = Constraint("a number from 0 up, or -1 for no limit", _is_amount)
NUMBER = Constraint("a whole number from 0 up, or -1 for no limit", whole(-1).fits)
BUDGET = {"turns": NUMBER, "tool_calls": NUMBER, "tokens": NUMBER, "cost": AMOUNT, "seconds": AMOUNT}
TABLE = Constraint(f"a table of {', '.join(BUDGET)}", _is_budget)

KINDS = {
    "runner": Constraint(
        ", ".join(f'"{name}"' for name in RUNNERS[:-1]) + ' or "python"', one_of(*RUNNERS).fits
    ),
    "description": TEXT,
    "command": WORDS,
    "env": Constraint("a table of names, each with a text", _are_variables),
    "inherit": WORDS,
    "cwd": TEXT,
    "url": Constraint("a URL that begins with http:// or https://", _is_url),
    "profile": TEXT,
    "agent": TEXT,
    "model": TEXT,
    "instructions": TEXT,
    "tools": Constraint("a list of names; an empty one is none", _are_tools),
    "allow": WORDS,
    "deny": WORDS,
    "otherwise": one_of("ask", "allow", "deny"),
    "answer_within": or_minus_one(seconds(), "a number of seconds from 0 up, or -1 for ever"),
    "timeout": Constraint(TIMEOUT.must, _is_timeout),
    "depth": DEPTH,
    "budget": TABLE,
    "tree": TABLE,
    "last_turn": seconds(),
    "repeats": Constraint("a whole number from 0 up, or -1 for never", whole(-1).fits),
    "stall": or_minus_one(seconds(), "a number of seconds from 0 up, or -1 for never"),
    "on_stall": one_of("warn", "stop"),
    "options": Constraint("a table", _is_table),
}
COMMANDS = {"acp": '["goose", "acp"]', "cli": '["codex"]'}
DEFAULTS = AgentSettings(runner="")
