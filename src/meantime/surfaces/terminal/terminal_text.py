"""Texts of tasks are untrusted: they must not move the cursor, hide, or turn a line around."""

from __future__ import annotations

import re
import sys

# Compiled when they are needed, and kept by `re`: to compile them takes 1 ms.
# Terminal sequences: CSI …; strings (OSC, DCS, SOS, PM, APC) up to their end; two-byte ones.
_SEQUENCE = (
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?|\x1b[ -/]*[0-~]"
)
_BLANK = r"[\s\x00\x85\u2028\u2029]+"
# A joiner, unless it joins two letters that are not ASCII, or two emoji (as in kernel/payloads.py).
_UNJOINED = "\x00-\xbf\u061c\u180e\u2000-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
STRAY_JOINER = f"(?<![^{_UNJOINED}])[\u200c\u200d]|[\u200c\u200d](?![^{_UNJOINED}])"
# Controls, bidi marks and overrides, zero-width characters, lone surrogates.
_HIDDEN = (
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    f"\ufeff\ufff9-\ufffb\ud800-\udfff]|{STRAY_JOINER}"
)


_JOINERS = "\u200c\u200d"


def plain(text: object) -> str:
    """One line without anything that a terminal would obey."""
    said = str(text)
    if said.isascii() and said.isprintable() and "  " not in said:
        return said
    return re.sub(_HIDDEN, "", re.sub(_BLANK, " ", re.sub(_SEQUENCE, "", said))).strip()


def plain_lines(text: object) -> str:
    """The same for a text of several lines."""
    return "\n".join(
        re.sub(_HIDDEN, "", re.sub(_SEQUENCE, "", line.expandtabs())).rstrip()
        for line in str(text).split("\n")
    )


def fitted(text: str, width: int) -> str:
    """Cut to so many columns of a terminal, with `…` where something is missing."""
    if columns(text) <= width:
        return text
    kept = ""
    left = width - 1
    for char in text:
        left -= columns(char)
        if left < 0:
            break
        kept += char
    return kept + "…" if width > 0 else ""


def columns(text: str) -> int:
    """How wide a terminal shows it: ideographs and most emoji take two columns, combining marks and joiners
    none."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    shown = [char for char in text if not combining(char) and char not in _JOINERS]
    return sum(2 if east_asian_width(char) in "WF" else 1 for char in shown)


def padded(text: str, width: int) -> str:
    return text + " " * (width - columns(text))


def on_terminal() -> bool:
    return sys.stdout.isatty()
