"""The arguments of Shell(...), checked before anything is recorded."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any, cast

from meantime.kernel.argument_checks import as_bytes, check_all, check_map, check_path, check_unicode, shown
from meantime.kernel.errors import InvalidInput
from meantime.kernel.plain_text import plain

MAX_STDIN = 1 << 20  # bytes that are handed over with the order; more is sent later
MAX_COMMAND = 1 << 20
_LINE = re.compile(r"\s|[|&;<>$`]")  # what the name of a program hardly has, and a line for a shell does


def command(value: Any) -> str | list[str]:
    if isinstance(value, str):
        parts: list[Any] = [value]
    elif isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        parts = check_all(cast("Sequence[Any]", value), object, "The parts of a command")
    else:
        raise InvalidInput(
            f"Shell(...) takes a text or a list of texts, not {type(value).__name__}.",
            hint='For example Shell("make test") or Shell(["pytest", "-q"]).',
        )
    texts = [text(part, "Every part of a command") for part in parts]
    if not texts or not texts[0].strip():
        raise InvalidInput("Shell(...) was given no command.", hint='For example Shell("make test").')
    if sum(map(len, texts)) > MAX_COMMAND:
        raise InvalidInput(f"The command has over {MAX_COMMAND} characters.", hint="Use a script file.")
    if (
        not isinstance(value, str)
        and len(texts) == 1
        and _LINE.search(texts[0])
        and not os.path.exists(texts[0])
    ):
        raise InvalidInput(
            f"Shell([{shown(texts[0])}]) names one program with that whole name.",
            hint=f"A line for the shell is a text: Shell({shown(texts[0])}). A list has one word an entry.",
        )
    return texts[0] if isinstance(value, str) else texts


def text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{what} must be text, not {type(value).__name__}.", hint="Perhaps str(…) of it?")
    value = plain(value)  # not a kind of text, such as a member of an enum: orders hold plain ones
    if "\0" in value:
        raise InvalidInput(f"{what} cannot hold a NUL character.", hint="No program could be given it.")
    return check_unicode(value, what)


def folder(cwd: Any) -> str:
    """Said now and not when it starts: it may be queued, and this process may be elsewhere by then."""
    if cwd is None:
        try:
            return os.getcwd()
        except OSError:
            raise InvalidInput("The current folder is gone.", hint="Name one with cwd=…") from None
    return os.path.abspath(text(check_path(cwd, "cwd"), "cwd"))


def environment(env: Any) -> dict[str, str | None] | None:
    if env is None:
        return None
    checked: dict[str, str | None] = {}
    for name, value in check_map(env, "env").items():
        name = text(name, "The name of a variable")
        if not name or "=" in name:
            raise InvalidInput(f"{shown(name)} cannot be the name of an environment variable.")
        checked[name] = None if value is None else text(value, f"The value of {name}")
    return checked


def stdin(value: Any) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, str):
        value = as_bytes(value)
    if not isinstance(value, bytes):
        raise InvalidInput(f"stdin takes text or bytes, not {type(value).__name__}.")
    if len(value) > MAX_STDIN:
        raise InvalidInput(
            f"stdin has {len(value)} bytes; at most {MAX_STDIN} go with the order.",
            hint="Use open_stdin=True and send the rest, or redirect a file.",
        )
    return bytes(value)


def size(value: object) -> tuple[int, int]:
    """The size of a terminal."""
    numbers = check_all(cast("list[Any]", value), object, "size") if isinstance(value, tuple | list) else []
    if len(numbers) != 2 or not all(type(number) is int and 0 < number < 10_000 for number in numbers):
        raise InvalidInput(
            f"size={shown(cast('object', value))} is not the size of a terminal.",
            hint="Give (rows, columns), such as (24, 80).",
        )
    return cast("tuple[int, int]", tuple(numbers))
