"""What a run of the scenarios has found, agent by agent: a table on the terminal and a file.

`make agents-newest` names the file with MEANTIME_AGENTS_REPORT; without that there is no report.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from .installed import version
from .scene import Scene
from .terminals import HOSTS

KEY = "scenario"  # of a test's properties, which a worker sends along with its result
FILE = os.environ.get("MEANTIME_AGENTS_REPORT", "")
HEAD = ("agent", "version", "scenario", "", "questions", "notices")


def note(test: pytest.Item, scene: Scene) -> None:
    """At the end of a test: what the model was asked, and how many notices there were to tell."""
    seen = {"agent": scene.host.name, "questions": len(scene.model.turns), "notices": len(scene.seen)}
    test.user_properties.append((KEY, {**seen, "scenario": test.name.partition("[")[0]}))


class Report:
    """Gathers what all workers send."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, Any]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        row = self._rows.setdefault(report.nodeid, {"outcome": report.outcome})
        if report.outcome != "passed":
            row["outcome"] = "xfailed" if hasattr(report, "wasxfail") else report.outcome
        properties: dict[str, Any] = dict(report.user_properties)
        row |= properties.get(KEY, {})

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        rows = [row for row in self._rows.values() if "agent" in row]
        rows.sort(key=lambda row: (row["agent"], row["scenario"]))
        versions = {host.name: version(host.package) for host in HOSTS}
        lines: list[tuple[str, ...]] = [HEAD]
        for row in rows:
            numbers = (str(row["questions"]), str(row["notices"]))
            name = row["scenario"].removeprefix("test_").replace("_", " ")
            lines.append((row["agent"], versions[row["agent"]], name, row["outcome"], *numbers))
        widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
        terminalreporter.section("coding agents")
        for line in lines:
            cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
            terminalreporter.line("  ".join(cells).rstrip())
        Path(FILE).write_text(json.dumps(_summary(rows, versions), indent=2) + "\n")


def _summary(rows: list[dict[str, Any]], versions: dict[str, str]) -> dict[str, Any]:
    agents: dict[str, Any] = {}
    for host in HOSTS:
        outcomes = [row["outcome"] for row in rows if row["agent"] == host.name]
        if outcomes:
            passed = outcomes.count("passed")
            agents[host.name] = {"version": versions[host.name], "passed": passed, "of": len(outcomes)}
    return {"date": time.strftime("%Y-%m-%d"), "agents": agents}
