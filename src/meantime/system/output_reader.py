"""Whether somebody can still read what this process prints."""

from __future__ import annotations

import select


def is_read(*streams: int) -> bool:
    """False when the reader of one of these is gone; without any, of stdout or stderr."""
    poll = select.poll()
    for stream in streams or (1, 2):
        poll.register(stream, 0)  # that the reader is gone is always reported
    try:
        return not any(what & (select.POLLERR | select.POLLHUP) for _, what in poll.poll(0))
    except OSError:
        return False
