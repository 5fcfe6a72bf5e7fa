"""Real agents and a scripted model, as the tests have them."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from cli.person import Person
from integrations.agents.installed import MEANTIME, OPENCODE, version
from integrations.agents.model import Asked, Model, script
from integrations.agents.scene import Scene
from integrations.agents.terminals import HOSTS
from integrations.agents.window import Window
from integrations.opencode.serving import Place, Running

__all__ = [
    "CLAUDE_CODE",
    "MEANTIME",
    "Asked",
    "Model",
    "Person",
    "Place",
    "Running",
    "Scene",
    "Window",
    "needs_opencode",
    "script",
    "version",
]
CLAUDE_CODE = next(host for host in HOSTS if host.name == "claude-code")


def needs_opencode() -> bool:
    if not OPENCODE.exists():
        print("OpenCode is not installed: make agents. It is not measured.")
    return OPENCODE.exists()
