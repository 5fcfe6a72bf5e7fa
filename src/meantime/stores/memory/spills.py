"""The files of spilled payloads: in a private folder that lives as long as the store is open."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import suppress

from meantime.system.atomic_file import NEW_FILE


class Spills:
    def __init__(self) -> None:
        self._folder = ""
        self._paths: set[str] = set()

    async def write(self, payload: bytes) -> str:
        if not self._folder:
            self._folder = tempfile.mkdtemp(prefix="meantime-")  # 0700
        path = os.path.join(self._folder, secrets.token_hex(16))
        await asyncio.to_thread(_write, path, payload)
        self._paths.add(path)
        return path

    async def read(self, path: str) -> bytes:
        if path not in self._paths:
            raise FileNotFoundError(path)
        return await asyncio.to_thread(_read, path)

    async def delete(self, paths: Iterable[str]) -> None:
        ours = self._paths.intersection(paths)  # never a path that is not ours
        if ours:
            self._paths -= ours
            await asyncio.to_thread(_unlink, ours)

    async def close(self) -> None:
        if self._folder:
            await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)


def _write(path: str, payload: bytes) -> None:
    with open(os.open(path, NEW_FILE, 0o600), "wb") as file:
        file.write(payload)


def _read(path: str) -> bytes:
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        return file.read()


def _unlink(paths: Iterable[str]) -> None:
    for path in paths:
        with suppress(FileNotFoundError):
            os.unlink(path)
