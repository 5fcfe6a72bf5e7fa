"""The agents themselves: where `make test` and `make agents` put them, and how they are started offline."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT, until

from cli.person import Person

from .model import Model, script

# `make agents-newest` names another folder, and with it other versions.
ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / os.environ.get("MEANTIME_AGENTS", ".agents") / "node_modules"
CLAUDE = FOLDER / "@anthropic-ai/claude-code-linux-x64/claude"
OPENCODE = FOLDER / "opencode-linux-x64/bin/opencode"
GOOSE = FOLDER / "@aaif/goose-binary-linux-x64/bin/goose"
CODEX = FOLDER / ".bin/codex"
GEMINI = FOLDER / ".bin/gemini"
MEANTIME = Path(sys.executable).with_name("meantime")

# Without its catalogue of all models it is ready sooner: ours is the only one.
OPENCODE_OFFLINE = {
    "OPENCODE_MODELS_PATH": str(Path(__file__).with_name("models.json")),
    "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "npm_config_registry": "http://127.0.0.1:9",
    "npm_config_fetch_retries": "0",
}  # fmt: skip


def needs(program: Path) -> pytest.MarkDecorator:
    """Skips where the program is not installed; but on CI, where all are pinned, its tests fail."""
    return pytest.mark.program(program)


def mark_by_program(items: list[pytest.Item]) -> None:
    for item in items:
        for program in (mark.args[0] for mark in item.iter_markers("program")):
            if not program.exists() and os.environ.get("CI") != "true":
                item.add_marker(pytest.mark.skip(reason=f"{program.name} is not installed: make agents"))


def greet(model: Model, prompt: Callable[[str], Any], tool: str) -> int:
    """Talks until the agent offers this MCP tool to its model: servers take their time to start. Gives how
    often the model was asked."""

    def is_offered() -> bool:
        before = len(model.turns)
        prompt(script({"text": "Hello."}))
        until(lambda: len(model.turns) > before, "the model is asked")
        return tool in model.turns[-1].tools or tool in model.turns[-1].text

    until(is_offered, f"the model is offered {tool}", lambda: model.turns[-1].tools)
    return len(model.turns)


def version(package: str) -> str:
    """The one that is installed; empty for none."""
    path = FOLDER / package / "package.json"
    return json.loads(path.read_text())["version"] if path.exists() else ""


class Agent:
    """One agent's program, with folders of its own and the scripted model."""

    def __init__(self, person: Person, model: Model) -> None:
        self.person = person
        self.model = model
        self.project = person.folder / "project"
        self.project.mkdir()
        user = person.folder / "user"
        user.mkdir()
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        ours = {name: value for name, value in person.environ.items() if name.startswith("MEANTIME")}
        self.environ = {**kept, **ours, "HOME": str(user)}

    def install(self, name: str) -> None:
        done = subprocess.run(
            [MEANTIME, "install", name, "--yes"], env=self.environ, cwd=self.project, capture_output=True,
            text=True, timeout=LIMIT, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done

    @contextlib.contextmanager
    def started(self, *words: str | Path, **streams: Any) -> Iterator[subprocess.Popen[str]]:
        with (self.person.folder / "agent.err").open("a") as errors:
            agent = subprocess.Popen(
                words, env=self.environ, cwd=self.project, stderr=errors, text=True, start_new_session=True,
                **streams,
            )  # fmt: skip
            try:
                yield agent
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(agent.pid, signal.SIGKILL)
                agent.communicate(timeout=LIMIT)


class ClaudeCode(Agent):
    def __init__(self, person: Person, model: Model) -> None:
        super().__init__(person, model)
        self.environ |= {
            "ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "none", "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }  # fmt: skip

    @contextlib.contextmanager
    def session(self, *more: str) -> Iterator[Any]:
        """One that stays open, as on a terminal; a function that gives it a prompt."""
        form = ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
        words = [CLAUDE, "-p", *form, "--allowedTools=Bash,mcp__meantime", *more]
        with (
            (self.person.folder / "claude.out").open("a") as out,
            self.started(*words, stdin=subprocess.PIPE, stdout=out) as one,
        ):
            assert one.stdin

            def prompt(text: str) -> None:
                message = {"role": "user", "content": text}
                print(json.dumps({"type": "user", "message": message}), file=one.stdin, flush=True)

            yield prompt


class OpenCode(Agent):
    def __init__(self, person: Person, model: Model) -> None:
        super().__init__(person, model)
        self.environ |= OPENCODE_OFFLINE
        self._session = ""
        configure_opencode(self.project, model)

    @contextlib.contextmanager
    def session(self) -> Iterator[Any]:
        """The same one each time, even of another process."""
        with self.served() as url:
            self._session = self._session or opencode_session(url)[0]
            yield lambda text: opencode_prompt(url, self._session, text)

    @contextlib.contextmanager
    def served(self) -> Iterator[str]:
        words = ["serve", "--port", "0", "--hostname", "127.0.0.1"]
        with self.started(OPENCODE, *words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as one:
            self.pid = one.pid
            yield listening(one)


def listening(server: subprocess.Popen[str]) -> str:
    """The address of an OpenCode server, once it has said it. Nothing is asked before: such a question would
    never be answered. A server that says nothing is killed, which ends what it says."""
    assert server.stdout
    limit = threading.Timer(LIMIT, server.kill)
    limit.start()
    try:
        said = next((line for line in server.stdout if "listening on" in line), None)
    finally:
        limit.cancel()
    assert said, f"OpenCode did not listen within {LIMIT:g} seconds"
    return said.split()[-1]


def opencode_session(url: str, **more: str) -> tuple[str, Callable[[str], None]]:
    """A new one: its id, and a function that gives it a prompt."""
    id = posted(f"{url}/session", more)["id"]
    return id, lambda text: opencode_prompt(url, id, text)


def opencode_prompt(url: str, session: str, text: str) -> None:
    posted(f"{url}/session/{session}/prompt_async", {"parts": [{"type": "text", "text": text}]})


def opencode_messages(url: str, session: str) -> str:
    """All that is in one, as text."""
    with urllib.request.urlopen(f"{url}/session/{session}/message", timeout=LIMIT) as answer:
        parts = [part for message in json.loads(answer.read()) for part in message["parts"]]
    return "\n".join(part.get("text", "") for part in parts)


def configure_opencode(project: Path, model: Model, **more: object) -> None:
    """It speaks to the scripted model alone, for a price."""
    provider = {
        "npm": "@ai-sdk/openai-compatible", "name": "S",
        "models": {"m": {"name": "m", "cost": {"input": 1000, "output": 1000}}},
        "options": {"baseURL": f"{model.url}/v1", "apiKey": "none"},
    }  # fmt: skip
    config = {
        "autoupdate": False, "share": "disabled", "snapshot": False, "model": "scripted/m",
        "small_model": "scripted/m", "enabled_providers": ["scripted"],
        "provider": {"scripted": provider}, **more,
    }  # fmt: skip
    (project / "opencode.json").write_text(json.dumps(config, indent=2))


class Codex(Agent):
    """One turn, without a terminal."""

    def __init__(self, person: Person, model: Model) -> None:
        super().__init__(person, model)
        # Not below the folder for temporary files: its sandbox cannot be set up there.
        self.environ |= {"KEY": "none", "TMPDIR": str(person.folder / "temporary")}
        (person.folder / "temporary").mkdir()
        folder = Path(self.environ["HOME"]) / ".codex"
        folder.mkdir()
        (folder / "config.toml").write_text(
            'model = "m"\nmodel_provider = "s"\napproval_policy = "never"\n'
            'sandbox_mode = "danger-full-access"\n\n[model_providers.s]\nname = "s"\n'
            f'base_url = "{model.url}/v1"\nwire_api = "responses"\nenv_key = "KEY"\n'
            "requires_openai_auth = false\n"
        )

    def turn(self, prompt: str, *, again: bool = False) -> None:
        resumed = ["resume", "--last"] if again else []
        flags = ["--dangerously-bypass-hook-trust", "--json", "--skip-git-repo-check"]
        words = ["exec", *resumed, *flags, prompt]
        with self.started(CODEX, *words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as one:
            assert one.wait(2 * LIMIT) == 0


class Gemini(Agent):
    """One turn, without a terminal."""

    def __init__(self, person: Person, model: Model) -> None:
        super().__init__(person, model)
        self.environ |= {
            "GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": model.url,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        }  # fmt: skip
        folder = Path(self.environ["HOME"]) / ".gemini"
        folder.mkdir()
        settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
        (folder / "settings.json").write_text(json.dumps(settings))

    def turn(self, prompt: str, *, again: bool = False, fails: bool = False) -> None:
        resumed = ["--resume", "latest"] if again else []
        words = [*resumed, "-m", "gemini-2.5-flash", "-y", "-o", "stream-json", "-p", prompt]
        with self.started(GEMINI, *words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as one:
            assert (one.wait(2 * LIMIT) != 0) is fails


class Goose(Agent):
    """One turn, without a terminal."""

    def __init__(self, person: Person, model: Model) -> None:
        super().__init__(person, model)
        self.environ |= {
            "GOOSE_PROVIDER": "openai", "GOOSE_MODEL": "gpt-4o", "OPENAI_HOST": model.url,
            "OPENAI_API_KEY": "none", "GOOSE_DISABLE_KEYRING": "1", "GOOSE_TELEMETRY_ENABLED": "false",
        }  # fmt: skip

    def turn(self, prompt: str, name: str, *, again: bool = False) -> None:
        with self.begun(prompt, name, again=again) as one:
            assert one.wait(2 * LIMIT) == 0

    def begun(
        self, prompt: str, name: str, *, again: bool = False
    ) -> contextlib.AbstractContextManager[subprocess.Popen[str]]:
        words = ["run", "-n", name, *(["--resume"] if again else []), "-t", prompt]
        return self.started(GOOSE, *words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def posted(url: str, body: object) -> Any:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=LIMIT) as answer:
        return json.loads(answer.read() or b"null")
