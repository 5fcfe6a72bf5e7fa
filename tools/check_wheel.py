"""Builds the wheel and the sdist, installs the wheel with each extra in a clean environment, runs the demo.

python tools/check_wheel.py [EXTRA …]

Writes the table of docs/reference/tested-versions.md. Everything is in a folder that is removed afterwards.
uv installs, as it shares packages between the environments; `pip`, `pipx run` and `uvx` are tried, too. It
downloads a gigabyte or more: no test runs it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "reference" / "wheel-checks.json"
PAGE = ROOT / "docs" / "reference" / "tested-versions.md"
BEGIN, END = "<!-- extras: written by tools/check_wheel.py -->\n", "<!-- end of extras -->"
# A module of each extra that cannot be loaded without it.
MODULES = {
    "server": "meantime.surfaces.http.uvicorn_server",
    "mcp": "meantime.app.mcp_sdk_server",
    "model": "meantime.surfaces.chat.model_agent",
    "acp": "meantime.integrations.acp.session_host",
    "pydantic-ai": "meantime.integrations.pydantic_ai",
    "opencode": "meantime.integrations.opencode",
    "google-adk": "meantime.integrations.google_adk",
    "langchain": "meantime.integrations.langchain",
    "agent-framework": "meantime.integrations.agent_framework",
    "claude-agent-sdk": "meantime.integrations.claude_agent_sdk",
    "openai-agents": "meantime.integrations.openai_agents",
    "watch": "re2",
    "workers": "meantime.carriers.nats",
}
# Programs that run a command of a package which is not installed: the words before the package.
RUNNERS = {"pipx run": ["pipx", "run", "--spec"], "uvx": ["uv", "tool", "run", "--from"]}
NOT_FOR_USERS = ("test", "dev", "chat")
LONGEST = 1800.0  # seconds for one command


def main(wanted: list[str]) -> int:
    """Exit code 1 if something does not work."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [name for name in project["optional-dependencies"] if name not in NOT_FOR_USERS]
    known: dict[str, dict[str, str]] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = _built(folder)
        _run([sys.executable, "-m", "venv", str(folder / "tools")])
        _run([str(folder / "tools/bin/pip"), "install", "-q", "--disable-pip-version-check", "uv", "pipx"])
        order = ["none", *extras, "all of them", *RUNNERS]
        for label in wanted or order:
            known[label] = _checked(folder, wheel, label, extras)
            sys.stderr.write(f"{label}: {known[label]}\n")
    known = {label: known[label] for label in order if label in known}
    RESULTS.write_text(json.dumps(known, indent=2) + "\n")
    PAGE.write_text(with_table(PAGE.read_text(), known))
    return int(any("failed" in row.values() for row in known.values()))


def _built(folder: Path) -> Path:
    """The wheel; a wheel that is built from the sdist has the same files."""
    for kind in ("wheel", "sdist"):
        _run([sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)], cwd=ROOT)
    [wheel], [sdist] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    _run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder / "again"), str(sdist)])
    [again] = (folder / "again").glob("*.whl")
    files, others = (set(zipfile.ZipFile(each).namelist()) for each in (wheel, again))
    if files != others:
        raise SystemExit(f"The wheel and the sdist differ: {sorted(files ^ others)[:10]}")
    return wheel


def _checked(folder: Path, wheel: Path, label: str, extras: list[str]) -> dict[str, str]:
    today = date.today().isoformat()
    demo = ["demo", "--headless", "--json"]
    if label in RUNNERS:
        start = [str(folder / "tools/bin" / RUNNERS[label][0]), *RUNNERS[label][1:], f"{wheel}[server]"]
        return {"imports": "", "demo": _works([*start, "meantime", *demo], folder), "date": today}
    chosen = extras if label == "all of them" else [] if label == "none" else [label]
    python = folder / label.replace(" ", "-") / "bin" / "python"
    uv = [str(folder / "tools/bin/uv"), "-q"]
    _run([*uv, "venv", "--python", sys.executable, str(python.parent.parent)])
    install = [*uv, "pip", "install", "--python", str(python)]
    _run([*install, f"{wheel}[{','.join(chosen)}]" if chosen else str(wheel)])
    modules = ["meantime", *(MODULES[name] for name in chosen)]
    imports = _works([str(python), "-c", f"import {', '.join(modules)}"], folder)
    if "server" not in chosen:
        _run([*install, f"{wheel}[server]"])
    return {
        "imports": imports, "demo": _works([str(python.with_name("meantime")), *demo], folder), "date": today
    }  # fmt: skip


def _works(command: list[str], folder: Path) -> str:
    kept = {
        name: value for name, value in os.environ.items() if "MEANTIME" not in name and name != "PYTHONPATH"
    }
    environ = {**kept, "MEANTIME_HOME": str(folder / "home"), "MEANTIME_CONFIG": str(folder / "config.toml")}
    done = subprocess.run(
        command, cwd=folder, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=LONGEST, check=False,
    )  # fmt: skip
    if done.returncode:
        sys.stderr.write(done.stdout[-2000:] + done.stderr[-2000:])
    return "failed" if done.returncode else "works"


def _run(command: list[str], cwd: Path | None = None) -> None:
    subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, timeout=LONGEST, check=True)


def table(known: dict[str, dict[str, str]]) -> str:
    lines = ["| extra | its modules load | the demo, with `server` | on |", "|---|---|---|---|"]
    for label, row in known.items():
        lines.append(f"| {label} | {row['imports']} | {row['demo']} | {row['date']} |")
    return "\n".join(lines) + "\n"


def with_table(text: str, known: dict[str, dict[str, str]]) -> str:
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + table(known) + END + rest.partition(END)[2]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
