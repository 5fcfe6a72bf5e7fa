"""An MCP server behind a wrap, which writes down outside of us what it was sent and what it answers.

    python -m tests.faults.wrap_server <folder>

The name of a tool says which call it is: `quick-<mark>` is answered at once, `slow-<mark>` when the file
`go-<mark>` is in the folder, after progress if that is asked for. What it answers names the call, so an
answer in the wrong place is seen.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

from tests.waiting import until

from .wrap_ledger import note

_out = threading.Lock()


def _say(message: dict[str, Any]) -> None:
    with _out:
        os.write(1, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def _perform(folder: Path, id: Any, tool: str, token: Any) -> None:
    kind, _, mark = tool.partition("-")
    note(folder, "got", mark)
    if token is not None:
        _say({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1}})
    if kind == "slow":
        until((folder / f"go-{mark}").exists, f"{mark} is let go")
    note(folder, "answering", mark)
    _say({"id": id, "result": {"content": [{"type": "text", "text": f"result of {mark}"}]}})


def main() -> None:
    folder = Path(sys.argv[1])
    note(folder, "server", str(os.getpid()))
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        method, params = asked.get("method"), asked.get("params") or {}
        if method == "initialize":
            info = {"name": "wrapped", "version": "1"}
            version = params["protocolVersion"]
            _say(
                {
                    "id": asked["id"],
                    "result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info},
                }
            )
        elif method == "tools/call":
            token = params.get("_meta", {}).get("progressToken")
            given = (folder, asked["id"], params["name"], token)
            threading.Thread(target=_perform, args=given, daemon=True).start()


if __name__ == "__main__":
    main()
