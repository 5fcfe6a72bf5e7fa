"""The systemd unit of docs/guides/daemon.md: it is the one that `meantime service install` writes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from meantime.app.service_units import Service, systemd_unit

pytestmark = pytest.mark.docs

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "daemon.md"


def test_the_page_shows_the_unit_that_is_written():
    """tests/app/test_service_units.py lets systemd check such a unit, tests/daemon/test_systemd.py run it."""
    [shown] = re.findall(r"^```ini\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    service = Service(
        program=["/home/you/.local/bin/meantime", "up", "--foreground"],
        environ={
            "MEANTIME_HOME": "/home/you/.local/state/meantime",
            "MEANTIME_CONFIG": "/home/you/.config/meantime/config.toml",
            "PATH": "/home/you/.local/bin:/usr/bin:/bin",
        },
    )
    assert shown == systemd_unit(service)
