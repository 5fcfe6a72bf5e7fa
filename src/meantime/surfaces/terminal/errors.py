"""Errors, in the two lines that people see; and the exit codes, which scripts rely on."""

from __future__ import annotations

OK = 0
FAILED = 1
USAGE = 2
NOT_FOUND = 3  # or ambiguous
NOT_ALLOWED = 4
NO_DAEMON = 5
TASK_FAILED = 6
CANCELLED = 7
STILL_RUNNING = 8
TIMED_OUT = 124
INTERRUPTED = 130
BROKEN_PIPE = 141


class CliError(Exception):
    """`meantime: <what>`, then the hint, then the process ends with `exit_code`."""

    def __init__(self, what: str, hint: str = "", exit_code: int = FAILED) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint
        self.exit_code = exit_code


class DaemonRefused(CliError):
    """The daemon's no: an HTTP status and the JSON that came with it."""

    def __init__(self, status: int, body: dict[str, object]) -> None:
        what = str(body.get("error") or f"The daemon answered {status}.")
        super().__init__(what, str(body.get("hint") or ""), _exit_code(status, str(body.get("code") or "")))
        self.status = status
        self.body = body
        self.code = str(body.get("code") or "")


class DaemonGone(CliError):
    """The daemon is not there, or went away before its answer was whole."""

    def __init__(self, what: str = "The daemon went away.", hint: str = "See `meantime status`.") -> None:
        super().__init__(what, hint, NO_DAEMON)


_BY_CODE = {
    "ambiguous": NOT_FOUND,
    "not_resumable": USAGE,  # a command has nothing to go on with, as it has nothing to fork
    "still_running": STILL_RUNNING,
    "task_failed": TASK_FAILED,
    "task_timed_out": TASK_FAILED,
    "task_lost": TASK_FAILED,
    "task_cancelled": CANCELLED,
}
_BY_STATUS = {400: USAGE, 401: NOT_ALLOWED, 403: NOT_ALLOWED, 404: NOT_FOUND, 413: USAGE}


def _exit_code(status: int, code: str) -> int:
    return _BY_CODE.get(code) or _BY_STATUS.get(status, FAILED)
