"""An idle daemon loads no feature that nobody has configured or used: each one costs memory for good."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest
from tests.waiting import LIMIT, until

from meantime.daemon.daemon_autostart import answers

from .conftest import Place

pytestmark = pytest.mark.processes

DAEMON = """
import json, sys
sys.argv = ["daemon", "--foreground"]
from meantime.app.daemon import main
code = main()
print(json.dumps(sorted(sys.modules)))
sys.exit(code)
"""
UNUSED = (
    "gzip",
    "meantime.app.worker_addresses",
    "meantime.carriers",
    "meantime.client",
    "meantime.runners.agent",
    "meantime.stores.memory",
    "meantime.testing",
    "statistics",
)


def test_a_daemon_that_served_a_list_of_tasks_has_loaded_no_unused_feature(place: Place):
    daemon = subprocess.Popen(
        [sys.executable, "-c", DAEMON], env=place.environ, text=True, stdout=subprocess.PIPE
    )
    try:
        until(lambda: answers(place.home), "the daemon answers")
        assert place.ask("GET", "/v1/tasks")["tasks"] == []
        daemon.send_signal(signal.SIGTERM)
        said, _ = daemon.communicate(timeout=LIMIT)
    finally:
        daemon.kill()
        daemon.wait(LIMIT)
    loaded = json.loads(said)
    assert "meantime.surfaces.http.asgi_app" in loaded  # it did serve
    assert [name for name in loaded if name.startswith(UNUSED)] == []
