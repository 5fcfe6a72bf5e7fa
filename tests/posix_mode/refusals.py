"""Refuses /proc and /sys to Meantime in this process, takes away what Python has on Linux alone, and does the
same to every Python that is started from here. See __init__.py.

Standard library only: it runs in zygotes and guards, before their code.
"""

from __future__ import annotations

import os
import sys
import sysconfig

FOLDER = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(os.path.dirname(os.path.dirname(FOLDER)), "src", "meantime") + os.sep
LIBRARY = sysconfig.get_paths()["stdlib"] + os.sep
VARIABLE = "MEANTIME_TEST_REFUSALS"  # names the file that refusals are written to
FILE = os.environ.get(VARIABLE, "")  # kept, as tests replace the environment
FORBIDDEN = ("/proc", "/sys", "/dev/fd")
EVENTS = {"open", "os.listdir", "os.scandir", "os.chdir", "socket.connect", "socket.bind"}
# Python's documentation says of each that macOS, or the oldest Python that we know, does not have it there.
MISSING = {
    "os": (
        "pidfd_open", "splice", "fdatasync", "posix_fallocate", "posix_fadvise", "pipe2", "waitid", "eventfd",
        "memfd_create", "sched_getaffinity", "sched_setaffinity", "getrandom", "copy_file_range", "O_PATH",
        "O_TMPFILE", "getxattr", "setxattr", "P_PIDFD", "getresuid", "setresuid",
    ),
    "signal": ("pidfd_send_signal", "sigwaitinfo", "sigtimedwait", "SIGRTMIN", "SIGRTMAX"),
    "_socket": ("SO_PEERCRED", "SO_PASSCRED", "AF_NETLINK"),
    "socket": ("SO_PEERCRED", "SO_PASSCRED", "AF_NETLINK"),
    "resource": ("prlimit",),
    "time": ("CLOCK_BOOTTIME",),
}  # fmt: skip
BARE = f"import sys; sys.path.insert(0, {FOLDER!r}); import refusals; refusals.install(); sys.path.pop(0); "


def install() -> None:
    for module, names in MISSING.items():
        loaded = __import__(module)
        for name in names:
            if hasattr(loaded, name):
                delattr(loaded, name)
    os.readlink, os.access = _checked(os.readlink), _answered(os.access)
    sys.addaudithook(_audit)
    if "subprocess" in sys.modules or "-S" not in sys.orig_argv:  # a zygote starts no Python
        _pass_on()


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    if event in EVENTS:
        _check(arguments[1 if event.startswith("socket") else 0])


def _checked(call):  # type: ignore[no-untyped-def]
    def checked(path, *args, **kwargs):  # type: ignore[no-untyped-def]
        _check(path)
        return call(path, *args, **kwargs)

    return checked


def _answered(call):  # type: ignore[no-untyped-def]
    def answered(path, *args, **kwargs):  # type: ignore[no-untyped-def]
        try:
            _check(path)
        except FileNotFoundError:
            return False
        return call(path, *args, **kwargs)

    return answered


def _check(path: object) -> None:
    if isinstance(path, bytes):
        path = os.fsdecode(path)
    if not isinstance(path, (str, os.PathLike)):
        return
    text = os.fspath(path)
    if not isinstance(text, str) or not text.startswith(FORBIDDEN):
        return
    asking = _asking()
    if asking:
        _write(f"{asking} asks for {text}")
        raise FileNotFoundError(2, "not on this system", text)


def _asking() -> str:
    """The place in Meantime that asks, if it is Meantime: the nearest code that is not Python's own."""
    frame = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((LIBRARY, "<frozen", FOLDER)) or "site-packages" in file:
            return f"{file[len(SOURCE) :]}:{frame.f_lineno}" if file.startswith(SOURCE) else ""
        frame = frame.f_back
    return ""


def _write(line: str) -> None:
    fd = os.open(FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, line.encode() + b"\n")
    os.close(fd)


def _pass_on() -> None:
    """A Python that is started from here loads this file by its `sitecustomize`, or before its code."""
    import subprocess

    plain = subprocess.Popen.__init__

    def begin(self, args, *rest, **options):  # type: ignore[no-untyped-def]
        environ = dict(os.environ if options.get("env") is None else options["env"])
        environ.setdefault("MEANTIME_PLATFORM", "posix")
        environ[VARIABLE] = FILE
        environ["PYTHONPATH"] = os.pathsep.join(filter(None, [FOLDER, environ.get("PYTHONPATH", "")]))
        if isinstance(args, (list, tuple)) and "-I" in args and "-c" in args:
            at = list(args).index("-c") + 1
            args = [*args[:at], BARE + args[at], *args[at + 1 :]]
        options["env"] = environ
        plain(self, args, *rest, **options)

    subprocess.Popen.__init__ = begin
