"""`meantime install`: what is written for each agent, and that nothing else is touched."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.waiting import LIMIT

from meantime.app.main import VERBS
from meantime.surfaces.caller import executable
from meantime.surfaces.cli.invocation import run
from meantime.surfaces.install import config_entries, hook_lines, jsonc

from .person import Done, Person

AGENTS = ("claude-code", "codex", "opencode", "gemini", "goose", "cursor")
CLAUDE = ".claude/settings.json"


class Owner(Person):
    """Somebody whose whole home folder is for the test."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.project = folder / "project"
        self.project.mkdir()
        for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME"):
            self.environ.pop(name, None)
        self.user = folder / "user"
        self.user.mkdir()
        self.environ["HOME"] = str(self.user)

    def install(self, *arguments: str, **environ: str) -> Done:
        """In this process: it needs no daemon, and there are many of them."""
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
        with pytest.MonkeyPatch.context() as here:
            here.setattr(os, "environ", {**self.environ, **environ})
            here.chdir(self.project)
            for name, stream in (("stdout", out), ("stderr", err), ("stdin", io.StringIO())):
                here.setattr(sys, name, stream)
            code = run(VERBS, ["install", *arguments], "0")
        texts = [stream.buffer.getvalue().decode() for stream in (out, err)]  # type: ignore[attr-defined]
        return Done(code, *texts)

    def files(self) -> dict[str, str]:
        """Everything but the copies, by its path."""
        found = [path for root in (self.user, self.project) for path in root.rglob("*") if path.is_file()]
        kept = [path for path in found if not path.name.endswith(".before-meantime")]
        return {str(path.relative_to(self.folder)): path.read_text() for path in kept}

    def put(self, name: str, text: str) -> Path:
        path = self.user / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


@pytest.fixture
def owner(tmp_path: Path) -> Owner:
    return Owner(tmp_path)


def test_whom_it_is_for_must_be_said(owner: Owner):
    done = owner.install()
    assert (done.code, done.err.splitlines()[0]) == (
        2,
        f"meantime: Missing argument 'AGENT'. Choose from: {', '.join(AGENTS)}",
    )
    assert all(name in owner.install("--help").out for name in AGENTS)


@pytest.mark.parametrize("agent", AGENTS)
def test_without_mcp_nothing_is_written(owner: Owner, agent: str, monkeypatch: pytest.MonkeyPatch):
    """The agent would start a server that cannot run; and one that has it already can still get rid of it."""
    owner.install(agent, "--yes")
    there = owner.files()
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "mcp" else find(name))
    for arguments in ([agent, "--yes"], [agent, "--yes", "--scope", "project"]):
        done = owner.install(*arguments)
        assert (done.code, "pip install 'meantime[server,mcp]'" in done.err) == (1, True)
        assert owner.files() == there
    assert owner.install(agent, "--yes", "--uninstall").code == 0
    assert owner.files() == {}


def test_the_server_without_mcp_names_the_package_to_install(owner: Owner):
    missing = "raise ModuleNotFoundError(name='mcp_types')\n"  # as where only meantime[server] is installed
    (owner.folder / "mcp_types.py").write_text(missing)
    done = owner("mcp", environ={"PYTHONPATH": str(owner.folder), "MEANTIME_NO_START": "1"})
    assert done.code == 1
    assert done.err.splitlines()[0] == "meantime: `mcp` needs mcp, which is not installed."
    assert "pip install 'meantime[server,mcp]'" in done.err


@pytest.mark.parametrize("scope", ["user", "project"])
@pytest.mark.parametrize("agent", AGENTS)
def test_it_comes_and_goes(owner: Owner, agent: str, scope: str):
    assert owner.install(agent, "--scope", scope, "--yes").code == 0
    there = owner.files()
    assert there
    assert all(name.startswith("user" if scope == "user" else "project") for name in there)
    again = owner.install(agent, "--scope", scope, "--yes")
    assert (again.code, "nothing to change" in again.out) == (0, True)
    assert owner.files() == there
    gone = owner.install(agent, "--scope", scope, "--yes", "--uninstall")
    assert gone.code == 0
    assert owner.files() == {}
    assert "nothing to change" in owner.install(agent, "--scope", scope, "--uninstall").out


WHERE = {
    "claude-code": (".claude.json", ("mcpServers", "meantime")),
    "opencode": (".config/opencode/opencode.json", ("mcp", "meantime")),
    "gemini": (".gemini/settings.json", ("mcpServers", "meantime")),
    "goose": (".agents/plugins/meantime/.mcp.json", ("mcpServers", "tasks")),
    "cursor": (".cursor/mcp.json", ("mcpServers", "meantime")),
}


@pytest.mark.parametrize("agent", list(WHERE))
def test_the_server_is_ours(owner: Owner, agent: str):
    owner.install(agent, "--yes")
    name, path = WHERE[agent]
    entry: Any = json.loads((owner.user / name).read_text())
    for word in path:
        entry = entry[word]
    words = entry["command"] if isinstance(entry["command"], list) else [entry["command"], *entry["args"]]
    named = (
        [] if agent == "goose" else ["--by-session"]
    )  # a server of goose has one session for its whole life
    assert words[-1 - len(named) :] == ["mcp", *named]
    assert os.access(words[0], os.X_OK)


def test_codex_has_a_table_and_hooks(owner: Owner):
    owner.install("codex", "--yes")
    table = tomllib.loads((owner.user / ".codex/config.toml").read_text())["mcp_servers"]["meantime"]
    assert table["args"][-1] == "mcp"
    given = set(table["env_vars"])  # Codex gives its server nothing else
    assert {"MEANTIME_HOME", "MEANTIME_CONFIG", "XDG_STATE_HOME", "XDG_CONFIG_HOME"} <= given  # the daemon
    assert {"MEANTIME_THREAD", "MEANTIME_TASK"} <= given  # whose calls they are, and what they are part of
    assert "MEANTIME_NO_START" in given
    hooks = json.loads((owner.user / ".codex/hooks.json").read_text())["hooks"]
    assert list(hooks) == ["SessionStart", "UserPromptSubmit", "PostToolUse", "Stop"]
    told, wakes = (group["hooks"][0]["command"] for group in hooks["Stop"])
    assert "stop --host codex" in told
    assert wakes.endswith("wait --host codex")


def test_codex_waits_for_our_server_but_not_in_a_project(owner: Owner):
    """Without `required` it asks its model before our tools are there. A colleague who has no meantime could
    not start Codex with it."""
    owner.install("codex", "--yes")
    owner.install("codex", "--yes", "--scope", "project")
    own, shared = (
        tomllib.loads((folder / ".codex/config.toml").read_text())["mcp_servers"]["meantime"]
        for folder in (owner.user, owner.project)
    )
    assert own["required"] is True
    assert own["startup_timeout_sec"] >= 30
    assert "required" not in shared


def test_an_older_table_of_ours_in_codex_is_replaced(owner: Owner):
    old = (
        '# >>> meantime: written by `meantime install`\n[mcp_servers.meantime]\ncommand = "/old/meantime"\n'
        'args = ["mcp"]\n# <<< meantime\n'
    )
    path = owner.put(".codex/config.toml", f'model = "x"\n\n{old}\n[mcp_servers.other]\ncommand = "y"\n')
    assert owner.install("codex", "--yes").code == 0
    assert "/old/" not in path.read_text()
    servers = tomllib.loads(path.read_text())["mcp_servers"]
    assert servers["meantime"]["required"] is True
    assert servers["other"] == {"command": "y"}


def test_gemini_names_the_session_in_calls_of_our_server(owner: Owner):
    owner.install("gemini", "--scope", "project", "--yes")
    hooks = json.loads((owner.project / ".gemini/settings.json").read_text())["hooks"]
    (group,) = hooks["BeforeTool"]
    assert group["matcher"] == "mcp_meantime_.*"
    assert group["hooks"][0]["command"] == "meantime hook pre-tool --host gemini"


def test_cursor_has_hooks_without_groups(owner: Owner):
    """It wants a version, and hears a stop hook five times in a row unless it is told otherwise."""
    owner.install("cursor", "--scope", "project", "--yes")
    found = json.loads((owner.project / ".cursor/hooks.json").read_text())
    assert found["version"] == 1
    assert set(found["hooks"]) == {"stop", "beforeMCPExecution"}  # one it does not know voids the file
    (tells,) = found["hooks"]["stop"]
    assert tells["command"] == "meantime hook stop --host cursor"
    assert tells["loop_limit"] is None


def test_cursors_own_hooks_stay(owner: Owner):
    text = '{\n  "version": 1, // mine\n  "hooks": {\n    "stop": [{"command": "beep"}]\n  }\n}\n'
    path = owner.put(".cursor/hooks.json", text)
    owner.install("cursor", "--yes")
    others, ours = jsonc.found(path.read_text(), ("hooks", "stop"))
    assert (others, "hook stop" in ours["command"]) == ({"command": "beep"}, True)
    assert "nothing to change" in owner.install("cursor", "--yes").out
    owner.install("cursor", "--yes", "--uninstall")
    assert path.read_text() == text


def test_claude_code_has_one_hook_that_wakes(owner: Owner):
    owner.install("claude-code", "--scope", "project", "--yes")
    hooks = json.loads((owner.project / CLAUDE).read_text())["hooks"]
    told, wakes = (group["hooks"][0] for group in hooks["Stop"])
    assert told["command"].endswith("|| exec meantime hook stop --host claude-code")
    assert "asyncRewake" not in told
    assert wakes["command"] == "meantime hook wait --host claude-code"
    assert wakes["asyncRewake"] is True


FOREIGN = """{
  // mine
  "model": "opus",
  "hooks": {
    "Stop": [
      {"matcher": "", "hooks": [{"type": "command", "command": "beep"}]} // keep
    ],
    "PreToolUse": []
  }, /* and this */
  "permissions": {"allow": ["Bash(ls)"],},
}
"""


def test_what_others_wrote_is_kept_to_the_letter(owner: Owner):
    path = owner.put(CLAUDE, FOREIGN)
    owner.install("claude-code", "--yes")
    changed = path.read_text()
    kept = [line for line in changed.splitlines() if line in FOREIGN.splitlines()]
    assert "  // mine" in kept
    assert "  }, /* and this */" in kept
    assert jsonc.found(changed, ("hooks", "Stop", 0, "hooks", 0, "command")) == "beep"
    assert len(jsonc.found(changed, ("hooks", "Stop"))) == 3
    owner.install("claude-code", "--yes", "--uninstall")
    assert jsonc.parse(path.read_text()).value == jsonc.parse(FOREIGN).value
    assert path.read_text() == FOREIGN


@pytest.mark.parametrize("program", ["/opt/my tools/meantime", "meantime", "/usr/bin/python3 -m meantime"])
@pytest.mark.parametrize("moment", ["session-start", "stop", "wait"])
@pytest.mark.parametrize("host", ["claude-code", "codex", "gemini", "goose"])
def test_a_line_of_ours_is_found_whatever_stands_around_it(
    program: str, moment: str, host: str, monkeypatch: pytest.MonkeyPatch
):
    words = [program] if "tools" in program else program.split()
    for is_there in (True, False):
        monkeypatch.setattr(os, "access", lambda path, mode, is_there=is_there: is_there)
        assert config_entries.OURS.search(hook_lines.line(words, moment, host))
    assert not config_entries.OURS.search("meantime run -- hook stop")


def test_a_hook_of_others_in_our_group_stays(owner: Owner):
    owner.install("claude-code", "--yes")
    path = owner.user / CLAUDE
    settings = json.loads(path.read_text())
    settings["hooks"]["Stop"][0]["hooks"].append({"type": "command", "command": "beep"})
    path.write_text(json.dumps(settings))
    owner.install("claude-code", "--yes", "--uninstall")
    left = json.loads(path.read_text())["hooks"]
    assert left == {"Stop": [{"hooks": [{"type": "command", "command": "beep"}]}]}


def test_an_older_one_of_ours_is_replaced(owner: Owner):
    old = {"command": "/old/bin/meantime", "args": ["mcp"], "type": "stdio"}
    hook = {"type": "command", "command": "/old/bin/meantime hook stop --host claude-code"}
    owner.put(".claude.json", json.dumps({"mcpServers": {"meantime": old}}))
    owner.put(CLAUDE, json.dumps({"hooks": {"Stop": [{"hooks": [hook]}]}}))
    assert owner.install("claude-code", "--yes").code == 0
    assert "/old/bin" not in "".join(owner.files().values())
    assert len(json.loads((owner.user / CLAUDE).read_text())["hooks"]["Stop"]) == 2


@pytest.mark.parametrize(
    ("agent", "name", "text"),
    [
        ("claude-code", ".claude.json", '{"mcpServers": {"meantime": {"command": "other", "args": []}}}'),
        ("gemini", ".gemini/settings.json", '{"mcpServers": {"meantime": {"url": "http://x"}}}'),
        ("opencode", ".config/opencode/plugin/meantime.js", "export const Mine = 1\n"),
        ("goose", ".agents/plugins/meantime/plugin.json", '{"name": "mine"}'),
        ("goose", ".agents/plugins/meantime/.mcp.json", '{"mcpServers": {"tasks": {"command": "other"}}}'),
        ("codex", ".codex/config.toml", '[mcp_servers.meantime]\ncommand = "other"\n'),
        ("codex", ".codex/config.toml", 'mcp_servers = {other = {command = "x"}}\n'),
        ("codex", ".codex/config.toml", "not toml"),
        ("codex", ".codex/hooks.json", '{"hooks": ['),
        ("claude-code", CLAUDE, '{"hooks": {"Stop": {"not": "a list"}}}'),
        ("claude-code", CLAUDE, '{"hooks": "none"}'),
        ("claude-code", CLAUDE, '{"a": 1, "a": 2}'),
        ("claude-code", CLAUDE, "[]"),
        ("gemini", ".gemini/settings.json", '{"a": 1} {"b": 2}'),
    ],
)
def test_never_over_something_else(owner: Owner, agent: str, name: str, text: str):
    owner.put(name, text)
    before = owner.files()
    done = owner.install(agent, "--yes")
    assert done.code == 1
    assert len(done.err.splitlines()) == 2
    assert owner.files() == before


def test_what_is_not_utf_8_is_not_touched(owner: Owner):
    path = owner.put(CLAUDE, "")
    path.write_bytes(b'{"a": "\xff"}')
    assert owner.install("claude-code", "--yes").code == 1
    assert path.read_bytes() == b'{"a": "\xff"}'


def test_codex_keeps_the_rest_of_its_file(owner: Owner):
    text = '# mine\nmodel = "x"\n\n[mcp_servers.other]\ncommand = "y" # keep\n'
    path = owner.put(".codex/config.toml", text)
    owner.install("codex", "--yes")
    assert path.read_text().startswith(text)
    assert set(tomllib.loads(path.read_text())["mcp_servers"]) == {"other", "meantime"}
    owner.install("codex", "--yes", "--uninstall")
    assert path.read_text() == text


def test_the_change_is_shown_first_and_made_when_it_is_confirmed(owner: Owner):
    path = owner.put(CLAUDE, '{\n  "model": "opus"\n}\n')
    shown = owner.install("claude-code", "--print")
    assert shown.code == 0
    assert '+        "hooks": [' in shown.out
    asked = owner.install("claude-code")
    assert asked.code == 2
    assert asked.out == shown.out
    assert owner.files() == {f"user/{CLAUDE}": '{\n  "model": "opus"\n}\n'}
    refusing = owner.terminal("install", "claude-code")
    refusing.until("Make this change?")
    refusing.type("n\n")
    assert refusing.end() == 1
    assert "hooks" not in path.read_text()
    agreeing = owner.terminal("install", "claude-code")
    agreeing.until("Make this change?")
    agreeing.type("y\n")
    assert agreeing.end() == 0
    assert "hooks" in path.read_text()


def test_secrets_beside_the_change_are_not_shown(owner: Owner):
    owner.put(".claude.json", '{\n  "oauth": "top-secret",\n  "mcpServers": {\n  }\n}\n')
    assert "top-secret" not in owner.install("claude-code", "--print").out


def test_a_copy_a_mode_and_a_link_are_kept(owner: Owner):
    real = owner.put("dotfiles/settings.json", '{"model": "opus"}')
    real.chmod(0o640)
    (owner.user / ".claude").mkdir()
    link = owner.user / CLAUDE
    link.symlink_to(real)
    owner.install("claude-code", "--yes")
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert "hooks" in real.read_text()
    assert real.with_name("settings.json.before-meantime").read_text() == '{"model": "opus"}'
    assert not [path for path in real.parent.iterdir() if path.name.startswith(".")]


def copies(owner: Owner) -> list[str]:
    return sorted(path.name for path in owner.user.rglob("*.before-meantime"))


def test_uninstall_removes_the_copies_that_install_made(owner: Owner):
    """Even of a file that its owner, or the agent, has changed since."""
    path = owner.put(CLAUDE, '{"model": "opus"}')
    owner.put(".claude.json", '{"a": 1}')
    owner.install("claude-code", "--yes")
    assert copies(owner) == [".claude.json.before-meantime", "settings.json.before-meantime"]
    path.write_text(path.read_text().replace("opus", "sonnet"))
    shown = owner.install("claude-code", "--uninstall", "--print")
    assert "- the copy" in shown.out
    assert len(copies(owner)) == 2
    gone = owner.install("claude-code", "--yes", "--uninstall")
    assert f"removed {path}.before-meantime" in gone.out
    assert copies(owner) == []
    assert json.loads(path.read_text()) == {"model": "sonnet"}
    assert "nothing to change" in owner.install("claude-code", "--uninstall").out


def test_a_copy_that_somebody_changed_stays_and_is_named(owner: Owner):
    owner.put(CLAUDE, '{"model": "opus"}')
    owner.install("claude-code", "--yes")
    copy = owner.user / f"{CLAUDE}.before-meantime"
    for text in (b'{"mine": 1}', b"\xff"):
        copy.write_bytes(text)
        gone = owner.install("claude-code", "--yes", "--uninstall")
        assert (gone.code, f"kept {copy}" in gone.out) == (0, True)
        assert copy.read_bytes() == text


def test_after_the_copy_was_put_back_it_goes_too(owner: Owner):
    """Somebody took the change back by hand: nothing of ours is left in the file, only the copy."""
    path = owner.put(CLAUDE, '{"model": "opus"}')
    owner.install("claude-code", "--yes")
    copy = path.with_name("settings.json.before-meantime")
    path.write_text(copy.read_text())
    owner.install("claude-code", "--yes", "--uninstall")
    assert path.read_text() == '{"model": "opus"}'
    assert copies(owner) == []


@pytest.mark.parametrize("changed", [False, True])
def test_a_copy_without_a_record_goes_only_if_nothing_is_lost(owner: Owner, changed: bool):
    """An older version kept no record, and neither does a colleague who installed it in the project."""
    path = owner.put(CLAUDE, '{"model": "opus"}')
    owner.install("claude-code", "--yes")
    (owner.home / "copies.json").unlink()
    if changed:
        path.write_text(path.read_text().replace("opus", "sonnet"))
    owner.install("claude-code", "--yes", "--uninstall")
    assert copies(owner) == (["settings.json.before-meantime"] if changed else [])


PROGRAM = Path(sys.executable).with_name("meantime")


@pytest.mark.parametrize("found", [True, False])
def test_a_login_shell_that_does_not_find_it_is_warned_of(owner: Owner, found: bool):
    """Codex runs commands in one. Its PATH is what the profile says."""
    folder = f"{PROGRAM.parent}:" if found else ""
    owner.put(".profile", f"echo welcome\nPATH={folder}/usr/bin:/bin\n")
    done = subprocess.run(
        [PROGRAM, "install", "codex", "--yes"], env={**owner.environ, "SHELL": "/bin/sh"}, cwd=owner.project,
        capture_output=True, text=True, timeout=LIMIT, check=True,
    )  # fmt: skip
    assert ("does not find this `meantime`" in done.stderr) is not found
    assert (str(PROGRAM) in done.stderr) is not found


def test_a_profile_that_hangs_is_not_waited_for(owner: Owner, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(executable, "PATIENCE", 0.3)
    shell = owner.put("shell", "#!/bin/sh\nexec sleep 300\n")
    shell.chmod(0o700)
    assert executable.login_shell_finds(str(PROGRAM), {"SHELL": str(shell)})
    assert executable.login_shell_finds(str(PROGRAM), {"SHELL": "/no/such/shell"})


@pytest.mark.parametrize("found", [True, False])
def test_hints_name_a_command_that_the_shell_finds(owner: Owner, found: bool):
    path = f"{PROGRAM.parent}:/usr/bin:/bin" if found else "/usr/bin:/bin"
    done = subprocess.run(
        [PROGRAM, "no-such-verb"], env={**owner.environ, "PATH": path}, capture_output=True, text=True,
        timeout=LIMIT, check=False,
    )  # fmt: skip
    name = "meantime" if found else str(PROGRAM)
    assert done.stderr.splitlines()[1] == f"  `{name} --help` lists the verbs."


def test_the_agents_own_variables_say_where(owner: Owner):
    owner.install("claude-code", "--yes", CLAUDE_CONFIG_DIR=str(owner.folder / "cc"))
    owner.install("codex", "--yes", CODEX_HOME=str(owner.folder / "cx"))
    owner.install("opencode", "--yes", XDG_CONFIG_HOME=str(owner.folder / "xdg"))
    owner.install("goose", "--yes", GOOSE_PATH_ROOT=str(owner.folder / "goose"))
    assert owner.files() == {}
    assert (owner.folder / "goose/.agents/plugins/meantime/hooks/hooks.json").is_file()
    for name in ("cc/.claude.json", "cc/settings.json", "cx/config.toml", "xdg/opencode/plugin/meantime.js"):
        assert (owner.folder / name).is_file()


def test_goose_has_a_plugin_whose_folder_goes_with_it(owner: Owner):
    owner.put(".agents/plugins/other/plugin.json", "{}")
    owner.install("goose", "--yes")
    folder = owner.user / ".agents/plugins/meantime"
    hooks = json.loads((folder / "hooks/hooks.json").read_text())["hooks"]
    assert list(hooks) == ["Stop"]  # goose hears what no other hook prints
    owner.install("goose", "--yes", "--uninstall")
    assert [path.name for path in folder.parent.iterdir()] == ["other"]


def test_what_others_put_into_the_plugin_of_goose_stays(owner: Owner):
    owner.install("goose", "--yes")
    kept = owner.put(".agents/plugins/meantime/notes.txt", "mine")
    owner.install("goose", "--yes", "--uninstall")
    assert owner.files() == {"user/.agents/plugins/meantime/notes.txt": "mine"}
    assert kept.parent.is_dir()


def test_opencode_with_comments(owner: Owner):
    path = owner.put(".config/opencode/opencode.jsonc", '{\n  // models\n  "model": "x",\n}\n')
    owner.install("opencode", "--yes")
    assert "// models" in path.read_text()
    assert not path.with_suffix(".json").exists()
    owner.install("opencode", "--yes", "--uninstall")
    assert path.read_text() == '{\n  // models\n  "model": "x",\n}\n'


def test_a_folder_that_cannot_be_written(owner: Owner):
    path = owner.put(CLAUDE, "{}")
    if os.geteuid() == 0:
        path.unlink()
        path.parent.rmdir()
        path.parent.write_text("a file in its place")
    else:
        path.parent.chmod(0o500)
    done = owner.install("claude-code", "--yes")
    assert done.code == 1
    assert "cannot" in done.err or "could not" in done.err


@pytest.mark.parametrize("agent", ["nobody", ""])
def test_an_agent_that_is_not_known(owner: Owner, agent: str):
    assert owner.install(agent).code == 2


# -- JSON with comments

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
BLANKS = st.sampled_from(["", " ", "\n", "\n  ", " // note, {\n", "/* } */", "\t"])


@st.composite
def written(draw: st.DrawFn, value: Any) -> str:
    """A value as somebody might write it."""
    blank = lambda: draw(BLANKS)  # noqa: E731
    if isinstance(value, dict):
        parts = [
            f"{blank()}{json.dumps(name)}{blank()}:{blank()}{draw(written(it))}{blank()}"
            for name, it in value.items()
        ]
    elif isinstance(value, list):
        parts = [f"{blank()}{draw(written(it))}{blank()}" for it in value]
    else:
        return json.dumps(value)
    inside = ",".join(parts) + ("," if parts and draw(st.booleans()) else "") + blank()
    return f"{{{inside}}}" if isinstance(value, dict) else f"[{inside}]"


@settings(max_examples=60)
@given(st.data())
def test_adding_and_removing_change_nothing_else(data: st.DataObject):
    value = data.draw(st.dictionaries(st.text(max_size=4), VALUES, max_size=4))
    text = data.draw(written(value))
    assert jsonc.parse(text).value == value
    name = data.draw(st.text(max_size=4).filter(lambda name: name not in value))
    more = jsonc.added(text, (name, "list", -1), {"x": 1})
    assert jsonc.parse(more).value == {**value, name: {"list": [{"x": 1}]}}
    assert jsonc.parse(jsonc.removed(more, (name, "list", 0))).value == value
    for each in value:
        assert jsonc.parse(jsonc.removed(text, (each,))).value == {
            k: v for k, v in value.items() if k != each
        }


@pytest.mark.parametrize(
    "text", ["", "{", '{"a"}', '{"a":}', "{a: 1}", '{"a": 1 "b": 2}', "[1 2]", "nul", '"a', "{} x", "[" * 300]
)
def test_what_is_no_json(text: str):
    with pytest.raises(jsonc.NotJson):
        jsonc.parse(text)
