"""`Shell("make test")`: a command to hand off. A list is started as it is; a text goes to /bin/sh."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from msgspec import Struct, structs

from meantime.kernel.constraints import Constraint, check_choice, check_fields, check_flag
from meantime.kernel.errors import InvalidInput
from meantime.kernel.model import Json, Work
from meantime.kernel.plain_text import cut
from meantime.kernel.work import OrderOf

from . import command_validation

NAME = 200  # characters of the command that name it


def _is_most(value: Any) -> bool:
    return type(value) is int and value > 0


_MOST = Constraint(
    "a whole number above 0",
    _is_most,
    error="{name}={value} is not a limit.",
    hint="Give a whole number above 0.",
)


class ProcessLimits(Struct, frozen=True, kw_only=True):
    """Limits of a command; None is no limit."""

    address_space: Annotated[int | None, _MOST] = None  # bytes of memory that it may map
    cpu_seconds: Annotated[int | None, _MOST] = None  # of the processor's time, for each of its processes
    open_files: Annotated[int | None, _MOST] = None  # at once
    file_size: Annotated[int | None, _MOST] = None  # bytes of the biggest file that it may write
    processes: Annotated[int | None, _MOST] = None  # in its whole tree; counted by a writable cgroup


class Shell:
    """A command, with where and how it is started. Values of environment variables are never stored.

    env: added to this process's environment; None as a value takes a variable out.
    stdin: text or bytes for it; without it, it reads nothing. `open_stdin` keeps it open for `send`.
    merge: stderr goes where stdout goes, so that their order is exact.
    leftovers: "keep" lets processes that the command leaves behind go on, and lists them; "kill" ends them.
    """

    __slots__ = (
        "command",
        "cwd",
        "env",
        "leftovers",
        "limits",
        "merge",
        "open_stdin",
        "pty",
        "size",
        "stdin",
    )

    _runs_plainly = True  # read by toolsets, of this class alone: what is made from it may differ

    def __init__(
        self,
        command: str | Sequence[str],
        *,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str | None] | None = None,
        stdin: str | bytes | None = None,
        open_stdin: bool = False,
        pty: bool = False,
        size: tuple[int, int] = (24, 80),
        merge: bool = False,
        leftovers: str = "keep",
        limits: ProcessLimits | None = None,
    ) -> None:
        self.command = command_validation.command(command)
        self.cwd = command_validation.folder(cwd)
        self.env = command_validation.environment(env)
        self.stdin = command_validation.stdin(stdin)
        self.open_stdin = check_flag(open_stdin, "open_stdin")
        self.pty = check_flag(pty, "pty")
        self.size = command_validation.size(size)
        self.merge = check_flag(merge, "merge")
        self.leftovers = check_choice(leftovers, "leftovers", ("keep", "kill"))
        self.limits = _limits(limits)

    @property
    def line(self) -> str:
        """The command as one would type it."""
        return self.command if isinstance(self.command, str) else shlex.join(self.command)

    def order(self) -> OrderOf[Json]:
        """The work as the runtime stores it."""
        stored: dict[str, Any] = {"command": self.command, "cwd": self.cwd}
        faithful = True
        if self.env is not None:
            stored["env"] = sorted(self.env)
            faithful = not self.env
        if self.stdin is not None:
            try:
                stored["stdin"] = self.stdin.decode()
            except UnicodeDecodeError:
                stored["stdin_bytes"], faithful = len(self.stdin), False
        for name in ("open_stdin", "pty", "merge"):
            if getattr(self, name):
                stored[name] = True
        if self.pty:
            stored["size"] = list(self.size)
        if self.leftovers != "keep":
            stored["leftovers"] = self.leftovers
        if self.limits is not None:
            stored["limits"] = {n: v for n, v in structs.asdict(self.limits).items() if v is not None}
        name = cut(" ".join(self.line.split()), NAME)
        return OrderOf(
            Work("shell", name, stored, faithful), kwargs={"env": self.env or {}, "stdin": self.stdin}
        )

    def __repr__(self) -> str:
        return f"Shell({self.command!r})"


def _limits(limits: Any) -> ProcessLimits | None:
    if limits is None:
        return None
    if not isinstance(limits, ProcessLimits):
        raise InvalidInput("limits takes ProcessLimits(...).")
    return check_fields(limits)
