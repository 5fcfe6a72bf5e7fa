"""`meantime install AGENT --wrap`: the servers of an agent go through the wrap, and back to the letter."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from meantime.surfaces.install.wrapped_entries import unwrap_json, unwrap_toml, wrap_json, wrap_toml

from .test_install import Owner

PLACE = ("mcpServers",)
ODD = """{
  // servers of mine
  "mcpServers": {
    "search": {"command" : "npx", "args": [ "-y",
        "se\\u0061rch", // the package
    ], "env": {"TOKEN": "x"}},
    "bare": { "command": "b\\u0061re" },
    "empty": { "command": "empty", "args": [] },
    "args first": { "args": ["a"], "command": "late" },
    "remote": { "type": "http", "url": "https://tools.example.com/mcp" },
    "meantime": { "command": "/bin/meantime", "args": ["mcp", "--by-session"] },
  },
  "other": [1,  2],
}
"""
TOML = """# mine
model = "m1"

[mcp_servers.search]
command = "npx" # the launcher
args = [ "-y",
  'search',
]
env = { TOKEN = "x" }

[mcp_servers."bare one"]
command = 'bare'

[mcp_servers.empty]
command = "empty"
args = []

[mcp_servers.remote]
url = "https://tools.example.com/mcp"

[mcp_servers.meantime]
command = "meantime"
args = ["mcp"]
"""
WORDS = (["meantime"], ["/usr/bin/python3", "-m", "meantime"])


@pytest.mark.parametrize("words", WORDS)
def test_json_is_wrapped_and_unwrapped_to_the_letter(words: list[str]):
    made = wrap_json(ODD, PLACE, [], words)
    assert made.done == ["search", "bare", "empty", "args first"]
    assert set(made.skipped) == {"remote", "meantime"}
    assert "// the package" in made.text
    assert wrap_json(made.text, PLACE, [], words).text == made.text, "never twice"
    back = unwrap_json(made.text, PLACE, [])
    assert back.done == made.done
    assert back.text == ODD


def test_a_wrapped_server_starts_what_it_started():
    plain = '{"mcpServers": {"s": {"command": "npx", "args": ["-y", "x"]}, "t": {"command": "t"}}}'
    found = json.loads(wrap_json(plain, PLACE, [], ["m"]).text)["mcpServers"]
    assert found["s"] == {"command": "m", "args": ["mcp", "--wrap", "--", "npx", "-y", "x"]}
    assert found["t"] == {"command": "m", "args": ["mcp", "--wrap", "t"]}


def test_options_that_somebody_added_to_the_wrap_go_with_it():
    plain = '{"mcpServers": {"s": {"command": "npx", "args": ["x"]}}}'
    made = wrap_json(plain, PLACE, [], ["meantime"]).text.replace(
        '"--wrap", ', '"--wrap", "--threshold", "5", '
    )
    assert unwrap_json(made, PLACE, []).text == plain


def test_the_command_of_opencode_is_a_list():
    plain = '{"mcp": {"s": {"type": "local", "command": [ "npx", "x" ], "enabled": true}}}'
    made = wrap_json(plain, ("mcp",), [], ["meantime"])
    assert json.loads(made.text)["mcp"]["s"]["command"] == ["meantime", "mcp", "--wrap", "--", "npx", "x"]
    assert unwrap_json(made.text, ("mcp",), []).text == plain


@pytest.mark.parametrize("words", WORDS)
def test_toml_is_wrapped_and_unwrapped_to_the_letter(words: list[str]):
    made = wrap_toml(TOML, [], words)
    assert made.done == ["search", "bare one", "empty"]
    found = tomllib.loads(made.text)["mcp_servers"]
    own = [*words[1:], "mcp", "--wrap"]
    assert found["search"]["command"] == words[0]
    assert found["search"]["args"] == [*own, "--", "npx", "-y", "search"]
    assert found["bare one"]["args"] == [*own, "bare"]
    assert wrap_toml(made.text, [], words).text == made.text, "never twice"
    assert unwrap_toml(made.text, []).text == TOML


def test_only_the_named_servers_are_wrapped():
    made = wrap_json(ODD, PLACE, ["bare", "nobody"], ["meantime"])
    assert made.done == ["bare"]
    assert made.skipped == {"nobody": "there is no such server"}
    assert unwrap_json(made.text, PLACE, ["bare"]).text == ODD


@pytest.mark.parametrize(
    ("agent", "file", "text"),
    [
        ("claude-code", ".claude.json", ODD),
        ("gemini", ".gemini/settings.json", ODD),
        ("codex", ".codex/config.toml", TOML),
    ],
    ids=["claude-code", "gemini", "codex"],
)
def test_the_change_is_shown_written_and_taken_back(tmp_path: Path, agent: str, file: str, text: str):
    owner = Owner(tmp_path)
    path = owner.put(file, text)
    shown = owner.install(agent, "--wrap", "--print")
    assert '"--wrap"' in shown.out, shown.err
    assert "remote is left as it is" in shown.err
    assert path.read_text() == text
    assert owner.install(agent, "--wrap", "--yes").code == 0
    assert '"--wrap"' in path.read_text()
    assert owner.install(agent, "--wrap", "--uninstall", "--yes").code == 0
    assert path.read_text() == text


def test_names_need_the_option(tmp_path: Path):
    found = Owner(tmp_path).install("claude-code", "search")
    assert found.code == 2
    assert "--wrap" in found.err


def test_the_file_of_goose_is_its_own(tmp_path: Path):
    assert "before a server's command" in Owner(tmp_path).install("goose", "--wrap").err
