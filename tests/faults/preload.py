"""The library preload.c, built when it is needed."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.waiting import LIMIT

SOURCE = Path(__file__).with_name("preload.c")


def missing() -> str:
    """Why there is none here, or the empty string."""
    return "" if library() is not None else "no C compiler can build its library"


@functools.cache
def library() -> Path | None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]
    built = Path(tempfile.gettempdir()) / f"meantime-preload-{os.getuid()}-{digest}.so"
    if not built.exists():
        fresh = built.with_suffix(f".{os.getpid()}")
        command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(fresh), str(SOURCE)]
        if subprocess.run(command, capture_output=True, timeout=LIMIT).returncode != 0:
            return None
        fresh.replace(built)
    return built
