"""Hostile trees by name, and the judge that finds what is left of them: it looks at /proc alone.

A tree is known by its mark: an argument of its processes and a variable in their environment. And each of
them wrote its pid down, for those that hide even that.
"""

from __future__ import annotations

import os
import random
import shlex
import signal
import sys
from pathlib import Path
from typing import NamedTuple

from . import preload

PROGRAM = Path(__file__).with_name("tree.py")
VARIABLE = "FAULT_TREE"
ZYGOTE = b"shim.zygote"
HOLDER = "a grandchild holds the pipe"

STEPS = """
ignore | stop | fork stop | stop fork | ignore fork | fork ignore | trap | trap fork trap | fork setsid
fork leave setsid leave | fork leave setsid leave close | fork setsid fork setsid fork setsid
fork setsid leave setsid leave setsid leave | leave setsid leave | leave close | fork leave ignore
fork chain | fork chain setsid | setsid fork chain setsid | leave chain | leave chain setsid
bomb | bomb ignore | bomb setsid | bomb group ignore | flood | ignore flood | fork ignore flood
group | fork group | fork group ignore stop | fork leave | fork both both leave
bare | fork bare | ignore bare fork bare | bare fork leave setsid ignore
fork bare leave setsid leave close | anew | ignore anew fork anew setsid | close | mute ignore
full | ignore full | thread fork | thread thread fork setsid | leader | fork leader | leader fork
fork setsid leader fork ignore | pool | ignore pool setsid ignore | vfork | vfork ignore | vfork setsid vfork
name | fork name setsid | name fork leave name | reaper fork leave setsid leave | both both both both ignore
close fork setsid close fork ignore close
leave setsid leave close chain2 | leave setsid leave close chain20 | leave setsid leave close chain100
bare leave setsid leave close chain2 | bare leave setsid leave mute chain20 | bare leave close chain100 setsid
fork chain2 | fork setsid chain20 setsid | fork ignore chain100 | leave ignore setsid leave mute
bare leave setsid leave close ignore | leave close setsid bare leave | leave group leave setsid leave close
space fork setsid fork ignore | space leave fork ignore | fork space leave setsid fork close
bare space leave fork setsid chain20 | space fork bare fork setsid close
"""

# $UP names the file, $$ is the shell itself; the number of lines that the file has when all is up.
SCRIPTS: dict[str, tuple[int, str]] = {
    "a pipeline": (3, "sh -c 'echo $$ >>$UP; exec sleep 5m' | sh -c 'echo $$ >>$UP; exec sleep 5m' | "
                      "sh -c 'echo $$ >>$UP; exec cat'"),
    "a pipeline that ignores": (2, "trap '' TERM HUP INT; yes | sh -c 'echo $$ >>$UP; exec sleep 5m' | "
                                   "sh -c 'echo $$ >>$UP; exec sleep 5m'"),
    "nohup &": (2, "nohup sleep 5m >/dev/null 2>&1 & echo $! >>$UP; echo $$ >>$UP; wait"),
    "nohup & and gone": (1, "nohup sleep 5m >/dev/null 2>&1 & echo $! >>$UP"),
    "setsid &": (1, "setsid sh -c 'echo $$ >>$UP; exec sleep 5m' & wait; sleep 5m"),
    HOLDER: (1, "(sleep 5m & echo $! >>$UP)"),
    "subshells": (4, "(echo $$ >>$UP; (echo a >>$UP; (echo b >>$UP; sleep 5m & echo $! >>$UP; wait)))"),
    "a trap that never ends": (1, "trap 'while :; do sleep 1; done' TERM; echo $$ >>$UP; sleep 5m; wait"),
    "a trap that starts more": (1, "trap 'setsid sleep 5m & setsid sleep 5m & wait' TERM; echo $$ >>$UP; "
                                   "sleep 5m & wait; wait"),
    "env -i": (1, "exec env -i FAULT_TREE=$FAULT_TREE UP=$UP sh -c 'echo $$ >>$UP; sleep 5m; :'"),
    "env -i &": (2, "env -i FAULT_TREE=$FAULT_TREE UP=$UP sh -c 'echo $$ >>$UP; sleep 5m; :' & "
                    "echo $! >>$UP; wait"),
    "stopped, its child runs": (2, "sleep 5m & echo $! >>$UP; echo $$ >>$UP; kill -STOP $$; wait"),
    "a pid namespace": (1, "unshare --pid --fork sh -c 'echo $FAULT_TREE >>$UP; trap \"\" TERM; sleep 5m; :' "
                           "|| { echo $$ >>$UP; sleep 5m; }"),
    "a mount and pid namespace": (1, "unshare --pid --fork --mount-proc sh -c 'echo >>$UP; setsid sleep 5m' "
                                     "|| { echo $$ >>$UP; sleep 5m; }"),
    "timeout of a timeout": (1, "timeout 5m timeout 5m sh -c 'echo $$ >>$UP; trap \"\" TERM; sleep 5m; :'"),
    "a busy loop": (1, "trap '' TERM; echo $$ >>$UP; i=0; while [ $i -lt 400000000 ]; do i=$((i+1)); done"),
}  # fmt: skip


_UP = "while [ ! -s $UP ]; do sleep 0.01; done"  # with the first process the command is over
# The same for what a library does that is loaded into every program: see preload.c. $LIB is its path.
PRELOADED: dict[str, tuple[int, str]] = {
    "LD_PRELOAD": (2, "LD_PRELOAD=$LIB sleep 0; echo $$ >>$UP; sleep 5m"),
    "LD_PRELOAD in a shell": (4, "export LD_PRELOAD=$LIB; /bin/sh -c 'sleep 0 & sleep 0; wait'; sleep 5m"),
    "LD_PRELOAD, bare": (2, "FAULT_WIPE=1 LD_PRELOAD=$LIB sleep 0; echo $$ >>$UP; sleep 5m"),
    "LD_PRELOAD and gone": (1, f"LD_PRELOAD=$LIB sleep 0; {_UP}"),
    "LD_PRELOAD, bare and gone": (1, f"FAULT_WIPE=1 LD_PRELOAD=$LIB sleep 0; {_UP}"),
}


class Tree(NamedTuple):
    name: str
    command: str  # $UP and $FAULT_TREE are set
    lines: int  # of its file, when it is up

    def line(self, mark: str, file: Path) -> str:
        return f"export {VARIABLE}={mark} UP={shlex.quote(str(file))}; {self.command}"

    @property
    def ends_itself(self) -> bool:
        """Its first process goes at once: what is left is a leftover, and no cancel comes in time."""
        first = self.name.removeprefix("bare ").removeprefix("space ")
        return first.startswith("leave") or self.name.endswith("gone") or self.name == HOLDER

    @property
    def sheds_its_mark(self) -> bool:
        """It leaves both its environment and its parents: without a shim nothing leads to it any more."""
        _, bare, after = self.name.partition("bare")
        return bool(bare) and ("leave" in after or self.name.startswith("LD_PRELOAD"))

    @property
    def leaves(self) -> bool:
        """Something of it goes out of sight: it is met with every way of being left."""
        return self.ends_itself or any(
            word in self.name for word in ("leave", "chain", "space", "LD_PRELOAD")
        )


def trees(rng: random.Random) -> list[Tree]:
    """All of them, in an order of chance."""
    steps = [" ".join(part.split()) for line in STEPS.strip().splitlines() for part in line.split("|")]
    found = [Tree(name, _program(name), lines(name.split())) for name in steps]
    found += [Tree(name, script, count) for name, (count, script) in SCRIPTS.items()]
    if (library := preload.library()) is not None:
        path = shlex.quote(str(library))
        found += [Tree(name, f"LIB={path}; {line}", count) for name, (count, line) in PRELOADED.items()]
    rng.shuffle(found)
    return found


def _program(steps: str) -> str:
    python = f"{shlex.quote(sys.executable)} -S -E {shlex.quote(str(PROGRAM))}"
    return f'exec {python} ${VARIABLE} "$UP" {steps}'


def lines(steps: list[str]) -> int:
    """How many pids a tree of these steps writes down."""
    if not steps:
        return 1
    rest = lines(steps[1:])
    if steps[0].startswith("chain") or steps[0] in ("flood", "full", "bomb", "stop"):
        return 1
    if steps[0] == "pool":
        return 1 + 3 * rest
    if steps[0] == "both":
        return 2 * rest
    return rest + (steps[0] in ("fork", "vfork", "thread"))


# -- the judge


def stat(pid: int) -> list[bytes]:
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return []
    return text[text.rindex(b")") + 2 :].split()


def lives(pid: int, started: bytes = b"") -> bool:
    """Also one whose first thread has ended, which looks like a zombie while others go on."""
    fields = stat(pid)
    if not fields or (started and fields[19] != started):
        return False
    return fields[0] not in (b"Z", b"X") or int(fields[17]) > 1


def met(file: Path) -> dict[int, bytes]:
    """Who wrote their pids down and live now, with their start times."""
    pids = [int(word) for word in file.read_text().split() if word.isdigit()] if file.exists() else []
    return {pid: fields[19] for pid in pids if (fields := stat(pid))}


def survivors(mark: str, known: dict[int, bytes]) -> list[int]:
    found = [pid for pid, started in known.items() if lives(pid, started)]
    for entry in filter(str.isdigit, os.listdir("/proc")):
        pid = int(entry)
        if pid not in found and _carries(pid, mark.encode()) and lives(pid):
            found.append(pid)
    return sorted(found)


def _carries(pid: int, mark: bytes) -> bool:
    for name in ("cmdline", "environ"):
        try:
            words = Path(f"/proc/{pid}/{name}").read_bytes().split(b"\0")
        except OSError:
            continue
        if mark in words or VARIABLE.encode() + b"=" + mark in words:
            return True
    return False


def put_an_end_to(mark: str, known: dict[int, bytes]) -> None:
    """Whatever the verdict: nothing of ours stays on the machine."""
    for _ in range(200):
        found = survivors(mark, known)
        if not found:
            return
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in found:
                try:
                    os.kill(pid, number)
                except OSError:
                    continue


def shim_of(tree: list[int]) -> int:
    """The supervisor above a tree, found from below."""
    for pid in tree:
        while pid > 1:
            if ZYGOTE in _cmdline(pid):
                return pid
            fields = stat(pid)
            pid = int(fields[1]) if fields else 0
    return 0


def _cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
