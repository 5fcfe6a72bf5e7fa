"""The text of notices, as much of it as a host takes from a hook at once."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from meantime.kernel.notices import Notice
from meantime.surfaces.cli import executable

MOST_CHARACTERS = 9_000  # Claude Code takes 10,000 of a hook, and puts more into a file
TAIL = 1_500  # of a long one, what is kept of its end


def text_of(notice: Notice) -> str:
    text = notice.message().text
    if len(text) <= MOST_CHARACTERS:
        return text
    command = shlex.join([*executable.path(), "result", notice.task_id])
    room = MOST_CHARACTERS - len(command) - 100  # for the words of the note, too
    begin, cut = text[: room - TAIL], len(text) - room
    note = f"[{cut} characters are left out here; `{command}` has all of it]"
    return f"{begin}\n{note}\n{text[-TAIL:]}"


def fitting(notices: Sequence[Notice]) -> Sequence[Notice]:
    """As many as a host takes at once, and always the first. The others keep their place."""
    count, size = 0, 0
    for notice in notices:
        size += len(text_of(notice)) + 2
        if count and size > MOST_CHARACTERS:
            break
        count += 1
    return notices[:count]
