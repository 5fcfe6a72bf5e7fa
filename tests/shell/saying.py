"""Waiting for what a command says."""

from __future__ import annotations

from pathlib import Path

from meantime import Handle


async def said(handle: Handle, text: str) -> None:
    """Waits until the command has said this: then it is as far as we want it."""
    seen = ""
    async for chunk in handle.log.follow():
        seen += chunk.text
        if text in seen:
            return
    raise AssertionError(f"It ended, and had said: {seen!r}")


def lives(pid: int) -> bool:
    """A zombie has ended, and only waits for somebody to take note."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")
