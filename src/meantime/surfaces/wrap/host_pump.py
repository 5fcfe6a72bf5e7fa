"""`meantime mcp --wrap` itself: the host's stdin and stdout on one side, the daemon on the other.

It loads little, as its host waits for the server's first answer, and reads nothing of an answer but the
line before it, which says what it answers. Standard library only."""

from __future__ import annotations

import json
import os
import threading
from _socket import AF_UNIX, SHUT_WR, SOCK_STREAM, socket  # `socket` loads `selectors`, and makes enums
from contextlib import suppress

from meantime.daemon.home import reach
from meantime.system.line_splitter import PIECE, LineSplitter, LongLine
from meantime.system.output_reader import is_read

TYPE_CHECKING = False  # to load `typing` takes time, and the host waits
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MOST_BYTES = 64 << 20  # of one line
GONE = (
    "Meantime's daemon was lost while this request was open. Whether the tool did its work is not known; "
    "`meantime ps` lists the calls that had become tasks."
)
TOO_LONG = f"This line has more than {MOST_BYTES >> 20} MB."
INTERNAL_ERROR = -32603
AUTHORIZATION = "authorization"
LASTING = ("logging/setLevel", "resources/subscribe")  # the next daemon must ask its server, too
MOST_LASTING, LONGEST_LASTING = 1_000, 16_384  # requests, and bytes of one
BUFFER = 1 << 18  # bytes that are read from the daemon at once
TRIES = 2  # to send a line: the daemon may have ended since the last one
REFUSED = b"#refused "  # begins the daemon's word that it does not take this wrap, in place of a frame
LAST_WORD = 1.0  # seconds to read it after a write has failed


class HostPump:
    """`hello` is the first line for a daemon, without the host's handshake; `ensure` starts the daemon, and
    raises OSError where there is none; `thread` says whose call of a tool this is, or nothing; `login` is the
    value of `Authorization` for the server where it has changed since it was asked last."""

    def __init__(
        self,
        stdin: int,
        stdout: int,
        path: str,
        hello: dict[str, Any],
        ensure: Callable[[], None],
        thread: Callable[[str, object], str],
        login: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._stdin = stdin
        self._stdout = stdout
        self._path = path
        self._hello = hello
        self._ensure = ensure
        self._thread = thread
        self._login = login
        self._said = hello["thread"]
        self._daemon: socket | None = None
        self._reader: threading.Thread | None = None
        self._refusal = ""  # by the daemon
        self._open: dict[str, None] = {}  # ids of the host's requests
        self._unsent: frozenset[str] = frozenset()  # of these, the ids of the line that is being sent
        self._initialize: Any = None
        self._lasting: dict[str, Any] = {}  # requests, by their method and URI
        self._lock = threading.Lock()  # of what both threads change
        self._out = threading.Lock()  # a frame is written whole

    def run(self) -> None:
        """Until the host closes our stdin, or reads no more."""
        lines = LineSplitter(MOST_BYTES, LongLine)
        try:
            self._connect()
            while data := self._read():
                for line in lines.feed(data):
                    self._pass_on(line)
            for line in lines.end():
                self._pass_on(line)
        except BrokenPipeError:  # nobody reads our answers any more
            return
        daemon, reader = self._daemon, self._reader
        if not is_read(self._stdout):  # the host was killed: its open calls become tasks as soon as we end
            return
        if daemon is not None and reader is not None:
            try:
                daemon.shutdown(SHUT_WR)
            except OSError:
                return
            reader.join()

    def _read(self) -> bytes:
        try:
            return os.read(self._stdin, PIECE)
        except OSError:  # its terminal is gone, or its socket was cut off
            return b""

    # -- from the host

    def _pass_on(self, line: bytes) -> None:
        if isinstance(line, LongLine):
            self._refuse(None, TOO_LONG)
            return
        if not line.strip():
            return
        self._unsent = _ids(line)
        self._note(line)
        self._say_login()
        problem = ""
        for _ in range(TRIES):
            daemon = self._daemon
            try:
                if daemon is None:
                    daemon = self._connect()
                daemon.sendall(line + b"\n")
                self._unsent = frozenset()
                if self._daemon is not daemon:  # it was lost before that: nobody has answered this line
                    self._answer_open(self._refusal or GONE)
                return
            except OSError as failed:
                problem = str(failed)
                if self._reader is not None:  # it may still read why
                    self._reader.join(LAST_WORD)
                self._lost(daemon)
        self._unsent = frozenset()
        self._answer_open(self._refusal or f"Meantime's daemon is not there: {problem}")

    def _note(self, line: bytes) -> None:
        for message in _messages(line):
            method, id = message.get("method"), message.get("id")
            if method == "initialize":
                self._initialize = message.get("params", {})
            elif method == "tools/call":
                self._say_thread(message.get("params"))
            elif method == "notifications/cancelled":
                self._forget(message.get("params"))
            elif method in (*LASTING, "resources/unsubscribe") and len(line) <= LONGEST_LASTING:
                self._note_lasting(method, message.get("params"))
            is_id = isinstance(id, int | str) and not isinstance(id, bool)  # others are refused
            if method is not None and is_id:
                with self._lock:
                    self._open[json.dumps(id)] = None

    def _forget(self, cancelled: Any) -> None:
        if isinstance(cancelled, dict):
            with self._lock:
                self._open.pop(json.dumps(cancelled.get("requestId")), None)  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]

    def _note_lasting(self, method: str, params: Any) -> None:
        uri = json.dumps(params.get("uri")) if isinstance(params, dict) else ""  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
        key = uri if method != "logging/setLevel" else method
        self._lasting.pop(key, None)
        if method in LASTING:
            self._lasting[key] = {"method": method, "params": params}
            if len(self._lasting) > MOST_LASTING:
                del self._lasting[next(iter(self._lasting))]

    def _say_thread(self, call: Any) -> None:
        if not isinstance(call, dict):  # the daemon refuses it
            return
        thread = self._thread(str(call.get("name")), call.get("arguments"))  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
        if thread and thread != self._said:
            self._said = self._hello["thread"] = thread
            self._say(f"#thread {thread}")

    def _say_login(self) -> None:
        login = self._login()
        if login is not None:
            headers = self._hello["order"]["headers"]
            for name in [name for name in headers if name.lower() == AUTHORIZATION]:
                del headers[name]
            headers[AUTHORIZATION] = login
            self._say(f"#login {login}")

    def _say(self, control: str) -> None:
        daemon = self._daemon
        if daemon is not None:
            with suppress(OSError):  # the line after it fails too, and the next daemon gets a hello
                daemon.sendall(control.encode() + b"\n")

    def _connect(self) -> socket:
        daemon = self._reached()
        hello = dict(self._hello)
        if self._initialize is not None and self._reader is not None:
            hello["initialize"] = self._initialize
            hello["repeats"] = list(self._lasting.values())
        self._refusal = ""
        with suppress(BrokenPipeError, ConnectionResetError):  # the reader finds out why
            daemon.sendall(json.dumps(hello).encode("utf-8", "surrogateescape") + b"\n")
        self._daemon = daemon
        received = os.dup(daemon.fileno())
        self._reader = threading.Thread(target=self._receive, args=(daemon, received), daemon=True)
        self._reader.start()
        return daemon

    def _reached(self) -> socket:
        """A daemon that runs is not asked whether it does: its host waits."""
        for last in (False, True):
            daemon = socket(AF_UNIX, SOCK_STREAM)
            try:
                reach(daemon, self._path)
                return daemon
            except OSError:
                daemon.close()
                if last:
                    raise
            self._ensure()
        raise AssertionError("the last try returns or raises")

    # -- from the daemon

    def _receive(self, daemon: socket, received: int) -> None:
        try:
            with open(received, "rb", BUFFER) as buffered:
                while head := buffered.readline():
                    if head.startswith(REFUSED):
                        self._refusal = head[len(REFUSED) :].decode("utf-8", "replace").strip()
                        break
                    size, _, id = head.partition(b" ")
                    answers = id.strip()
                    with self._out:
                        self._copy(buffered, int(size))
                    if answers != b"-":
                        with self._lock:
                            self._open.pop(json.dumps(json.loads(answers)), None)
        except BrokenPipeError:
            os._exit(0)  # the host reads no more: there is nobody to work for
        except (OSError, ValueError):
            pass
        self._lost(daemon)

    def _copy(self, source: Any, left: int) -> None:
        while left:
            piece = source.read(min(left, PIECE))
            if not piece:
                os.write(self._stdout, b"\n")  # the host must see that this line is broken
                raise ConnectionError
            left -= len(piece)
            self._write(piece)

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._stdout, data) :]

    def _lost(self, daemon: socket | None) -> None:
        """Once for each connection. Requests that were not sent are sent again."""
        with self._lock:
            if daemon is None or daemon is not self._daemon:
                return
            self._daemon = None
        daemon.close()
        self._answer_open(self._refusal or GONE)

    def _answer_open(self, text: str) -> None:
        with self._lock:
            ids = [id for id in self._open if id not in self._unsent]
            for id in ids:
                del self._open[id]
        for id in ids:
            self._refuse(json.loads(id), text)

    def _refuse(self, id: Any, text: str) -> None:
        error = {"code": INTERNAL_ERROR, "message": text}
        with self._out:
            self._write(json.dumps({"jsonrpc": "2.0", "id": id, "error": error}).encode() + b"\n")


def _messages(line: bytes) -> list[dict[str, Any]]:
    """The messages of a line, which may be a batch; none for a line that the daemon will refuse."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return []
    return [one for one in (found if isinstance(found, list) else [found]) if isinstance(one, dict)]  # pyright: ignore[reportUnknownVariableType]


def _ids(line: bytes) -> frozenset[str]:
    return frozenset(json.dumps(one.get("id")) for one in _messages(line))
