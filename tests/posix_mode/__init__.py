"""`pytest --platform=posix`: the tests run with the POSIX path, on a Linux that refuses what only Linux has.

Three things refuse it, in the tests' own process and in every Python that it starts: owners, daemons, command
lines, zygotes, shims and guards.

- A seccomp filter: pidfd_open, pidfd_send_signal, splice, PR_SET_CHILD_SUBREAPER and SO_PEERCRED fail,
  whoever calls them. Every child inherits it (`syscall_filter.py`; Linux on x86-64).
- An audit hook: no module of Meantime reads /proc or /sys. psutil does, as it asks other systems in other
  ways, and so do the tests, which judge. Each refusal is written down, and the run fails if there is one
  (`refusals.py`).
- Functions that Python does not have on macOS are removed (`refusals.py`).

Tests that need what POSIX lacks carry the marker `linux_only` with the reason. docs/internals/posix-tests.md
lists them.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent
ASKED = "--platform=posix"


def is_asked() -> bool:
    """Read before options are: Meantime chooses its platform when it is loaded. Processes of xdist have no
    option, and inherit the variable."""
    return ASKED in sys.argv or os.environ.get("MEANTIME_PLATFORM") == "posix"


def install() -> None:
    """Call it before anything of Meantime is loaded."""
    os.environ["MEANTIME_PLATFORM"] = "posix"
    if "MEANTIME_TEST_REFUSALS" not in os.environ:
        descriptor, path = tempfile.mkstemp(prefix="meantime-refusals-")
        os.close(descriptor)
        os.environ["MEANTIME_TEST_REFUSALS"] = path
    sys.path.insert(0, str(FOLDER))
    import refusals  # type: ignore[import-not-found]  # by the name that every child knows it by
    import syscall_filter  # type: ignore[import-not-found]

    syscall_filter.install()
    refusals.install()


def refused() -> list[str]:
    """What Meantime asked for and must not, in any process of this run."""
    import refusals  # type: ignore[import-not-found]

    return Path(refusals.FILE).read_text().splitlines()


if is_asked():
    install()
