"""From a task to the order that a shim carries out: program, arguments, environment, limits."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any, cast

from meantime.kernel.model import Failed, Task
from meantime.ports.runner import Assignment
from meantime.system.event_spool import VARIABLE
from meantime.system.platform import cgroup
from meantime.system.process_marks import unmarked
from meantime.system.program_search import find_program

from . import orphan_processes
from .exit_report import no_folder, no_program
from .shim import cells

SHELL = "/bin/sh"
TASK = "MEANTIME_TASK"  # whoever starts work from inside a command says so with it
SLACK = 30.0  # seconds after its timeout at which a shim stops a command that no owner has stopped
BLOCK = 512  # bytes: what `ulimit -f` counts in


class Unstartable(Exception):
    """Nothing was started, and this is why."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed.message)
        self.failed = failed


def make(assignment: Assignment, base: Path, settings: dict[str, Any]) -> dict[str, Any]:
    given = cast("dict[str, Any]", assignment.task.work.input)
    environment = _environment(assignment, base)
    program, arguments = _program(given, environment)
    limits = cast("dict[str, int]", given.get("limits", {}))
    if set(limits) - {"processes"}:
        arguments = [SHELL, "-c", _ulimits(limits), SHELL, program, *arguments[1:]]
        program = SHELL
    stdin = assignment.kwargs.get("stdin", given.get("stdin"))
    opens = bool(given.get("open_stdin"))
    timeout = assignment.task.run.timeout
    return {
        **settings,
        "base": str(base),
        "name": base.name.encode(),
        "program": program,
        "argv": arguments,
        "env": environment,
        "cwd": given["cwd"],
        "stdin": b"" if stdin is None and opens else stdin.encode() if isinstance(stdin, str) else stdin,
        "open_stdin": opens,
        "merge": bool(given.get("merge")),
        "pty": bool(given.get("pty")),
        "size": tuple(given.get("size") or (24, 80)),
        "leftovers": given.get("leftovers", "keep"),
        "timeout": 0.0 if timeout is None else timeout + SLACK,
        **_group(process_limit(assignment.task), base),
    }


def process_limit(task: Task) -> int | None:
    return cast("dict[str, Any]", task.work.input).get("limits", {}).get("processes")


def _environment(assignment: Assignment, base: Path) -> dict[str, str]:
    callers = cast("dict[str, str] | None", assignment.kwargs.get("environment"))
    environment = dict(os.environ if callers is None else callers)
    environment[TASK] = assignment.task.id  # what it starts is its own
    environment.pop(VARIABLE, None)  # of the command at a worker that handed this one in
    changes = cast("dict[str, str | None]", assignment.kwargs.get("env") or {})
    for variable, value in changes.items():
        if value is None:
            environment.pop(variable, None)
        else:
            environment[variable] = value
    environment = unmarked(environment)
    environment[cells.MARK] = orphan_processes.mark_of(base)
    return environment


def _program(given: dict[str, Any], environment: dict[str, str]) -> tuple[str, list[str]]:
    command, cwd = given["command"], str(given["cwd"])
    if not os.path.isdir(cwd):
        raise Unstartable(no_folder(cwd, errno.ENOTDIR if os.path.exists(cwd) else errno.ENOENT))
    if isinstance(command, str):
        return SHELL, [SHELL, "-c", command]
    name = str(command[0])
    found = os.path.join(cwd, name) if "/" in name else find_program(name, environment)
    if found is None:
        raise Unstartable(no_program(name, errno.ENOENT))
    return found, list(command)


def _ulimits(limits: dict[str, int]) -> str:
    """The shell sets both the soft and the hard limit, then makes room for the command."""
    flags = (
        ("v", -(-limits.get("address_space", 0) // 1024)),
        ("t", limits.get("cpu_seconds", 0)),
        ("n", limits.get("open_files", 0)),
        ("f", -(-limits.get("file_size", 0) // BLOCK)),
    )
    settings = [f"ulimit -{flag} {value} || exit 126" for flag, value in flags if value]
    return "; ".join([*settings, 'exec "$@"'])


def _group(processes: int | None, base: Path) -> dict[str, str | int]:
    if processes is None:
        return {"cgroup": "", "cgroup_home": "", "processes": 0}
    try:
        home, group = cgroup.make(base, processes + 1)  # the shim is in it until the command is, too
    except OSError as problem:
        text = f"The number of processes cannot be limited: {problem}."
        raise Unstartable(Failed(text, "no_cgroup")) from None
    return {"cgroup": str(group), "cgroup_home": str(home), "processes": processes}
