"""What a call of `meantime` costs before it does anything: agents make many of them."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .measure import p50, ratio, table, verdict

ROUNDS = 30
TARGET = 2.0  # times what the libraries alone cost
ALONE = "import click, http.client"


async def run() -> None:
    times = _measured()
    _, alone, ours = (p50(taken) for taken in times.values())
    rows = [
        [name, f"{p50(taken) * 1e3:,.0f} ms", ratio(p50(taken), alone), ""] for name, taken in times.items()
    ]
    rows[-1][-1] = verdict(ours / alone, TARGET)
    table(f"start-up (p50 of {ROUNDS})", ["", "time", "ratio", "target"], rows)


def _measured() -> dict[str, list[float]]:
    """Beside each other in every round, so that a busy machine is busy for all."""
    with tempfile.TemporaryDirectory(prefix="meantime-") as folder:
        config = Path(folder, "config.toml")
        config.write_text("[http]\nport = 0\n")
        home = str(Path(folder, "home"))
        environ = {**os.environ, "MEANTIME_HOME": home, "MEANTIME_CONFIG": str(config)}
        script = str(Path(sys.executable).with_name("meantime"))
        ways = {
            "python -c pass": [sys.executable, "-c", "pass"],
            f"python -c '{ALONE}'": [sys.executable, "-c", ALONE],
            "meantime ps, the daemon runs": [script, "ps"],
        }
        subprocess.run([script, "run", "--", "sleep", "60"], env=environ, check=True, capture_output=True)
        times: dict[str, list[float]] = {name: [] for name in ways}
        try:
            for _ in range(ROUNDS):
                for name, way in ways.items():
                    began = time.perf_counter()
                    subprocess.run(way, env=environ, check=True, capture_output=True)
                    times[name].append(time.perf_counter() - began)
        finally:
            subprocess.run([script, "down", "--stop"], env=environ, check=True, capture_output=True)
    return times
