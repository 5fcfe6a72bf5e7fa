"""Somebody at a shell: runs `meantime`, looks at what it prints, and can have a terminal."""

from __future__ import annotations

import codecs
import contextlib
import json
import os
import pty
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from tests.waiting import LIMIT, until

from meantime.daemon.home import Home
from meantime.surfaces.caller import caller_thread
from meantime.surfaces.daemon_client.daemon_client import Daemon

MEANTIME = [sys.executable, "-m", "meantime.app.main"]


class Done(NamedTuple):
    code: int
    out: str
    err: str


class Person:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        (folder / "config.toml").write_text("[http]\nport = 0\n")
        plain = {
            k: v
            for k, v in os.environ.items()
            if "MEANTIME" not in k and k not in ("COLUMNS", "NO_COLOR", *caller_thread.THEIRS)
        }
        self.environ = {
            **plain, "MEANTIME_HOME": str(self.home), "MEANTIME_CONFIG": str(folder / "config.toml"),
            "TERM": "xterm",
        }  # fmt: skip

    def __call__(self, *arguments: str, stdin: str = "", **options: Any) -> Done:
        done = self.bytes(*arguments, stdin=stdin.encode(), **options)
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    def up(self) -> None:
        """`meantime up` has a time, and says then that it may be repeated."""
        until(lambda: self("up").code == 0, "the daemon is up")

    def hook(self, *arguments: str, stdin: str) -> Done:
        """A hook has two seconds. Where the daemon took too long, the next one tells."""

        def done() -> Done | None:
            found = self("hook", *arguments, stdin=stdin)
            return None if took_too_long(found.err) else found

        return until(done, "the daemon answers a hook in time")

    def bytes(
        self, *arguments: str, stdin: bytes = b"", environ: dict[str, str] | None = None, **options: Any
    ):
        return subprocess.run(
            [*MEANTIME, *arguments], input=stdin, capture_output=True, timeout=2 * LIMIT, check=False,
            env={**self.environ, **(environ or {})}, cwd=options.pop("cwd", self.folder), **options,
        )  # fmt: skip

    def json(self, *arguments: str) -> Any:
        verb, *rest = arguments
        done = self(verb, "--json", *rest)
        assert done.out, done
        return json.loads(done.out)

    def start(self, *arguments: str) -> str:
        """A task, by its id."""
        done = self("run", "-q", *arguments)
        assert done.code == 0, done
        return done.out.strip()

    def begin(self, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        """Without waiting for its end. SIGINT is as a shell leaves it."""
        given: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            **options,
        }
        process: subprocess.Popen[Any] = subprocess.Popen(
            [*MEANTIME, *arguments], env=self.environ, cwd=self.folder, preexec_fn=_heed_interrupts, **given
        )
        return process

    def terminal(self, *arguments: str, **environ: str) -> Terminal:
        return Terminal([*MEANTIME, *arguments], {**self.environ, **environ}, self.folder)

    def info(self) -> Any:
        """What the daemon says of itself, asked beside the executable."""
        with contextlib.closing(self.daemon()) as asking:
            return asking.get("/v1/info")

    def daemon(self) -> Daemon:
        return Daemon(Home(self.home, self.folder / "config.toml"), start=False)

    def leave(self) -> None:
        until(lambda: self("down", "--stop", "--lose-queued").code == 0, "the daemon is down")


class Terminal:
    """A program on a terminal of 80 columns; `screen` is everything that it has written."""

    def __init__(self, program: list[str], environ: dict[str, str], cwd: Path) -> None:
        self._ours, theirs = pty.openpty()
        os.set_blocking(self._ours, False)
        import fcntl
        import struct
        import termios

        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.program = subprocess.Popen(
            program, env=environ, cwd=cwd, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            preexec_fn=_own_terminal,
        )  # fmt: skip
        os.close(theirs)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._text = ""

    @property
    def screen(self) -> str:
        return self._text.replace("\r\n", "\n")

    def read(self) -> bool:
        """Whether the program is still there, after all that it has written until now was read."""
        while select.select([self._ours], [], [], 0)[0]:
            try:
                data = os.read(self._ours, 65_536)
            except OSError:  # the program has left its terminal
                return False
            if not data:
                return False
            self._text += self._decoder.decode(data)
        return True

    def until(self, text: str) -> None:
        def is_shown() -> bool:
            self.read()
            return text in self.screen

        until(is_shown, f"the terminal shows {text!r}", there=lambda: self.screen)

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def end(self) -> int:
        until(
            lambda: not self.read() or self.program.poll() is not None,
            "the program ends",
            there=lambda: self.screen,
        )
        code = self.program.wait(LIMIT)
        self.read()
        os.close(self._ours)
        return code


def running(home: Path, *words: str) -> list[int]:
    """The processes of this home whose command line has these words."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            said = (path / "cmdline").read_bytes().split(b"\0")
            ours = f"MEANTIME_HOME={home}".encode() in (path / "environ").read_bytes().split(b"\0")
            if ours and all(word.encode() in said for word in words):
                found.append(int(path.name))
    return found


def wait(asking: Daemon, id: str) -> Any:
    """The task, once it has ended."""
    return asking.get(f"/v1/tasks/{id}/wait", timeout=LIMIT, patience=2 * LIMIT)


def until_connected(program: subprocess.Popen[bytes]) -> None:
    """A program that has met the daemon waits for it where it goes away."""

    def is_connected() -> bool:
        with contextlib.suppress(OSError):
            opened = Path(f"/proc/{program.pid}/fd").iterdir()
            return any(os.readlink(one).startswith("socket:") for one in opened)
        return False

    until(is_connected, "it has a connection to the daemon")


def took_too_long(said: str) -> bool:
    """What a hook prints of a daemon that is slow, and of a disk."""
    return "took too long" in said or "could not be read in time" in said


def _heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _own_terminal() -> None:
    import fcntl
    import termios

    _heed_interrupts()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
