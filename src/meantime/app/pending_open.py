"""A Meantime that is about to be opened."""

from __future__ import annotations

from collections.abc import Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Never

from meantime.kernel.errors import InvalidInput

if TYPE_CHECKING:
    from .meantime import Meantime


class Opening:
    """The result of Meantime.open: `async with` it, or await it."""

    def __init__(self, meantime: Meantime) -> None:
        self._meantime = meantime

    async def _open(self) -> Meantime:
        await self._meantime._open()  # pyright: ignore[reportPrivateUsage]  the other half of Meantime
        return self._meantime

    def __await__(self) -> Generator[Any, None, Meantime]:
        return self._open().__await__()

    async def __aenter__(self) -> Meantime:
        return await self._open()

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._meantime.close()

    if not TYPE_CHECKING:  # a type checker says it by itself

        def __enter__(self) -> Never:
            raise InvalidInput(
                "Meantime.open(...) is asynchronous.",
                hint="Write `async with`, or block: `from meantime.blocking import Meantime`.",
            )

        def __exit__(self, *_: object) -> None: ...

        def __getattr__(self, name: str) -> Never:
            from .meantime import Meantime

            what = f"{type(self).__name__!r} object has no attribute {name!r}"
            if hasattr(Meantime, name):
                what += " before it is open: use `async with … as mt` or `mt = await …`"
            raise AttributeError(what, name=name, obj=self)
