"""The guard of hooks: while a conversation has nothing to be told, the shell says so, and no Python starts.

Each test runs the very line that `meantime install` writes, in the shell of that host.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT, until

from meantime.surfaces.caller.caller_thread import thread_of_session
from meantime.surfaces.install.hook_lines import line

from .person import MEANTIME, Person, took_too_long, wait

pytestmark = pytest.mark.processes

IDS = re.compile(r'<task-notification id=\\"([^"]+)\\"')
VARIABLES = {"claude-code": "CLAUDE_CODE_SESSION_ID", "gemini": "GEMINI_SESSION_ID"}
SHELLS = {"claude-code": "/bin/sh", "codex": "bash", "gemini": "bash"}


class Host:
    """An agent with a session, a transcript, and a Python that leaves a trace when it starts."""

    def __init__(self, person: Person, name: str, session: str) -> None:
        self.person = person
        self.name = name
        self.session = session
        self.thread = thread_of_session(session)
        self.quiet = person.home / "quiet" / self.thread
        self.transcript = person.folder / f"{session}.jsonl"
        self.transcript.touch()
        self.asking = person.daemon()
        self.environ = {**person.environ}
        if name in VARIABLES:
            self.environ[VARIABLES[name]] = session
        program = person.folder / "bin" / "meantime"
        self.trace = person.folder / "started"
        if not program.exists():
            program.parent.mkdir()
            words = " ".join(MEANTIME)
            program.write_text(f'#!/bin/sh\n[ "$1" = hook ] && echo x >> {self.trace}\nexec {words} "$@"\n')
            program.chmod(0o755)
        self.program = [str(program)]

    def hook(self, moment: str, shell: str = "", **more: object) -> list[str]:
        """The ids that it was given, which it has not written down yet. Gemini CLI is told with a prompt, not
        after a tool: it would not keep that."""
        if self.name == "gemini" and moment == "post-tool":
            moment, more = "user-prompt", {**more, "hook_event_name": "BeforeAgent", "prompt": "go on"}
        said = json.dumps({**self.said, **more}, separators=(",", ":"))  # as the hosts write it
        done = self.run(moment, shell, said)
        assert (done.returncode, done.stderr) == (0, ""), done
        return IDS.findall(done.stdout)

    def run(
        self, moment: str, shell: str = "", said: str = "", **environ: str
    ) -> subprocess.CompletedProcess:
        words = [shell or SHELLS[self.name], "-c", line(self.program, moment, self.name)]

        def done() -> subprocess.CompletedProcess[str] | None:
            found = subprocess.run(
                words, input=said, env={**self.environ, **environ}, text=True, cwd=self.person.folder,
                capture_output=True, timeout=LIMIT, check=False,
            )  # fmt: skip
            return None if took_too_long(found.stderr) else found

        return until(done, "the daemon answers a hook in time")

    @property
    def said(self) -> dict[str, object]:
        path = str(self.transcript)
        return {"session_id": self.session, "transcript_path": path, "cwd": "/", "hook_event_name": "Stop"}

    def starts(self) -> int:
        """How often Python was started until now."""
        return self.trace.read_text().count("x") if self.trace.exists() else 0

    def write(self, *ids: str) -> None:
        with self.transcript.open("a") as to:
            for id in ids:
                message = {"id": id, "type": "user", "content": f'<task-notification id="{id}"/>'}
                print(json.dumps(message, separators=(",", ":")), file=to)

    def ended(self) -> str:
        task = self.asking.post("/v1/tasks", {"thread": self.thread, "command": "echo out"})
        wait(self.asking, task["id"])
        return f"{task['id']}.1"


@pytest.fixture(params=["claude-code", "codex", "gemini"])
def host(person: Person, request: pytest.FixtureRequest) -> Host:
    name = re.sub(r"\W+", "-", request.node.name).strip("-")
    return Host(person, request.param, f"{name}-{request.param}")


def test_no_python_starts_while_there_is_nothing_to_tell(host: Host):
    assert host.hook("post-tool") == []
    assert host.quiet.is_file()
    before = host.starts()
    for moment in ("user-prompt", "post-tool", "stop"):
        assert host.hook(moment) == []
    assert host.starts() == before


def test_an_ending_takes_the_file_away_until_the_conversation_has_it(host: Host):
    assert host.hook("post-tool") == []
    id = host.ended()
    assert not host.quiet.exists()
    assert host.hook("post-tool") == [id]
    assert not host.quiet.exists()  # it is leased, and nobody has confirmed it
    host.write(id)
    assert host.hook("stop") == []
    assert host.quiet.is_file()


def test_a_tool_response_of_a_megabyte_is_read_or_left_unread(host: Host):
    """A hook that leaves it unread breaks the pipe of its host. All of them bear that, and so does a test."""
    response: dict[str, Any] = {"tool_response": {"stdout": "x" * 1_000_000}}
    assert host.hook("post-tool", **response) == []
    assert host.quiet.is_file()
    before = host.starts()
    assert host.hook("post-tool", **response) == []
    assert host.starts() == before
    id = host.ended()
    assert host.hook("post-tool", **response) == [id]


def test_without_a_daemon_no_python_starts_either(tmp_path: Path):
    for name in SHELLS:
        (tmp_path / name).mkdir()
        lonely = Host(Person(tmp_path / name), name, "s")
        assert lonely.hook("session-start") == []
        before = lonely.starts()
        assert lonely.hook("post-tool") == []
        assert lonely.starts() == before


def test_a_daemon_that_comes_while_a_hook_finds_none_is_not_missed(loner: Person):
    """Between the look at the socket and the making of the file a daemon comes, and something ends."""
    host = Host(loner, "claude-code", "s")
    assert host.hook("session-start") == []
    host.quiet.unlink()
    code = (
        "import os, subprocess, sys\n"
        "from meantime.surfaces.hooks import hook_client\n"
        "made, words = hook_client._made, sys.argv[1:]\n"
        "def late(path):\n"
        "    if 'quiet' in path: subprocess.run(words, check=True, stdout=subprocess.DEVNULL)\n"
        "    return made(path)\n"
        "hook_client._made = late\n"
        "hook_client.main(['post-tool'])\n"
    )
    words = [*MEANTIME, "run", "--thread", host.thread, "--", "true"]
    environ = {**host.environ, "PYTHONPATH": str(Path(sys.modules["meantime"].__file__ or "").parents[1])}
    said = json.dumps(host.said)
    subprocess.run([sys.executable, "-c", code, *words], env=environ, input=said, text=True, check=True)
    assert not host.quiet.exists()
    (task,) = loner.json("ps", "-a", "--thread", host.thread)["tasks"]
    assert loner("wait", "-q", task["id"]).code == 0
    assert host.hook("post-tool") == [f"{task['id']}.1"]


@pytest.mark.parametrize("shell", ["/bin/sh", "bash", "zsh", "fish"])
def test_the_line_for_codex_is_for_every_shell(person: Person, shell: str):
    """Codex uses the login shell of its user. (bash and sh run the others, too.)"""
    if subprocess.run(["which", shell], capture_output=True, check=False).returncode:
        pytest.skip(f"{shell} is not installed")
    host = Host(person, "codex", f"shell-{shell.strip('/').replace('/', '-')}")
    id = host.ended()
    assert host.hook("post-tool", shell) == [id]
    host.write(id)
    assert host.hook("post-tool", shell) == []
    before = host.starts()
    assert host.hook("post-tool", shell) == []
    assert host.starts() == before


def test_a_session_at_the_end_of_what_codex_says_is_found_too(person: Person):
    """And what is longer than the guard reads, with letters across its cut."""
    host = Host(person, "codex", "late")
    id = host.ended()
    said = json.dumps({"cwd": "/" + "ü" * 400, **host.said}, ensure_ascii=False)
    done = host.run("post-tool", said=said)
    assert IDS.findall(done.stdout) == [id], done


@pytest.mark.parametrize("thread", ["..", ".", "../ledger.db", "a/b"])
def test_a_name_that_is_a_path_is_never_quiet(person: Person, thread: str):
    host = Host(person, "claude-code", "s-1")
    host.quiet.parent.mkdir(exist_ok=True)  # otherwise no path leads through it
    before = host.starts()
    for _ in range(2):
        done = host.run("post-tool", said=json.dumps(host.said), MEANTIME_THREAD=thread)
        assert (done.returncode, done.stdout) == (0, "")
    assert host.starts() == before + (0 if thread == "../ledger.db" else 2)


def test_a_thread_of_its_own_is_guarded_by_its_name(person: Person):
    host = Host(person, "claude-code", "s-2")
    host.environ["MEANTIME_THREAD"] = host.thread = "conv-1"
    assert host.hook("stop") == []
    assert (person.home / "quiet" / "conv-1").is_file()
    id = host.ended()
    assert host.hook("stop") == [id]


@pytest.mark.parametrize("name", ["MEANTIME_HOME", "XDG_STATE_HOME", "MEANTIME_THREAD"])
def test_a_variable_that_is_empty_hides_nothing(person: Person, tmp_path: Path, name: str):
    host = Host(person, "claude-code", f"empty-{name}")
    if name != "MEANTIME_THREAD":
        del host.environ["MEANTIME_HOME"]
        (tmp_path / ".local/state").mkdir(parents=True)
        (tmp_path / ".local/state/meantime").symlink_to(person.home)
    host.environ |= {name: "", "HOME": str(tmp_path)}
    id = host.ended()
    assert host.hook("stop") == [id]


def as_gemini_reads_it(text: str, environ: dict[str, str]) -> str:
    """Gemini CLI replaces variables in its settings by this rule (0.61.0)."""

    def replaced(found: re.Match[str]) -> str:
        name, otherwise = found[1] or found[2], found[3]
        value = environ.get(name, otherwise)
        return found[0] if value is None else value

    return re.sub(r"\$(?:(\w+)|{([^}]+?)(?::-([^}]*))?})", replaced, text)


def test_gemini_cli_leaves_its_line_as_it_is(person: Person):
    host = Host(person, "gemini", "s-4")
    text = line(host.program, "stop", "gemini")
    others = {"MEANTIME_THREAD": "mcp-another", "GEMINI_SESSION_ID": "of-an-agent-around-it"}
    assert as_gemini_reads_it(text, {**host.environ, **others, "XDG_STATE_HOME": "/state"}) == text


def test_a_home_is_found_as_python_finds_it(person: Person, tmp_path: Path):
    host = Host(person, "claude-code", "s-3")
    for name in ("MEANTIME_HOME", "XDG_STATE_HOME"):
        host.environ.pop(name, None)
    for environ in ({"XDG_STATE_HOME": str(tmp_path)}, {"HOME": str(tmp_path / "user")}):
        state = Path(environ.get("XDG_STATE_HOME") or tmp_path / "user/.local/state")
        state.mkdir(parents=True, exist_ok=True)
        (state / "meantime").symlink_to(person.home)
        said = json.dumps(host.said)
        assert host.run("stop", said=said, **environ).returncode == 0
        before = host.starts()
        assert host.run("stop", said=said, **environ).returncode == 0
        assert host.starts() == before


def test_what_was_parked_and_comes_back_is_told(host: Host):
    id = host.ended()
    for _ in range(5):
        turn = host.asking.post(f"/v1/threads/{host.thread}/turns")["turn"]
        host.asking.post(f"/v1/turns/{turn}/release", {"failed": True})
    assert host.hook("stop") == []
    assert host.quiet.is_file()
    assert host.asking.post(f"/v1/threads/{host.thread}/unpark", {})["unparked"] == 1
    assert not host.quiet.exists()
    assert host.hook("stop") == [id]


def test_what_another_turn_holds_is_not_quiet(host: Host):
    id = host.ended()
    turn = host.asking.post(f"/v1/threads/{host.thread}/turns")["turn"]
    assert host.hook("stop") == []
    assert not host.quiet.exists()
    host.asking.post(f"/v1/turns/{turn}/release", {})
    assert host.hook("stop") == [id]


def test_a_daemon_that_starts_trusts_no_file(loner: Person):
    loner.up()
    host = Host(loner, "claude-code", "s")
    assert host.hook("stop") == []
    assert host.quiet.is_file()
    assert loner("down").code == 0
    assert host.quiet.is_file()
    assert host.hook("stop") == []  # nobody is there to be asked, and nothing is told
    loner.up()
    assert not host.quiet.exists()


def test_files_of_sessions_long_ago_are_swept(loner: Person):
    loner.home.mkdir(mode=0o700)
    (loner.home / "hooks").mkdir()
    old, young = loner.home / "hooks" / "mcp-old", loner.home / "hooks" / "mcp-young"
    old.touch()
    young.touch()
    os.utime(old, (1, 1))
    loner.up()
    assert Host(loner, "claude-code", "s").hook("stop") == []
    assert not old.exists()
    assert young.exists()


def test_the_hook_loads_nothing_that_takes_its_time(person: Person):
    """Each of these takes as long as a bare Python does to start."""
    host = Host(person, "claude-code", "lean")
    id = host.ended()
    heavy = ["json", "re", "socket", "pathlib", "typing", "contextlib", "enum", "click", "http", "hashlib"]
    code = (
        "import sys\n"
        "from meantime.surfaces.hooks.hook_client import main\n"
        "main(['stop'])\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    source = Path(sys.modules["meantime"].__file__ or "").parents[1]
    environ = {**host.environ, "PYTHONPATH": str(source)}
    words = [sys.executable, "-S", "-c", code]
    said = subprocess.check_output(words, env=environ, text=True, input=json.dumps(host.said))
    assert IDS.findall(said) == [id]
    assert said.endswith("\n[]\n")
