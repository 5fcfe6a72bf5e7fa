"""How a turn ended: by what the program said, and by how it went."""

from __future__ import annotations

import re
import signal

from meantime.kernel.model import Failed
from meantime.kernel.payloads import clean
from meantime.ports.commands import Ending
from meantime.ports.session import Turned

from .dialect import Dialect
from .hearing import Hearing

MOST = 4_000  # characters of an error
LIMITED = {429, 529}
FAULTS = {408, 409, 425, 500, 502, 503, 504}
_LIMITED = re.compile(r"rate.?limit|too many requests|overloaded", re.IGNORECASE)
_FAULTS = re.compile(
    r"internal server error|bad gateway|service unavailable|gateway time|stream disconnected|server_error"
    r"|connection (error|reset|refused|closed)|ECONNRESET|ECONNREFUSED|ETIMEDOUT|EAI_AGAIN|socket hang up"
    r"|fetch failed|error sending request|network error"
    r"|database is locked",  # OpenCode, where two make it at once
    re.IGNORECASE,
)
_SPENT = re.compile(r"quota|billing|credit balance|usage limit|payment", re.IGNORECASE)
_STATUS = re.compile(r"(?:status|error|code|http)\D{0,16}\b([45]\d\d)\b", re.IGNORECASE)
_AFTER = re.compile(
    r"(?:retry|try again)[ _-]?(?:after|in)\D{0,4}(\d+(?:\.\d+)?)\s*(ms|s\b|sec|m\b|min|h\b|hour)?",
    re.IGNORECASE,
)
_SECONDS = {"ms": 0.001, "m": 60.0, "min": 60.0, "h": 3600.0, "hour": 3600.0}


def judge(dialect: Dialect, hearing: Hearing, ending: Ending, stderr: str) -> Turned:
    reader = hearing.reader
    if ending.error is not None:
        return Turned(error=ending.error)
    if ending.lost:
        return Turned(lost=ending.lost)
    well = ending.exit_code == 0
    done = reader.done and not reader.error
    if done and (well or (ending.stopped and ending.exit_code is None)):  # it was done, and lingered
        return Turned(text=reader.text)
    if ending.stopped:
        return Turned(stopped=True)
    if reader.error:
        return _failed(dialect, _short(reader.error), ending, reader.status)
    if well and not hearing.whole and reader.text:
        return Turned(text=reader.text)  # the end of it was said while nobody was there, and not kept
    words = _short(stderr) or _short(hearing.noise)
    return _failed(dialect, f"{_how(dialect.name, ending)} {words}".strip(), ending, 0)


def _how(name: str, ending: Ending) -> str:
    if ending.signal is not None:
        try:
            return f"{name} was killed by {signal.Signals(ending.signal).name}."
        except ValueError:
            return f"{name} was killed by signal {ending.signal}."
    if ending.exit_code:
        return f"{name} ended with exit code {ending.exit_code}:"
    return f"{name} ended and did not say that its turn was over."


def _failed(dialect: Dialect, why: str, ending: Ending, status: int) -> Turned:
    if dialect.is_gone(why):
        text = f"{dialect.name} does not have this session any more: {why}"
        return Turned(error=Failed(text, "session_gone"))
    if ending.signal is not None:
        return Turned(error=Failed(why, "signal", signal=ending.signal))
    status = status or _status(why)
    spent = _SPENT.search(why) is not None
    limited = not spent and (status in LIMITED or (not status and _LIMITED.search(why) is not None))
    fault = not spent and (status in FAULTS or (not status and _FAULTS.search(why) is not None))
    code = f"http_{status}" if status else "rate_limited" if limited else "agent_failed"
    return Turned(
        error=Failed(why, code, exit_code=ending.exit_code or None),
        retryable=limited or fault,
        rate_limited=limited,
        retry_after=retry_after(why) if limited or fault else None,
    )


def _status(why: str) -> int:
    found = _STATUS.search(why)
    return int(found[1]) if found else 0


def retry_after(why: str) -> float | None:
    """Seconds, where the provider named them in its words."""
    found = _AFTER.search(why)
    return float(found[1]) * _SECONDS.get((found[2] or "s").lower(), 1.0) if found else None


def _short(text: str) -> str:
    return clean(text).strip()[-MOST:]
