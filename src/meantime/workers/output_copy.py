"""The files of a command's output: the owner copies them before the worker forgets them."""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from meantime.kernel.errors import Closed, MeantimeError
from meantime.kernel.model import Claim, Spill
from meantime.system.atomic_file import replace_file

from .message_parts import PIECE
from .messages import EndedMessage, KeptFile
from .worker_requests import WorkerRequests

logger = logging.getLogger("meantime")


async def copy_files(
    requests: WorkerRequests, claim: Claim, ended: EndedMessage, places: Mapping[str, Path], patience: float
) -> Spill | None:
    """The spill of the ending, as it lies here. Without its output the ending is recorded all the same: the
    worker may be gone for good."""
    try:
        for file in ended.files:
            if file.ending in places:
                data = await _fetched(requests, claim, file, patience)
                await asyncio.to_thread(_write, places[file.ending], data)
    except Closed:
        raise
    except (MeantimeError, OSError) as problem:
        logger.warning("The output of %s could not be copied from %s: %s", ended.task, claim.worker, problem)
        return None
    if ended.spill is None:
        return None
    here = places.get(Path(ended.spill.path).suffix)
    return None if here is None else replace(ended.spill, path=str(here))


async def _fetched(requests: WorkerRequests, claim: Claim, file: KeptFile, patience: float) -> bytes:
    parts: list[bytes] = []
    got = 0
    while got < file.size:
        most = min(PIECE, file.size - got)
        piece = await requests.read_file(claim, file.ending, got, most, patience)
        if not piece.data:
            raise OSError(f"its file {file.ending} ends after {got} of {file.size} bytes")
        parts.append(piece.data)
        got += len(piece.data)
    data = b"".join(parts)
    if zlib.crc32(data) != file.crc:
        raise OSError(f"the checksum of its file {file.ending} does not match")
    return data


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(path, data)
