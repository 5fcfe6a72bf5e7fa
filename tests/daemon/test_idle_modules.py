"""An idle daemon loads no feature that nobody has configured or used: each one costs memory for good."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

from meantime.daemon.daemon_autostart import answers

from .conftest import PATIENCE, Place, eventually

DAEMON = """
import json, sys
sys.argv = ["daemon", "--foreground"]
from meantime.app.daemon import main
code = main()
print(json.dumps(sorted(sys.modules)))
sys.exit(code)
"""
UNUSED = (
    "meantime.app.worker_addresses",
    "meantime.carriers",
    "meantime.client",
    "meantime.runners.agent",
    "meantime.runners.watch.expressions",
    "meantime.runners.watch.log_scan",
    "meantime.runners.watch.watch_sources",
    "meantime.stores.memory",
    "meantime.surfaces.wrap.host_session",
    "meantime.surfaces.wrap.http_hosts",
    "meantime.testing",
    "statistics",
)


def test_a_daemon_that_served_a_list_of_tasks_has_loaded_no_unused_feature(place: Place):
    daemon = subprocess.Popen(
        [sys.executable, "-c", DAEMON], env=place.environ, text=True, stdout=subprocess.PIPE
    )
    try:
        eventually(lambda: answers(place.home))
        assert place.ask("GET", "/v1/tasks")["tasks"] == []
        daemon.send_signal(signal.SIGTERM)
        said, _ = daemon.communicate(timeout=PATIENCE)
    finally:
        daemon.kill()
        daemon.wait(PATIENCE)
    loaded = json.loads(said)
    assert "meantime.surfaces.http.asgi_app" in loaded  # it did serve
    assert [name for name in loaded if name.startswith(UNUSED)] == []
