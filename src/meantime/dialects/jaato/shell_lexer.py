"""The words of a shell's command line, with all that may be quoted or substituted in them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

SINGLE = "&|;<>()"
BLANK = " \t"


class HereDocument(NamedTuple):
    delimiter: str
    quoted: bool  # then nothing in its body is special
    tabs: bool  # `<<-`: leading tabs are dropped


class Unfinished(Exception):
    """A quote, a bracket or a substitution that is never closed."""


class Words(ABC):
    """A text and the place in it. A substitution holds commands, which the subclass reads."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.awaited: list[HereDocument] = []  # named on this line; their bodies follow it

    @abstractmethod
    def read_list(self, closing: str) -> None:
        """Commands up to the closing bracket, or to the end of the text."""

    def read_word(self) -> str:
        """One word, with all that is quoted or substituted in it. Returned as it is written."""
        start = self.at
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in BLANK or char == "\n" or (char in SINGLE and not self._is_pattern(char)):
                break
            self._read_part(char)
        return self.text[start : self.at]

    def _is_pattern(self, char: str) -> bool:
        """`x=(a b)` and `@(a|b)` belong to their word."""
        return char == "(" and self.at > 0 and self.text[self.at - 1] in "=@?*+!"

    def _read_part(self, char: str) -> None:
        if char == "\\":
            self.at += 2
        elif char == "'":
            self._skip_to("'")
        elif char == '"':
            self._read_double()
        elif char == "`":
            self._read_backticks()
        elif char == "$":
            self._read_dollar()
        elif char == "(":
            self.at += 1
            self.read_list(closing=")")
        else:
            self.at += 1

    def _skip_to(self, quote: str) -> None:
        end = self.text.find(quote, self.at + 1)
        if end < 0:
            raise Unfinished
        self.at = end + 1

    def _read_double(self) -> None:
        self.at += 1
        self._read_until('"', special="\\`$")

    def _read_backticks(self) -> None:
        self.at += 1
        self._read_until("`", special="\\")

    def _read_dollar(self) -> None:
        rest = self.text[self.at + 1 : self.at + 3]
        if rest == "((":
            self.at += 1
            self.read_arithmetic(2)
        elif rest[:1] == "(":
            self.at += 2
            awaited, self.awaited = self.awaited, []
            self.read_list(closing=")")
            self.awaited = awaited
        elif rest[:1] == "{":
            self.at += 2
            self._read_until("}", special="\\'\"`$")
        elif rest[:1] == "'":
            self.at += 2
            self._read_until("'", special="\\")
        else:
            self.at += 1

    def _read_until(self, closing: str, special: str) -> None:
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == closing:
                self.at += 1
                return
            if char in special:
                self._read_part(char)
            else:
                self.at += 1
        raise Unfinished

    def read_arithmetic(self, depth: int) -> None:
        """`((…))`: brackets are counted, and `<<` and `&` are sums."""
        self.at += depth
        while depth:
            char = self.text[self.at : self.at + 1]
            if not char:
                raise Unfinished
            depth += (char == "(") - (char == ")")
            if char in "\\'\"`$":
                self._read_part(char)
            else:
                self.at += 1


def unquoted(word: str) -> str:
    """A delimiter without its quotes and backslashes."""
    out, quote, at = "", "", 0
    while at < len(word):
        char = word[at]
        if quote:
            quote, out = ("", out) if char == quote else (quote, out + char)
        elif char in "'\"":
            quote = char
        elif char == "\\":
            at += 1
            out += word[at : at + 1]
        else:
            out += char
        at += 1
    return out
