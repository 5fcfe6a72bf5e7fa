"""`meantime install AGENT --wrap`: the servers of an agent go through the wrap, and back to the letter."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meantime.surfaces.install import jsonc
from meantime.surfaces.install.wrapped_entries import (
    NOT_UNDERSTOOD,
    STAYS_WRAPPED,
    unwrap_json,
    unwrap_toml,
    wrap_json,
    wrap_toml,
)

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
OPENCODE = """{
  "$schema": "https://opencode.ai/config.json",
  "mcp": {
    "search": { "type": "local", // mine
      "command": [
        "npx", "-y", "search"
      ], "environment": { "TOKEN": "{env:TOKEN}" } },
    "bare": { "enabled": true, "command": ["bare",], "type": "local" },
    "remote": { "type": "remote", "url": "https://tools.example.com/mcp" },
  },
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
WRAPPED = ["meantime", "mcp", "--wrap", "--by-session", "--"]  # in OpenCode
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
    found = json.loads(wrap_json(plain, PLACE, [], ["meantime"]).text)["mcpServers"]
    assert found["s"] == {"command": "meantime", "args": ["mcp", "--wrap", "--", "npx", "-y", "x"]}
    assert found["t"] == {"command": "meantime", "args": ["mcp", "--wrap", "--", "t"]}


@pytest.mark.parametrize("server", ['"command": "npx", "args": ["x"]', '"command": "bare"'])
def test_options_that_somebody_added_to_the_wrap_go_with_it(server: str):
    plain = f'{{"mcpServers": {{"s": {{{server}}}}}}}'
    made = wrap_json(plain, PLACE, [], ["meantime"]).text
    assert unwrap_json(made.replace('"--wrap", ', '"--wrap", "--threshold", "5", '), PLACE, []).text == plain


def test_a_wrap_that_somebody_wrote_stays():
    """For a URL or a server of [mcp.servers] there is no command to go back to."""
    args = ["--wrap", "https://tools.example.com/mcp"], ["--wrap", "files"], ["--wrap", "--prefix", "a", "b"]
    servers = {f"s{at}": {"command": "meantime", "args": ["mcp", *one]} for at, one in enumerate(args)}
    text = json.dumps({"mcpServers": servers})
    toml = "".join(
        f'[mcp_servers.{name}]\ncommand = "meantime"\nargs = {json.dumps(one["args"])}\n'
        for name, one in servers.items()
    )
    assert unwrap_json(text, PLACE, []) == (text, [], {})
    assert unwrap_toml(toml, []) == (toml, [], {})
    assert wrap_json(text, PLACE, [], ["meantime"]).text == text
    assert wrap_toml(toml, [], ["meantime"]).text == toml


BLANKS = st.sampled_from(["", " ", "\n", "\r\n    ", " /* why */ ", " // why\n\t"])
TEXTS = st.sampled_from(["npx", "a b", "\\u0061", "--", "--wrap", "mcp", "ä", "x,]}"])


@st.composite
def json_servers(draw: st.DrawFn) -> str:
    """As people and programs write them: members in any order, comments, commas at the end, blanks."""

    def listed(texts: list[str]) -> str:
        inside = ",".join(f"{draw(BLANKS)}{one}{draw(BLANKS)}" for one in texts)
        return f"[{inside}{',' if texts and draw(st.booleans()) else ''}{draw(BLANKS)}]"

    def text() -> str:
        return f'"{draw(TEXTS)}"'

    def server() -> str:
        members = {"command": text(), "env": f'{{"command": {text()}}}', "type": '"stdio"'}
        if draw(st.booleans()):
            members["args"] = listed([text() for _ in range(draw(st.integers(0, 3)))])
        names = draw(st.permutations(sorted(members)))
        return ",".join(
            f'{draw(BLANKS)}"{name}"{draw(BLANKS)}:{draw(BLANKS)}{members[name]}' for name in names
        )

    servers = ",".join(f'{draw(BLANKS)}"{name}": {{{server()}{draw(BLANKS)}}}' for name in ("one", "two"))
    return f'{draw(BLANKS)}{{"mcpServers": {{{servers}{draw(BLANKS)}}}}}{draw(BLANKS)}'


@given(json_servers(), st.sampled_from(WORDS))
def test_any_json_goes_there_and_back(text: str, words: list[str]):
    made = wrap_json(text, PLACE, [], words)
    before, after = (jsonc.found(one, PLACE) for one in (text, made.text))
    for name in ("one", "two"):
        own = before[name]
        wrapped = [*words[1:], "mcp", "--wrap", "--", own["command"], *own.get("args", [])]
        wanted = {**own, "command": words[0], "args": wrapped} if name in made.done else own
        assert after[name] == wanted
        assert name in made.done or made.skipped[name] == NOT_UNDERSTOOD
    assert wrap_json(made.text, PLACE, [], words).text == made.text, "never twice"
    assert unwrap_json(made.text, PLACE, []).text == text


ODD_TOML = {
    "lines of Windows": TOML.replace("\n", "\r\n"),
    "arguments first": '[mcp_servers.s]\nargs = ["a"] # own\ncommand = "late"\n',
    "empty arguments first": '[mcp_servers.s]\nargs = []\ncommand = "late"\n',
    "an inline table": '[mcp_servers]\ns = { command = "npx", args = ["x"] }\n',
    "dotted": 'mcp_servers.s.command = "npx"\nmcp_servers.s.args = ["x"]\n',
    "a long text": '[mcp_servers.s]\ncommand = """npx"""\n',
    "indented": '  [ mcp_servers . s ] # mine\n\tcommand = "npx"\n\targs = [ # these\n\t\t"x", ]\n',
    "no line at the end": '[mcp_servers.s]\ncommand = "npx"',
    "tables below": '[mcp_servers.s]\ncommand = "npx"\n[mcp_servers.s.env]\ncommand = "x"\nargs = "y"\n',
    "a heading in a text": "[mcp_servers.s]\nnote = '''\n[x]\n'''\ncommand = \"npx\"\n",
}


@pytest.mark.parametrize("text", ODD_TOML.values(), ids=ODD_TOML)
def test_odd_toml_goes_there_and_back_or_is_left(text: str):
    made = wrap_toml(text, [], ["meantime"])
    before, after = (tomllib.loads(one)["mcp_servers"] for one in (text, made.text))
    for name, own in before.items():
        wrapped = ["mcp", "--wrap", "--", own.get("command"), *own.get("args", [])]
        wanted = {**own, "command": "meantime", "args": wrapped} if name in made.done else own
        assert after[name] == wanted
        assert name in made.done or name in made.skipped
    assert wrap_toml(made.text, [], ["meantime"]).text == made.text, "never twice"
    assert unwrap_toml(made.text, []).text == text


def test_toml_that_somebody_has_formatted_goes_back():
    made = wrap_toml(TOML, [], ["meantime"])
    assert '"mcp", "--wrap", "--", ' in made.text
    lines = made.text.replace('"mcp", "--wrap", "--", ', '\n  "mcp",\n  \'--wrap\' ,\n  "--",\n  ')
    back = unwrap_toml(lines, [])
    assert back.done == made.done
    assert tomllib.loads(back.text) == tomllib.loads(TOML)


def test_a_wrap_that_cannot_be_taken_out_is_named():
    """Otherwise the server would not start any more as soon as Meantime is uninstalled."""
    made = wrap_toml(TOML, [], ["meantime"]).text
    noted = made.replace('"--", "npx"', '"--", # the server\n "npx"')
    back = unwrap_toml(noted, [])
    assert back.done == ["bare one", "empty"]
    assert back.skipped == {"search": STAYS_WRAPPED}
    assert '"--", # the server' in back.text


def test_the_command_of_opencode_is_a_list():
    plain = '{"mcp": {"s": {"type": "local", "command": [ "npx", "x" ], "enabled": true}}}'
    made = wrap_json(plain, ("mcp",), [], ["meantime"])
    assert json.loads(made.text)["mcp"]["s"]["command"] == [*WRAPPED, "npx", "x"]
    assert unwrap_json(made.text, ("mcp",), []).text == plain


@pytest.mark.parametrize("words", WORDS)
def test_toml_is_wrapped_and_unwrapped_to_the_letter(words: list[str]):
    made = wrap_toml(TOML, [], words)
    assert made.done == ["search", "bare one", "empty"]
    found = tomllib.loads(made.text)["mcp_servers"]
    own = [*words[1:], "mcp", "--wrap"]
    assert found["search"]["command"] == words[0]
    assert found["search"]["args"] == [*own, "--", "npx", "-y", "search"]
    assert found["bare one"]["args"] == [*own, "--", "bare"]
    assert wrap_toml(made.text, [], words).text == made.text, "never twice"
    assert unwrap_toml(made.text, []).text == TOML


def test_only_the_named_servers_are_wrapped():
    made = wrap_json(ODD, PLACE, ["bare", "nobody"], ["meantime"])
    assert made.done == ["bare"]
    assert made.skipped == {"nobody": "there is no such server"}
    assert unwrap_json(made.text, PLACE, ["bare"]).text == ODD


FILES = {
    "claude-code": (".claude.json", ODD),
    "gemini": (".gemini/settings.json", ODD.replace("\n", "\r\n")),
    "cursor": (".cursor/mcp.json", ODD),
    "opencode": (".config/opencode/opencode.jsonc", OPENCODE),
    "codex": (".codex/config.toml", TOML.replace("\n", "\r\n")),
}


@pytest.mark.parametrize("agent", FILES)
def test_the_change_is_shown_written_and_taken_back(tmp_path: Path, agent: str):
    owner = Owner(tmp_path)
    file, text = FILES[agent]
    path = owner.put(file, "")
    path.write_bytes(text.encode())
    shown = owner.install(agent, "--wrap", "--print")
    assert '"--wrap"' in shown.out, shown.err
    assert "remote is left as it is" in shown.err
    assert path.read_bytes() == text.encode()
    assert owner.install(agent, "--wrap", "--yes").code == 0
    written = path.read_bytes()
    assert b'"--wrap"' in written
    assert owner.install(agent, "--wrap", "--yes").code == 0
    assert path.read_bytes() == written, "never twice"
    assert owner.install(agent, "--wrap", "--uninstall", "--yes").code == 0
    assert path.read_bytes() == text.encode()
    assert copies(path) == []


def copies(path: Path) -> list[str]:
    return [one.name for one in path.parent.iterdir() if "before-meantime" in one.name]


def test_the_copy_goes_even_if_the_agent_has_written_its_file_again(tmp_path: Path):
    """Claude Code does so whenever it starts."""
    owner = Owner(tmp_path)
    path = owner.put(".claude.json", '{"mcpServers": {"s": {"command": "npx", "args": ["x"]}}}')
    assert owner.install("claude-code", "--wrap", "--yes").code == 0
    assert copies(path) == [".claude.json.before-meantime"]
    path.write_text(json.dumps({**json.loads(path.read_text()), "starts": 2}, indent=2))
    undone = owner.install("claude-code", "--wrap", "--uninstall", "--yes")
    assert f"- the copy {path}.before-meantime" in undone.out
    assert json.loads(path.read_text()) == {
        "mcpServers": {"s": {"command": "npx", "args": ["x"]}},
        "starts": 2,
    }
    assert copies(path) == []


def test_the_copy_of_an_installation_stays_with_it(tmp_path: Path):
    owner = Owner(tmp_path)
    text = '{"mcpServers": {"s": {"command": "npx", "args": ["x"]}}}'
    path = owner.put(".claude.json", text)
    for words in ([], ["--wrap"]):
        assert owner.install("claude-code", *words, "--yes").code == 0
    path.write_text(json.dumps({**json.loads(path.read_text()), "starts": 2}))
    assert owner.install("claude-code", "--wrap", "--uninstall", "--yes").code == 0
    assert copies(path) == [".claude.json.before-meantime"]
    assert owner.install("claude-code", "--uninstall", "--yes").code == 0
    assert json.loads(path.read_text()) == {**json.loads(text), "starts": 2}
    assert copies(path) == []


def test_it_is_said_that_hooks_tell_at_once(tmp_path: Path):
    owner = Owner(tmp_path)
    text = '{"mcpServers": {"s": {"command": "npx", "args": ["x"]}}}'
    owner.put(".claude.json", text)
    hint = "  meantime install claude-code\n"
    assert hint in owner.install("claude-code", "--wrap", "--yes").out
    assert hint not in owner.install("claude-code", "--wrap", "--uninstall", "--yes").out
    owner.install("claude-code", "--yes")
    assert hint not in owner.install("claude-code", "--wrap", "--yes").out


def test_an_agent_without_servers_is_told_so(tmp_path: Path):
    owner = Owner(tmp_path)
    done = owner.install("claude-code", "--wrap")
    assert done == (0, f"{owner.user}/.claude.json: there are no MCP servers in it.\n", "")
    owner.put(".claude.json", '{"mcpServers": {}}')
    assert owner.install("claude-code", "--wrap").out == done.out


def test_claude_codes_servers_of_the_folder_are_wrapped_too(tmp_path: Path):
    """`claude mcp add` puts them there."""
    owner = Owner(tmp_path)
    here, elsewhere = ({"mcpServers": {name: {"command": name}}} for name in ("here", "elsewhere"))
    projects = {str(owner.project): here, "/elsewhere": elsewhere}
    text = json.dumps({"projects": projects, "mcpServers": {"all": {"command": "all"}}}, indent=2)
    path = owner.put(".claude.json", text)
    done = owner.install("claude-code", "--wrap", "here", "all", "nobody", "--yes")
    assert "wrote" in done.out
    assert done.err.splitlines() == ["nobody is left as it is: there is no such server."]
    found = json.loads(path.read_text())
    assert found["projects"][str(owner.project)]["mcpServers"]["here"]["args"][-3:] == [
        "--wrap",
        "--",
        "here",
    ]
    assert found["mcpServers"]["all"]["args"][-3:] == ["--wrap", "--", "all"]
    assert found["projects"]["/elsewhere"] == elsewhere
    assert owner.install("claude-code", "--wrap", "--uninstall", "--yes").code == 0
    assert path.read_text() == text


def test_names_need_the_option(tmp_path: Path):
    found = Owner(tmp_path).install("claude-code", "search")
    assert found.code == 2
    assert "--wrap" in found.err


def test_the_file_of_goose_is_its_own(tmp_path: Path):
    assert "before a server's command" in Owner(tmp_path).install("goose", "--wrap").err
