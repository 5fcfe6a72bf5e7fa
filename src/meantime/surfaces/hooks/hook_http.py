"""The hook's own wire to the daemon: HTTP over the unix socket and JSON, with what Python has built in."""

from __future__ import annotations

import time

from meantime.daemon.home import reach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LOOK = 5.0  # seconds: as long may a host that is gone go unnoticed
MOST = 4_000_000  # bytes of an answer


class DaemonGone(Exception):
    """The daemon did not answer."""


class DaemonRefused(Exception):
    """The daemon's no."""


def told(
    address: str, thread: str, question: str, until: float | None, is_wanted: Callable[[], bool] | None = None
) -> tuple[str, str, bool]:
    """The text, the turn that holds it, and whether nothing is left to wait for."""
    found = request(address, f"/v1/threads/{part(thread)}/tell", question, until, is_wanted)
    return found.get("text") or "", found.get("turn") or "", bool(found.get("over"))


def request(
    address: str, path: str, body: str, until: float | None, is_wanted: Callable[[], bool] | None = None
) -> dict[str, Any]:
    """The daemon's answer. `until` is when it must be here; None waits as long as `is_wanted` says so."""
    from _socket import AF_UNIX, SOCK_STREAM, socket  # the module `socket` takes as long as all of this

    data = body.encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: meantime\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(data)}\r\nConnection: close\r\n\r\n"
    )
    talk = socket(AF_UNIX, SOCK_STREAM)
    try:
        talk.settimeout(_left(until))
        _connect(talk, address, until)
        talk.sendall(head.encode() + data)
        return _answer(_read(talk, until, is_wanted))
    except TimeoutError:
        raise DaemonGone("The daemon took too long.") from None
    except OSError as problem:
        raise DaemonGone(f"The daemon went away: {problem.strerror}.") from None
    finally:
        talk.close()


def _connect(talk: Any, address: str, until: float | None) -> None:
    while True:
        try:
            reach(talk, address)
            return
        except BlockingIOError:  # more than it can take at once stand before the door
            time.sleep(min(0.02, _left(until)))


def _read(talk: Any, until: float | None, is_wanted: Callable[[], bool] | None) -> bytes:
    found = b""
    while len(found) < MOST:
        talk.settimeout(_left(until))
        try:
            piece = talk.recv(65_536)
        except TimeoutError:
            if until is not None or is_wanted is None or not is_wanted():
                raise
            continue
        if not piece:
            break
        found += piece
    return found


def _left(until: float | None) -> float:
    if until is None:
        return LOOK
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _answer(data: bytes) -> dict[str, Any]:
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").lower().split("\r\n")
    length = [line[len("content-length:") :].strip() for line in lines if line.startswith("content-length:")]
    status = lines[0][9:12]
    if not head.startswith(b"HTTP/1.1 ") or (length and str(len(body)) != length[0]):
        raise DaemonGone("The daemon went away.")
    try:
        found = parsed(body.decode()) or {}
    except ValueError:
        found = {}
    if status == "503":
        raise DaemonGone("The daemon is closing, or too busy.")
    if status >= "400":
        older = "The daemon is older than this program; restart it with `meantime down --keep` and `up`."
        raise DaemonRefused(
            older if status == "404" else found.get("error") or f"The daemon answered {status}."
        )
    return found


def part(id: str) -> str:
    """An id as a part of a path."""
    safe = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~"
    return "".join(chr(one) if one in safe else f"%{one:02X}" for one in id.encode("utf-8", "replace"))


class _Rules:
    """How JSON is read, as the module `json` would have it."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float = parse_constant = float
    parse_int = int


def parsed(text: str) -> dict[str, Any] | None:
    """An object of JSON; None for another value, ValueError for what is not JSON.

    This is the scanner in C, which `json` wraps: the module itself takes as long to load as a bare Python."""
    try:
        from _json import make_scanner
    except ImportError:  # another Python than CPython
        import json

        found: Any = json.loads(text)
    else:
        text, rules = text.strip(" \t\r\n"), _Rules
        try:
            scan: Any = make_scanner(rules)  # pyright: ignore[reportArgumentType]  its stub is wrong
            found, end = scan(text, 0)
        except (StopIteration, SystemError):  # the second: `json`, which has the error's class, is not loaded
            raise ValueError("not JSON") from None
        if end != len(text):
            raise ValueError("more than one value")
    return found if isinstance(found, dict) else None  # pyright: ignore[reportUnknownVariableType]


def quoted(text: str) -> str:
    """A string of JSON."""
    try:
        from _json import encode_basestring_ascii
    except ImportError:
        from json import dumps as encode_basestring_ascii
    return encode_basestring_ascii(text)
