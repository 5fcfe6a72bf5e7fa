"""Does a command line end in `&`? Read as a shell reads it, not searched for.

Only as much of the shell's grammar as that question needs: words, operators, quotes, comments,
here-documents and substitutions. A line that a shell would refuse is left as it is: the shell reports it
best.
"""

from __future__ import annotations

from .shell_lexer import BLANK, SINGLE, HereDocument, Unfinished, Words, unquoted

# The longest first: `&` alone is what none of the others is.
_OPERATORS = [
    "<<<",
    "<<-",
    "&>>",
    ";;&",
    "&&",
    "||",
    "|&",
    "&>",
    ">&",
    "<&",
    "<<",
    ">>",
    ">|",
    "<>",
    ";;",
    ";&",
]
_WORD, _OPERATOR, _NEWLINE = "word", "operator", "newline"
# After these words a command begins, as it does after an operator.
_OPENERS = frozenset(["!", "{", "do", "elif", "else", "if", "then", "time", "until", "while"])


def split_background(command: str) -> tuple[str, bool]:
    """The command without its trailing `&`, and whether it had one."""
    reader = _Reader(command)
    try:
        reader.read_list(closing="")
    except (Unfinished, RecursionError):
        return command, False
    at = reader.background_at
    if at is None:
        return command, False
    before, after = command[:at], command[at + 1 :]
    # What follows is blank, a comment, or the here-document that the command reads.
    return (before + after if reader.bodies_after else _trimmed(before)), True


def _trimmed(command: str) -> str:
    """Without the blanks at its end; one that a backslash quotes is not a blank."""
    kept = command.rstrip(" \t")
    return command[: len(kept) + _slashes(kept) % 2]


def _slashes(line: str) -> int:
    return len(line) - len(line.rstrip("\\"))


class _Reader(Words):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.background_at: int | None = None  # the last `&` that nothing follows, so far
        self.bodies_after = False

    def read_list(self, closing: str) -> None:
        """Commands up to the closing bracket, or to the end of the text."""
        last, cases = "", 0  # the kind of the last token; how many `case … esac` are open
        command_begins = True
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in BLANK or self.text.startswith("\\\n", self.at):
                self.at += 1 if char in BLANK else 2
            elif char == "\n":
                self.at += 1
                self._read_bodies()
                last, command_begins = last and _NEWLINE, True
            elif char == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif char == ")" and closing == ")" and not cases:
                self.at += 1
                return
            elif char in SINGLE:
                last = self._read_operator(last if closing == "" else _OPERATOR, command_begins)
                command_begins = last == _OPERATOR
            else:
                word = self.read_word()
                if command_begins and word in ("case", "esac"):
                    cases = max(0, cases + (1 if word == "case" else -1))
                self.background_at = None
                last, command_begins = _WORD, word in _OPENERS
        if closing:
            raise Unfinished

    def _read_operator(self, last: str, command_begins: bool) -> str:
        """Reads it with what belongs to it, and returns what that is to the token after it."""
        start = self.at
        if self.text.startswith("((", start) and command_begins:
            self.read_arithmetic(2)
            self.background_at = None
            return _WORD
        operator = next((one for one in _OPERATORS if self._starts(one)), self.text[start])
        self.at += len(operator)
        if operator == "&" and self._continues("&"):
            operator = "&&"
        self.background_at = start if operator == "&" and last == _WORD else None
        self.bodies_after = False
        if operator == "(":
            self.read_list(closing=")")
            self.background_at = None
            return _WORD
        if operator in ("<<", "<<-"):
            self._await_body(tabs=operator == "<<-")
            return _WORD
        return _OPERATOR

    def _starts(self, operator: str) -> bool:
        return self.text.startswith(operator, self.at)

    def _continues(self, char: str) -> bool:
        """Whether this character follows on a continued line: a backslash before it joins the two."""
        at = self.at
        while self.text.startswith("\\\n", at):
            at += 2
        found = at > self.at and self.text[at : at + 1] == char
        if found:
            self.at = at + 1
        return found

    # -- here-documents

    def _await_body(self, *, tabs: bool) -> None:
        while self.text[self.at : self.at + 1] in (" ", "\t"):
            self.at += 1
        word = self.read_word()
        delimiter = unquoted(word)
        self.awaited.append(HereDocument(delimiter, delimiter != word, tabs))

    def _read_bodies(self) -> None:
        """At the end of a line: the bodies of all here-documents that it named."""
        for document in self.awaited:
            self.bodies_after = True
            while self.at < len(self.text):
                line = self._read_line(joined=not document.quoted)
                if (line.lstrip("\t") if document.tabs else line) == document.delimiter:
                    break
        self.awaited = []

    def _read_line(self, *, joined: bool) -> str:
        """One line; where backslashes count, one that ends in a backslash goes on in the next."""
        line = ""
        while True:
            end = self.text.find("\n", self.at)
            end = len(self.text) if end < 0 else end
            line += self.text[self.at : end]
            self.at = min(end + 1, len(self.text))
            if not joined or _slashes(line) % 2 == 0 or self.at >= len(self.text):
                return line
            line = line[:-1]
