"""Changes in folders: no call that all systems have reports them, so whoever watches must poll."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class FolderEvents:
    def open(self) -> None: ...

    def listen(self, folder: str, wake: Callable[[], object]) -> int:
        """-1: nobody will call."""
        return -1

    def forget(self, number: int, wake: Callable[[], object]) -> None: ...

    def close(self) -> None: ...
