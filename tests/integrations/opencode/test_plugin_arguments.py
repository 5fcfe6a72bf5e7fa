"""Our plugin for OpenCode, in Node, where its hooks can be called: to which tools it names the session."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.waiting import LIMIT

import meantime.surfaces.install as install

pytestmark = pytest.mark.agents

NODE = shutil.which("node")
SOURCE = Path(install.__file__).with_name("opencode.js")
BY_SESSION = ["meantime", "mcp", "--wrap", "--by-session", "--", "npx", "x"]
SERVERS = {
    "slow": {"type": "local", "command": BY_SESSION},
    "my server": {"type": "local", "command": BY_SESSION},
    "plain": {"type": "local", "command": ["npx", "x"]},
    "by hand": {"type": "local", "command": ["meantime", "mcp", "--wrap", "--", "npx", "--by-session"]},
    "remote": {"type": "remote", "url": "https://tools.example.com/mcp"},
    "off": {"enabled": False},
    "slow_other": {"type": "local", "command": ["npx", "x"]},
}
TOOLS = {
    "slow_gate": True,
    "my_server_gate": True,
    "meantime_start": True,
    "plain_gate": False,
    "by_hand_gate": False,
    "remote_gate": False,
    "off_gate": False,
    "slow_other_gate": False,  # a tool of either
    "bash": False,
}
CALLS = """
import { Meantime } from "./meantime.mjs"
const get = async () => ({ data: { parentID: undefined } })
const hooks = await Meantime({ client: { session: { get } }, directory: "/" })
await hooks.config({ mcp: SERVERS })
const seen = {}
for (const tool of TOOLS) {
  const output = { args: { text: "x", meantime_session: "the model's own" } }
  await hooks["tool.execute.before"]({ tool, sessionID: "ses_1" }, output)
  seen[tool] = output.args.meantime_session
}
console.log(JSON.stringify(seen))
process.exit(0)
"""


@pytest.mark.skipif(NODE is None, reason="there is no Node")
def test_the_session_is_named_to_our_tools_and_to_those_behind_a_wrap(tmp_path: Path):
    shutil.copy(SOURCE, tmp_path / "meantime.mjs")
    calls = CALLS.replace("SERVERS", json.dumps(SERVERS)).replace("TOOLS", json.dumps(list(TOOLS)))
    (tmp_path / "calls.mjs").write_text(calls)
    environ = {"MEANTIME_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    said = subprocess.run(
        [str(NODE), "calls.mjs"], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=LIMIT,
        check=True,
    )  # fmt: skip
    named = {True: "ses_1", False: "the model's own"}
    assert json.loads(said.stdout) == {tool: named[ours] for tool, ours in TOOLS.items()}
