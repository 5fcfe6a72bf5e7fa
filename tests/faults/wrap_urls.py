"""kill -9 of a host that reaches its wrapped server by a URL, of the daemon and of the server, at swept
moments of a call. The promises are those of `wraps`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

from tests.waiting import LIMIT

from meantime.daemon.owner_process import owner, terminate

from . import strace
from .judge import Tally
from .trees import lives
from .wrap_ledger import note
from .wraps import CONFIG, Scene, sweep

VICTIMS = ("host", "daemon", "server")
OPEN = ("01", "08")  # in /proc/net/tcp: established, and closed by the other side alone


def run(seed: int, chains: int, kills: int, reproduce: str) -> Tally:
    """`chains` conversations, in each of which somebody is killed `kills` times in a row."""
    tally = Tally("kill of URL host, daemon, wrapped server", reproduce)
    return sweep(tally, UrlScene, seed, chains, kills)


class UrlScene(Scene):
    victims = VICTIMS
    program = "tests.faults.wrap_url_host"

    def config(self) -> str:
        command = [sys.executable, "-m", "tests.faults.wrap_server", str(self.folder)]
        plants = '"tests.faults.wrap_plants"'
        general = CONFIG.replace(plants, f'{plants}, "tests.faults.wrap_holds"')
        return (
            f"{general}[mcp.servers.wrapped]\ncommand = {json.dumps(command)}\n"
            f"cwd = {json.dumps(str(strace.ROOT))}\n"
            f"env = {{ PYTHONPATH = {json.dumps(self._environ['PYTHONPATH'])} }}\n"
        )

    def _look(self) -> None:
        """A URL starts no daemon: somebody else does."""
        if owner(self.home) is None:
            up = [sys.executable, "-m", "meantime", "up"]
            done = subprocess.run(up, env=self._environ, capture_output=True, timeout=LIMIT, check=False)
            assert done.returncode == 0, done.stderr.decode()
        super()._look()

    def _end_host(self, victim: str) -> None:
        """Until the daemon has noticed it too, answers may be on their way into its broken connections."""
        assert self._host is not None
        self._host.kill()
        self._host.wait(LIMIT)
        self._wait(lambda _: not self._connections(), "the daemon has closed the host's connections")
        note(self.folder, "gone", "host")
        self._host = None

    def _connections(self) -> list[str]:
        """Of the daemon, at its port; only hosts use that."""
        port = json.loads((self.home.folder / "server.json").read_bytes())["port"]
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        return [row[2] for row in rows if row[3] in OPEN and int(row[1].rpartition(":")[2], 16) == port]

    def _leave(self, servers: list[int]) -> None:
        """The session of a host that was killed has ten minutes: its server ends with the daemon at last."""
        own = self.pid("server")
        self._wait(lambda _: not lives(own), "its server ends with the session of the host")
        found = owner(self.home)
        assert found is not None
        assert terminate(self.home, found.pid, signal.SIGTERM, LIMIT)
        super()._leave(servers)
