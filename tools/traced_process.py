"""Records the calls of another process of Meantime, for `traced_starts.py`.

Imported by a daemon (`tools = ["traced_process"]` in its configuration), or run in place of `meantime`:
`python tools/traced_process.py mcp` is a traced `meantime mcp`. The calls go to a file named by the process,
in the folder that the environment names.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

from call_trace import Recorder

FOLDER = "CALL_TRACE_FOLDER"


def begin() -> None:
    stream = (Path(os.environ[FOLDER]) / f"{os.getpid()}.jsonl").open("w", encoding="utf-8")
    recorder = Recorder(stream)
    recorder.is_recording = True
    recorder.install()


if FOLDER in os.environ:
    begin()

if __name__ == "__main__":
    sys.argv[0] = "meantime"
    runpy.run_module("meantime", run_name="__main__", alter_sys=True)
