"""Whether somebody can still read what this process prints."""

from __future__ import annotations

import select


def is_read() -> bool:
    """False when the reader of stdout or stderr is gone."""
    poll = select.poll()
    for stream in (1, 2):
        poll.register(stream, 0)  # that the reader is gone is always reported
    try:
        return not any(what & (select.POLLERR | select.POLLHUP) for _, what in poll.poll(0))
    except OSError:
        return False
