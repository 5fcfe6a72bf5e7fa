"""The one grammar of searches: `status:failed,running agent:review since:7d "two words" -status:lost`.

A page, `/v1/tasks?q=` and `meantime ps` all search by it, with the same errors. A search is a list of terms,
and a task fits if it fits all of them. A term is a word of the title, or a qualifier with values of which one
must fit; a minus in front turns it round.
"""

from __future__ import annotations

import difflib
import re
from datetime import UTC, datetime

from msgspec import Struct

from .durations import seconds_of
from .errors import InvalidInput
from .lifecycle import ACTIVE, ENDED, Status

TEXT = ""  # the name of a term that is a word
QUALIFIERS = ("status", "agent", "kind", "thread", "batch", "since", "until")
TIMES = ("since", "until")
GROUPS: dict[str, tuple[Status, ...]] = {
    "active": tuple(status for status in Status if status in ACTIVE),
    "ended": tuple(status for status in Status if status in ENDED),
    "done": tuple(status for status in Status if status in ENDED),
    "error": (Status.FAILED, Status.TIMED_OUT, Status.LOST),
    "timeout": (Status.TIMED_OUT,),
}
EXAMPLE = 'status:failed,running agent:review since:7d "two words" -status:lost'
LONGEST = 1_000  # characters
MOST_TERMS = 20
MOST_VALUES = 50  # of one term
_TOKEN = re.compile(r'\s*(-?)(?:([A-Za-z_]+):(?!//))?((?:"(?:[^"\\]|\\.)*"|[^\s"])*)', re.DOTALL)
_PIECE = re.compile(r'"((?:[^"\\]|\\.)*)"|([^,"]+)|(,)', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_BARE = re.compile(r'[^\s",:\\/-][^\s",:\\]*')  # `agent://` would be read as an address


class Term(Struct, frozen=True):
    """One condition. `values` of a status are statuses, of a time the text that was written."""

    name: str
    values: tuple[str, ...]
    negated: bool = False


class SearchQuery(Struct, frozen=True):
    terms: tuple[Term, ...] = ()

    def __str__(self) -> str:
        """The search as it would be written; `parse` of it gives the same."""
        return " ".join(map(_written, self.terms))


def parse(text: str) -> SearchQuery:
    """Raises InvalidInput, code `bad_query`, naming what is wrong with an example of what is right."""
    if len(text) > LONGEST:
        raise _bad(f"A search has at most {LONGEST} characters, not {len(text)}.")
    terms: list[Term] = []
    at = 0
    while text[at:].strip():
        found = _TOKEN.match(text, at)
        assert found is not None  # it matches nothing at all, too
        minus, name, value = found.groups()
        if found.end() == at or text[found.end() : found.end() + 1] == '"':
            raise _bad(f"A quotation mark is not closed: {_short(text[found.start(3) :])}.")
        at = found.end()
        terms.append(_term(minus, name, value))
        if len(terms) > MOST_TERMS:
            raise _bad(f"A search has at most {MOST_TERMS} terms.")
    return SearchQuery(tuple(terms))


def _term(minus: str, name: str | None, value: str) -> Term:
    if name is None:
        words = _unquoted(value) if value else ""
        if not words:
            raise _bad("- has no word behind it." if minus else "An empty text finds everything.")
        return Term(TEXT, (words,), bool(minus))
    field = name.lower()
    if field not in QUALIFIERS:
        near = difflib.get_close_matches(field, QUALIFIERS, n=1)
        meant = f"Did you mean {near[0]}:? " if near else ""
        quoted = (
            f'To search for the text, quote it: "{_short(f"{name}:{value}")}".' if '"' not in value else ""
        )
        raise _bad(f"{_short(name)}: is not a qualifier.", meant + quoted)
    values = _values(value)
    if not values:
        raise _bad(f"{field}: needs a value.")
    if field == "status":
        values = tuple(dict.fromkeys(one for said in values for one in _statuses(said)))
    elif field in TIMES:
        _check_time(field, values, negated=bool(minus))
    if len(values) > MOST_VALUES:
        raise _bad(f"{field}: has more than {MOST_VALUES} values.")
    return Term(field, values, bool(minus))


def _values(written: str) -> tuple[str, ...]:
    """Separated by commas; a quoted one may hold anything."""
    values, current = list[str](), ""
    for quoted, bare, comma in _PIECE.findall(written):
        if comma:
            values.append(current)
            current = ""
        else:
            current += _ESCAPED.sub(r"\1", quoted) if quoted else bare
    return tuple(dict.fromkeys(value for value in (*values, current) if value))


def _unquoted(written: str) -> str:
    return re.sub(
        r'"((?:[^"\\]|\\.)*)"', lambda found: _ESCAPED.sub(r"\1", found[1]), written, flags=re.DOTALL
    )


def _statuses(said: str) -> tuple[str, ...]:
    word = said.strip().lower().replace("-", "_")
    if word in GROUPS:
        return GROUPS[word]
    if word not in list(Status):
        known = ", ".join([*Status, "active", "ended", "error"])
        raise _bad(f"There is no status {_short(said)!r}.", f" Use one of: {known}.")
    return (word,)


def _check_time(field: str, values: tuple[str, ...], *, negated: bool) -> None:
    if negated:
        raise _bad(f"-{field}: is not possible.", " Turn it round: since: and until: are opposites.")
    if len(values) != 1 or moment(values[0], 0.0) is None:
        said = ",".join(values)
        raise _bad(f"{field}:{_short(said)} is not a time.", " Write 2h, 7d, 2026-11-30 or 2026-11-30T18:00.")


def moment(said: str, now: float) -> float | None:
    """Seconds since 1970: so long ago, or at this date, in UTC unless it says otherwise. None if it is not
    a time."""
    ago = seconds_of(said)
    if ago is not None:
        return now - ago
    try:
        at = datetime.fromisoformat(said)
        return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _written(term: Term) -> str:
    minus = "-" if term.negated else ""
    if term.name == TEXT:
        return f"{minus}{_quoted(term.values[0])}"
    return f"{minus}{term.name}:{','.join(map(_quoted, term.values))}"


def _quoted(value: str) -> str:
    if _BARE.fullmatch(value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:39]}…"


def _bad(problem: str, hint: str = "") -> InvalidInput:
    known = ", ".join(f"{name}:" for name in QUALIFIERS)
    return InvalidInput(
        problem, hint=f"{hint.strip()} There are {known}; such as {EXAMPLE}".strip(), code="bad_query"
    )
