"""The line that a person is typing. Bytes go in, finished lines come out; it touches no terminal."""

from __future__ import annotations

import codecs

from meantime.surfaces.terminal.terminal_text import columns

END = "\x04"  # Ctrl+D on an empty line: what comes out instead of a line
LONGEST = 1_000


class LineEditor:
    def __init__(self) -> None:
        self.text = ""
        self._decode = codecs.getincrementaldecoder("utf-8")("ignore").decode
        self._escape = ""  # the beginning of a sequence that a key such as an arrow sends

    def feed(self, data: bytes) -> list[str]:
        finished: list[str] = []
        for key in self._decode(data):
            if self._escape or key == "\x1b":
                self._escape = self._swallow(key)
            elif key in "\r\n":
                finished.append(self.text)
                self.text = ""
            elif key == END:
                finished += [] if self.text else [END]
            else:
                self._edit(key)
        return finished

    def _swallow(self, key: str) -> str:
        """Arrows and the like do nothing here, and leave nothing in the line."""
        if self._escape in ("", "\x1b") and key in "\x1b[O":
            return self._escape + key if key != "\x1b" else key
        return self._escape if self._escape != "\x1b" and not "@" <= key <= "~" else ""

    def _edit(self, key: str) -> None:
        if key in "\x7f\x08":
            self.text = self.text[:-1]
        elif key == "\x15":  # Ctrl+U
            self.text = ""
        elif key == "\x17":  # Ctrl+W
            self.text = self.text.rstrip().rpartition(" ")[0]
            self.text += " " if self.text else ""
        elif key.isprintable() and len(self.text) < LONGEST:
            self.text += key

    def shown(self, width: int) -> str:
        """Its end, as much as fits into one row: a line that never wraps can always be taken back."""
        taken, cells = "", 0
        for key in reversed(self.text):
            cells += columns(key)
            if cells > width:
                break
            taken = key + taken
        return taken
