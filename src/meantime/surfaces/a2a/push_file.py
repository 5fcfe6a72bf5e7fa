"""pushes.json: the webhooks that are still to be told, private to the user. It holds their secrets."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from meantime.kernel.errors import InvalidInput
from meantime.surfaces.http.private_file import read_private
from meantime.system.atomic_file import replace_file

from .message_params import PushConfig

LOG = logging.getLogger("meantime.http")
MOST_BYTES = 20_000_000


class KeptPush(Struct, frozen=True, omit_defaults=True):
    config: PushConfig
    told: str = ""  # the question that it was told last


class _Kept(Struct):
    version: int
    pushes: list[KeptPush]


def read_pushes(path: Path) -> list[KeptPush]:
    """None of a file that is damaged, or that others can write: that is reported, and it is put aside."""
    if not os.path.lexists(path):
        return []
    try:
        data = read_private(path, MOST_BYTES, what="The file of webhooks", hint=f"Delete {path}.")
        kept = msgspec.json.decode(data, type=_Kept)
        return kept.pushes if kept.version == 1 else []
    except (InvalidInput, msgspec.DecodeError, UnicodeDecodeError) as problem:
        aside = path.with_name(f"{path.name}.damaged")
        os.replace(path, aside)
        LOG.error("The file of webhooks is now %s, and they are not told: %s", aside, problem)
        return []


def write_pushes(path: Path, pushes: Iterable[KeptPush]) -> None:
    replace_file(path, msgspec.json.encode(_Kept(1, list(pushes))), durable=True)
