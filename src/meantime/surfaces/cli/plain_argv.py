"""Ordinary command lines, read without click.

Everything that is not ordinary is declined, and left to click: an unknown or incomplete option, a value that
is not one, a call for help. So errors are click's, and there is one judge of what is right. For everything
that is not declined, click gives the same: tests/cli/test_plain_argv.py compares the two.
"""

from __future__ import annotations

TYPE_CHECKING = False  # to load `typing` takes 2 ms
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from .verb import Parameter, Verb


class NotPlain(ValueError):
    """Not an ordinary call."""


def read(verb: Verb, argv: Sequence[str]) -> dict[str, Any] | None:
    """The parameters for the verb's body, by name; None: ask click."""
    try:
        found, rest = _options(verb, iter(argv))
        return {**_defaults(verb), **found, **_arguments(verb, rest)}
    except ValueError:  # from a type, too
        return None


def _options(verb: Verb, words: Iterator[str]) -> tuple[dict[str, Any], list[str]]:
    """The values of the options, and the words that belong to no option."""
    known = {flag: one for one in verb.parameters for flag in one.flags}
    mixed = verb.settings.get("allow_interspersed_args", True)  # whether options may follow arguments
    found: dict[str, Any] = {}
    rest: list[str] = []
    for word in words:
        if word == "--":
            rest.extend(words)
        elif word == "-" or not word.startswith("-"):
            rest.append(word)
            if not mixed:
                rest.extend(words)
        elif word.startswith("--"):
            flag, equals, value = word.partition("=")
            one = _known(known, flag)
            if not _is_flag(one):
                _note(found, one, value if equals else _next(words))
            elif equals:
                raise NotPlain
            else:
                _set(found, one)
        else:
            _letters(word[1:], known, found, words)
    return found, rest


def _letters(letters: str, known: dict[str, Parameter], found: dict[str, Any], words: Iterator[str]) -> None:
    """`-n5`, `-n 5`, `-aq`, `-aqn5`."""
    while letters:
        one, letters = _known(known, f"-{letters[0]}"), letters[1:]
        if not _is_flag(one):
            _note(found, one, letters or _next(words))
            return
        _set(found, one)


def _arguments(verb: Verb, rest: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in verb.parameters:
        if not one.is_argument:
            continue
        required = one.settings.get("required", one.settings.get("nargs") != -1)
        if required and not rest:
            raise NotPlain
        if one.settings.get("nargs") == -1:  # always the last
            found[one.dest] = tuple(_converted(one, word) for word in rest)
            rest = []
        else:
            found[one.dest] = _converted(one, rest.pop(0)) if rest else None
    if rest:
        raise NotPlain
    return found


def _defaults(verb: Verb) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in verb.parameters:
        default = one.settings.get("default")
        if "flag_value" in one.settings and default is not None:
            raise NotPlain  # versions of click differ in what this means
        if one.settings.get("multiple"):
            found[one.dest] = ()
        elif one.settings.get("is_flag"):
            found[one.dest] = False
        else:
            found[one.dest] = _converted(one, default) if isinstance(default, str) else default
    return found


def _known(known: dict[str, Parameter], flag: str) -> Parameter:
    if flag not in known:
        raise NotPlain
    return known[flag]


def _is_flag(one: Parameter) -> bool:
    return bool(one.settings.get("is_flag")) or "flag_value" in one.settings


def _next(words: Iterator[str]) -> str:
    """The value of an option. One that looks like an option may be one, and its value forgotten."""
    word = next(words, "-")
    if word.startswith("-"):
        raise NotPlain
    return word


def _set(found: dict[str, Any], one: Parameter) -> None:
    found[one.dest] = one.settings.get("flag_value", True)


def _note(found: dict[str, Any], one: Parameter, said: str) -> None:
    value = _converted(one, said)
    found[one.dest] = (*found.get(one.dest, ()), value) if one.settings.get("multiple") else value


def _converted(one: Parameter, said: str) -> Any:
    kind = one.settings.get("type")
    return said if kind is None else kind.read(said)
