"""The verbs that need no daemon: what they print, their JSON, their exit codes."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from meantime import Call, Meantime, __version__
from meantime.app.config_keys import known
from meantime.app.main import VERBS
from meantime.surfaces.cli.invocation import run
from meantime.surfaces.mcp.standard_streams import StandardStreams

pytestmark = pytest.mark.anyio


class Ended(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Shell:
    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Ended:
        code = run(VERBS, arguments, __version__)
        out, err = self._capsys.readouterr()
        return Ended(code, out, err)


@pytest.fixture
def meantime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    monkeypatch.setenv("MEANTIME_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MEANTIME_CONFIG", str(tmp_path / "etc" / "config.toml"))
    return Shell(tmp_path, capsys)


@pytest.mark.parametrize(
    ("option", "more"), [("--threshold", ("1",)), ("--headers", ("file",)), ("--prefix", ())]
)
def test_an_option_of_a_wrap_without_it_is_named(meantime: Shell, option: str, more: tuple[str, ...]) -> None:
    refused = meantime("mcp", option, *more)
    assert refused.code == 2
    assert f"{option} is for --wrap, which is not given." in refused.err


@pytest.mark.parametrize("words", [("mcp",), ("mcp", "--wrap", "--", "server")])
@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_person_who_starts_the_mcp_server_is_told_what_it_is(
    meantime: Shell, monkeypatch: pytest.MonkeyPatch, is_terminal: bool, words: tuple[str, ...]
) -> None:
    monkeypatch.setattr("meantime.app.mcp_startup.begin", lambda *given: 0)
    monkeypatch.setattr("meantime.app.wrap_startup.own_streams", lambda: StandardStreams(0, 1))
    monkeypatch.setattr("meantime.app.wrap_startup.HostPump.run", lambda pump: None)
    monkeypatch.setattr("os.isatty", lambda fd: is_terminal)
    started = meantime(*words)
    said = "This is an MCP server for an agent to start; Ctrl+C ends it.\n" if is_terminal else ""
    assert (started.code, started.out, started.err) == (0, "", said)


def test_config_shows_every_key_and_its_source(meantime: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEANTIME_LIMITS_TOTAL", "7")
    shown = meantime("config")
    lines = shown.out.splitlines()
    assert shown.code == 0
    assert [line.split()[0] for line in lines[: len(known())]] == list(known())
    (total,) = [line for line in lines if line.startswith("limits.total")]
    assert total.split(maxsplit=2) == ["limits.total", "7", "environment MEANTIME_LIMITS_TOTAL"]
    assert len({line.rindex("default") for line in lines if line.endswith(" default")}) == 1
    assert lines[-1].endswith("meantime config init")
    changed = meantime("config", "--changed", "--json").json
    assert changed == [{"key": "limits.total", "value": 7, "source": "environment MEANTIME_LIMITS_TOTAL"}]
    assert {row["key"] for row in meantime("config", "--json").json} == set(known())


def test_config_says_when_nothing_is_changed(meantime: Shell) -> None:
    assert meantime("config", "--changed").out.startswith(
        "Nothing is changed: every setting is the default.\n"
    )


def test_up_names_an_unknown_key_before_anything_else(meantime: Shell) -> None:
    for said in ("foo=1", "limits.foo=1"):
        ended = meantime("up", "--set", said)
        assert (ended.code, ended.out) == (2, "")
        assert f"there is no key {said[:-2]!r}" in ended.err
    assert not (meantime.folder / "home").exists()


def test_wrong_calls_point_to_their_help(meantime: Shell) -> None:
    assert "See `meantime run --help`." in meantime("run", "-c").err
    ended = meantime("completion")
    assert (ended.code, "Name one of: bash, zsh, fish." in ended.err) == (2, True)


def test_config_init_writes_a_private_file_once(meantime: Shell) -> None:
    path = Path(meantime("config", "path").out.strip())
    assert path == meantime.folder / "etc" / "config.toml"
    assert meantime("config", "init").code == 0
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text("[limits]\ntotal = 9\n")
    again = meantime("config", "init")
    assert (again.code, "is there already" in again.err) == (1, True)
    assert path.read_text() == "[limits]\ntotal = 9\n"
    assert f"file {path}" in meantime("config", "--changed").out


def test_config_explains_a_wrong_value(meantime: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEANTIME_HTTP_PORT", "x")
    wrong = meantime("config")
    assert wrong.code == 2
    assert wrong.err.startswith("meantime: http.port in the environment (MEANTIME_HTTP_PORT) must be")
    assert len(wrong.err.splitlines()) == 2


def test_a_home_that_is_wrong(meantime: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEANTIME_HOME", "relative")
    for verb in ("status", "down", "up", "doctor", "audit", "config"):
        ended = meantime(verb)
        assert ended.code != 0, verb
        assert "MEANTIME_HOME='relative' is not a whole path" in ended.err


def test_without_a_daemon(meantime: Shell) -> None:
    assert meantime("status").code == 5
    assert meantime("status", "--json").json["running"] is False
    assert meantime("down").out == "The daemon was not running.\n"
    assert meantime("down", "--json").json == {"running": False, "ended": None}
    assert not (meantime.folder / "home").exists()


def test_doctor_says_what_to_do(meantime: Shell) -> None:
    assert meantime("doctor").code == 0
    home = meantime.folder / "home"
    home.mkdir()
    home.chmod(0o755)
    bad = meantime("doctor")
    assert bad.code == 1
    assert f"→ Close it with: chmod 700 {home}" in bad.out
    found = meantime("doctor", "--json")
    assert (found.code, found.json["ok"]) == (1, False)
    assert {"name": "python", "level": "ok"}.items() <= found.json["checks"][0].items()


def test_audit_without_a_ledger(meantime: Shell) -> None:
    none = meantime("audit")
    assert (none.code, none.err) == (0, "")
    assert none.out.startswith("There is no ledger yet in ")
    assert meantime("audit", "--json").json == {"ok": True, "notices": {}, "tasks": {}, "findings": []}


async def test_audit_of_a_ledger_that_nobody_owns(meantime: Shell) -> None:
    ledger = meantime.folder / "home" / "ledger.db"
    async with Meantime.open(ledger) as mt:
        await (await mt.thread("t").start(Call(int, 3))).wait()
    fine = meantime("audit")
    assert fine.code == 0
    assert "unread" in fine.out
    assert "Every ending has its notice" in fine.out
    with sqlite3.connect(ledger) as db:
        db.execute("DELETE FROM notices")
    db.close()
    wrong = meantime("audit", "--json")
    assert (wrong.code, wrong.json["ok"]) == (1, False)
    assert wrong.json["findings"][0]["what"] == "1 × ended without a notice"
    assert "✗ 1 × ended without a notice" in meantime("audit").out
