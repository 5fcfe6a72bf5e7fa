"""Servers with a slow tool, for real agents: unmodified ones of npm and PyPI, one that is written with
fastmcp, and the scripted one. None of them knows of us."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from integrations.mcp import foreign
from surfaces.wrap.conftest import Peer
from surfaces.wrap.installed_servers import EVERYTHING, FASTMCP, FETCH, needed

DONE = "through m"
BEAT = 1.0  # seconds between two signs of life of a page that is not there yet


class SlowServer:
    """`tool`, called with `arguments`, is slow until it is let go."""

    tool = ""
    done = DONE  # is in the result of a call, and nowhere else

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)

    @property
    def command(self) -> list[str]:
        raise NotImplementedError

    @property
    def arguments(self) -> dict[str, Any]:
        return {}

    @property
    def calls(self) -> int:
        """How often the tool was called. Each server says so in a place of its own."""
        raise NotImplementedError

    def let_go(self) -> None:
        """More than once, if need be."""

    def close(self) -> None:
        self.let_go()


class Scripted(SlowServer):
    tool = "gate"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.peer = Peer(folder)

    @property
    def command(self) -> list[str]:
        return self.peer.command()

    @property
    def arguments(self) -> dict[str, Any]:
        return {"mark": "m"}

    @property
    def calls(self) -> int:
        return self.peer.lines("calls").count("gate m")

    def let_go(self) -> None:
        self.peer.open_gate()


class Everything(SlowServer):
    """The reference server of npm. Its slow tool takes its time, and nobody can let it go. `tee` notes what
    it is sent."""

    tool = "trigger-long-running-operation"
    seconds = 15  # longer than an agent waits
    done = f"Duration: {seconds} seconds"

    @property
    def command(self) -> list[str]:
        return ["sh", "-c", 'tee -a "$0" | exec "$@"', str(self.folder / "input"), *EVERYTHING]

    @property
    def arguments(self) -> dict[str, Any]:
        return {"duration": self.seconds, "steps": 1}  # progress would make some agents wait for longer

    @property
    def calls(self) -> int:
        lines = (self.folder / "input").read_text().splitlines()
        return sum(json.loads(line).get("method") == "tools/call" for line in lines)


class Fetch(SlowServer):
    """The reference server of PyPI, with a page on loopback that comes when it is let go."""

    tool = "fetch"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._come = threading.Event()
        self._asked = 0
        self._pages = ThreadingHTTPServer(("127.0.0.1", 0), self._page())
        threading.Thread(target=self._pages.serve_forever, daemon=True).start()

    def _page(self) -> type[BaseHTTPRequestHandler]:
        owner = self

        class Page(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                owner._asked += 1
                self.send_response(200)
                self.send_header("Content-Type", "text/plain")
                self.end_headers()
                try:
                    while not owner._come.wait(BEAT):
                        self.wfile.write(b" ")  # the server gives a silent page up
                    self.wfile.write(DONE.encode())
                except OSError:  # nobody waits for it any more
                    pass

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Page

    @property
    def command(self) -> list[str]:
        return list(FETCH)

    @property
    def arguments(self) -> dict[str, Any]:
        return {"url": f"http://127.0.0.1:{self._pages.server_address[1]}/page", "raw": True}

    @property
    def calls(self) -> int:
        return self._asked

    def let_go(self) -> None:
        self._come.set()

    def close(self) -> None:
        super().close()
        self._pages.shutdown()
        self._pages.server_close()


class FastMcp(SlowServer):
    tool = "bake"
    done = "baked: cake"

    @property
    def command(self) -> list[str]:
        return [foreign.PYTHON, str(FASTMCP)]

    @property
    def arguments(self) -> dict[str, Any]:
        return {"article": "cake", "oven": str(self.folder)}

    @property
    def calls(self) -> int:
        file = self.folder / "orders"
        return len(file.read_text().splitlines()) if file.exists() else 0

    def let_go(self) -> None:
        (self.folder / "done").touch()


OF_OTHERS = {
    "everything": (Everything, needed),
    "fetch": (Fetch, needed),
    "fastmcp": (FastMcp, foreign.needed),
}
