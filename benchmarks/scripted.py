"""Real agents and a scripted model, as the tests have them."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from integrations.agents.installed import OPENCODE
from integrations.agents.model import Asked, Model, script
from integrations.opencode.serving import Place, Running

__all__ = ["Asked", "Model", "Place", "Running", "needs_opencode", "script"]


def needs_opencode() -> bool:
    if not OPENCODE.exists():
        print("OpenCode is not installed: make test. It is not measured.")
    return OPENCODE.exists()
