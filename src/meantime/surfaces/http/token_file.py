"""tokens.json: the tokens that were given out, by their hashes. Its reader cannot use one of them."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from meantime.system.atomic_file import replace_file

from .private_file import read_private

LOG = logging.getLogger("meantime.http")
FILE = "tokens.json"
MOST_BYTES = 1_000_000


class IssuedToken(Struct, frozen=True, omit_defaults=True, rename="camel", kw_only=True):
    """One token, as it is kept. Times are seconds since 1970."""

    id: str
    digest: str  # SHA-256 of the whole token, in hex
    name: str = ""
    access: str = "read"  # or "write"
    thread: str | None = None
    question: str | None = None  # the one task that it may read and answer
    page: bool = False  # given to a page for its code
    created_at: float = 0.0
    expires_at: float = 0.0
    used_at: float | None = None  # coarsely
    revoked_at: float | None = None


class _Kept(Struct):
    version: int
    tokens: list[IssuedToken]


def read_tokens(path: Path) -> list[IssuedToken]:
    """The tokens of the file. A damaged file is put aside and reported: its tokens are refused from then on.
    A file that others can read or write is InvalidInput: somebody may have added a token.
    """
    if not os.path.lexists(path):
        return []
    hint = f"Look at it, then run `chmod 600 {path}`, or delete it: its tokens are refused then."
    data = read_private(path, MOST_BYTES + 1, what="The file of tokens", hint=hint)
    try:
        if len(data) > MOST_BYTES:
            raise msgspec.DecodeError(f"more than {MOST_BYTES} bytes")
        kept = msgspec.json.decode(data, type=_Kept)
        if kept.version != 1:
            raise msgspec.DecodeError(f"version {kept.version}")
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        aside = path.with_name(f"{FILE}.damaged")
        os.replace(path, aside)
        LOG.error(
            "The file of tokens was damaged (%s) and is now %s: its tokens are refused.", problem, aside
        )
        return []
    return kept.tokens


def write_tokens(path: Path, tokens: Sequence[IssuedToken]) -> None:
    """In the place of the old file, at once, and even over a power cut. OSError where the disk refuses."""
    replace_file(path, msgspec.json.encode(_Kept(1, list(tokens))), durable=True)
