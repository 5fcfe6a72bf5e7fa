"""Errors of a model's provider: which of them pass, and when to try again. Every host asks here.

The rules are one table, read from the top: the first that fits decides. Examples that every host must judge
in the same way are in tests/integrations/provider_errors.toml.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

LONGEST_WAIT: Final = 3600.0  # seconds; a quota that comes back later than this counts as used up
PAUSES: Final = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0)  # seconds between tries, if the provider names none


class RetryAdvice(NamedTuple):
    """How to go on after an error."""

    passes: bool  # the same request may succeed later: try again
    limited: bool = False  # too many requests at once: the fewer, the better
    after: float | None = None  # seconds until the next try, where the provider named them


FINAL: Final = RetryAdvice(False)
FAULT: Final = RetryAdvice(True)
LIMITED: Final = RetryAdvice(True, limited=True)

# Money is gone: no wait helps, whatever the status says.
_UNPAID = re.compile(
    r"insufficient[_ ]quota|insufficient (credit|balance|fund)|billing[_ ](error|hard)|credit balance"
    r"|payment required",
    re.IGNORECASE,
)
# A quota may be that of a month, or that of a minute: Google calls both so, and names a wait for the second.
_QUOTA = re.compile(r"quota|billing|usage limit|out of credits", re.IGNORECASE)
_STATUSES: Final[dict[int, RetryAdvice]] = {
    408: FAULT,  # request timeout
    409: FAULT,  # conflict: another request was in the way
    425: FAULT,  # too early
    429: LIMITED,
    501: FINAL,  # not implemented
    505: FINAL,  # HTTP version not supported
    529: LIMITED,  # overloaded, as Anthropic says it
}
_WORDS: Final[tuple[tuple[re.Pattern[str], RetryAdvice], ...]] = (
    (re.compile(r"rate.?limit|too many requests|overloaded|RESOURCE_EXHAUSTED", re.IGNORECASE), LIMITED),
    (
        re.compile(
            r"internal server error|server[_ ]error|bad gateway|service unavailable|gateway time"
            r"|ECONNRESET|ECONNREFUSED|ECONNABORTED|ETIMEDOUT|EAI_AGAIN|EPIPE|socket hang up|fetch failed"
            r"|connection (error|reset|refused|closed|aborted|timed out|lost)|stream disconnected"
            r"|error sending request|network error|temporary failure in name resolution"
            r"|database is (locked|busy)",  # OpenCode's own, when two of it start at once
            re.IGNORECASE,
        ),
        FAULT,
    ),
)
# A number is a status only where something says so: "I read 500 lines" has none.
_STATUS = re.compile(
    r"(?:status|error|code|http(?:/[\d.]+)?)[\"']?[\s:=(\[]{1,4}[\"']?([45]\d\d)\b"
    r"|^\W*([45]\d\d)\b"
    r"|\((?:HTTP )?([45]\d\d)\)"
    r"|\b([45]\d\d) (?:too many|internal server|bad gateway|service unavail|gateway time|conflict|too early"
    r"|request time|unauthori|forbidden|not found|bad request|payment|insufficient|rate|overloaded)",
    re.IGNORECASE,
)
_WAIT = re.compile(
    r"(?:retry|try again)[ _-]?(?:after|in|delay)[\s\"':=]{1,4}"
    r"((?:\d+(?:\.\d+)?\s*(?:milliseconds?|ms|hours?|h|minutes?|min|m|seconds?|sec|s)?(?![a-z])[\s,]*){1,4})",
    re.IGNORECASE,
)
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.IGNORECASE)
_UNITS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "": 1.0}


def judge(text: str, status: int = 0, *, after: float | None = None, advised: bool = False) -> RetryAdvice:
    """The meaning of an error of a model's provider.

    Args:
        text: all that is known of the error, the provider's own code and type included.
        status: the HTTP status, if it is known; otherwise it is looked for in the text.
        after: seconds to wait, if they came apart from the text (a Retry-After header).
        advised: the program that reports the error says that another try may help.
    """
    status = status if 400 <= status < 600 else status_in(text)
    after = wait_in(text) if after is None else after
    verdict = _rule(text, status, after, advised=advised)
    return verdict._replace(after=after) if verdict.passes else verdict


def _rule(text: str, status: int, after: float | None, *, advised: bool) -> RetryAdvice:
    if _UNPAID.search(text):
        return FINAL
    if _QUOTA.search(text):
        return LIMITED if after is not None and after <= LONGEST_WAIT else FINAL
    if status in _STATUSES:
        return _STATUSES[status]
    if status >= 500 or advised:
        return FAULT
    if status:
        return FINAL
    return next((verdict for words, verdict in _WORDS if words.search(text)), FINAL)


def status_in(text: str) -> int:
    """The HTTP status that a text names, or 0."""
    found = _STATUS.search(text)
    return int(next(filter(None, found.groups()))) if found else 0


def wait_in(text: str) -> float | None:
    """The seconds that a text asks to wait ("try again in 6m0s", "retry-after: 7"), or None."""
    found = _WAIT.search(text)
    if found is None:
        return None
    return sum(float(number) * _seconds(unit.lower()) for number, unit in _PART.findall(found[1]))


def pause(failures: int) -> float:
    """The seconds to wait after so many tries that failed before the last one, if the provider names none."""
    return PAUSES[min(failures, len(PAUSES) - 1)]


def _seconds(unit: str) -> float:
    return 0.001 if unit.startswith(("ms", "milli")) else _UNITS[unit[:1]]
