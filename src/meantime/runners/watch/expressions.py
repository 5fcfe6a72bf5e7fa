"""Regular expressions by RE2, which takes linear time whatever the expression and the text.

An expression is searched in each line by itself: it never matches an end of line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from meantime.kernel.argument_checks import shown
from meantime.kernel.errors import InvalidInput
from meantime.kernel.payloads import one_line

MEMORY = 1 << 20  # bytes of one expression, compiled
SET_MEMORY = 32 << 20  # bytes of all expressions of one log together
KEPT = 2_000  # expressions that are kept compiled
_LITERAL = re.compile(r"\\Q.*?(?:\\E|\Z)|\\\\", re.DOTALL)
_UNKNOWN = re.compile(r"\\[AzC]")


def _re2() -> Any:
    try:
        import re2  # pyright: ignore[reportMissingTypeStubs]
    except ImportError:
        raise InvalidInput(
            "Watches need an extra for expressions.",
            hint="pip install 'meantime[watch]'",
            code="extra_missing",
        ) from None
    return re2


def _options(re2: Any, memory: int) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.never_nl = True
    options.max_mem = memory
    return options


class MatchedLine(NamedTuple):
    """A line that fits: its range, and where in the text the match begins."""

    begin: int
    end: int
    found: int


class Expression:
    def __init__(self, text: str, compiled: Any) -> None:
        self.text = text
        self._compiled = compiled

    def fits(self, text: str) -> bool:
        return self._compiled.search(text.encode()) is not None

    def lines(self, block: bytes, begin: int = 0) -> list[MatchedLine]:
        """Every line that fits. A line without anything in it is never one."""
        found: list[MatchedLine] = []
        while begin < len(block) and (match := self._compiled.search(block, begin)) is not None:
            at = match.start()
            start = block.rfind(b"\n", 0, at) + 1
            end = block.find(b"\n", at)
            end = len(block) if end < 0 else end
            if end > start:
                found.append(MatchedLine(start, end, at))
            begin = end + 1
        return found


class Exactly:
    """A text that is compared as a whole, for which RE2 is not needed."""

    def __init__(self, text: str) -> None:
        self.text = text

    def fits(self, text: str) -> bool:
        return text == self.text


@lru_cache(KEPT)
def expression(text: str, name: str = "match") -> Expression:
    """Raises InvalidInput for one that RE2 does not know, and where RE2 is not installed."""
    re2 = _re2()
    if found := _UNKNOWN.search(_LITERAL.sub("", text)):
        raise _refused(text, name, f"{found[0]} has no meaning within a line")
    try:
        return Expression(text, re2.compile(f"(?m){text}", _options(re2, MEMORY)))
    except re2.error as problem:
        said = problem.args[0] if problem.args else ""
        words = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        raise _refused(text, name, one_line(words.replace("(?m)", "", 1))) from None


def _refused(text: str, name: str, why: str) -> InvalidInput:
    return InvalidInput(
        f"{name}={shown(text)} is not an expression of RE2: {why}.",
        hint="Look-around and back-references do not exist there; ^ and $ are the ends of a line.",
        code="bad_expression",
    )


class ExpressionSet:
    """Many expressions, searched for in one pass.

    A set may be too big, or run out of memory and find nothing without an error. So it has one expression
    more, which fits every text: where that is not found, each expression is searched for by itself.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._each = [expression(text) for text in texts]
        re2 = _re2()
        self._set = re2.Set.SearchSet(_options(re2, SET_MEMORY))
        for text in texts:
            self._set.Add(f"(?m){text}")
        self._proof = self._set.Add("")
        try:
            self._set.Compile()
        except re2.error:
            self._set = None

    def hits(self, block: bytes) -> set[int]:
        """The places in the list of the expressions that fit somewhere in the block."""
        found: set[int] = set(() if self._set is None else self._set.Match(block))
        if self._proof not in found:
            return {place for place, one in enumerate(self._each) if one.lines(block)}
        found.discard(self._proof)
        return found
