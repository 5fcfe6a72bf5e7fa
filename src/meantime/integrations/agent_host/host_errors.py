"""The errors that session hosts share: refusals of a session, and failures that end a turn."""

from __future__ import annotations

import signal
import traceback

from meantime.execution.containment import words
from meantime.kernel.errors import MeantimeError, Refused
from meantime.kernel.model import Failed
from meantime.kernel.provider_errors import FINAL, RetryAdvice, judge
from meantime.ports.session import Turned

FORKED_BY_CONTEXT = "Give the conversation as context=[…] in its place."


# -- refusals of a session


def cannot_fork(agent: str) -> Refused:
    return Refused(f"{agent} cannot copy a session.", code="cannot_fork", hint=FORKED_BY_CONTEXT)


def fork_source_gone() -> Refused:
    return Refused("The session to fork is gone.", code="session_gone")


def no_history(whose: str) -> Refused:
    return Refused(f"{whose} history is kept with its task.", code="no_history")


# -- ends of a turn


def failed(error: Failed, advice: RetryAdvice = FINAL) -> Turned:
    """`advice`: whether another try may help, as `kernel.provider_errors.judge` says."""
    return Turned(error=error, retryable=advice.passes, rate_limited=advice.limited, retry_after=advice.after)


def refused(problem: MeantimeError) -> Turned:
    return failed(Failed(str(problem), problem.code))


def raised(problem: Exception, code: str) -> Turned:
    """An error in an agent's own code, which its author needs the traceback of. Ours keep their codes."""
    trace = "".join(traceback.format_exception(problem))
    if isinstance(problem, MeantimeError):
        return failed(Failed(str(problem), problem.code, trace))
    return failed(Failed(words(problem), code, trace))


def model_failed(problem: BaseException) -> Turned:
    """An error of a framework's model: its provider's may pass. A status is where most clients have it."""
    away = isinstance(problem, ConnectionError | TimeoutError)
    status = 503 if away else getattr(problem, "status_code", None) or getattr(problem, "code", None)
    advice = judge(str(problem), status if isinstance(status, int) else 0)
    return failed(Failed(str(problem) or type(problem).__name__, "model_error"), advice)


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
