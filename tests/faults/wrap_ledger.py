"""The outside ledger of a wrapped server and its hosts: one file, to which every process appends."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

FILE = "facts.jsonl"
THREAD = "conv"


class Noted(NamedTuple):
    """One line. In the order in which they were written:

    server      a server started; `note` is its pid
    sent        a host has written this call
    got         a server has read it
    answering   a server is about to answer it
    result      a host has read its answer
    error       a host has read an error in its place
    background  a host has read that it is a task, whose id is the note
    stray       a host has read an answer to nothing that it had asked
    cut         a host's wrap has ended
    told        a host has read a notice
    ended       the daemon said that its task has ended
    freed       we let it go
    killed      we are about to kill this process
    gone        the wrap has ended, or the daemon has seen the end of a host that used a URL: answers that
                come later cannot be on their way to its host
    """

    what: str
    mark: str
    note: str = ""


def note(folder: Path, what: str, mark: str, more: str = "") -> None:
    """One write, at the end of the file: a kill leaves a line there or not."""
    place = os.open(folder / FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(place, json.dumps([what, mark, more]).encode() + b"\n")
    finally:
        os.close(place)


def noted(folder: Path) -> list[Noted]:
    path = folder / FILE
    whole = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [Noted(*json.loads(line)) for line in whole]
