"""One typed configuration: what holds, where it came from, and what is said about a wrong value."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meantime.app.config_keys import known, sections
from meantime.app.config_schema import Config, PluginsSection, http_of, settings_of
from meantime.app.config_sources import BadConfig, Configuration, load
from meantime.app.config_text import beginning, toml
from meantime.app.meantime import Meantime
from meantime.app.verbs.config import discreet
from meantime.daemon.home import Home
from meantime.kernel.errors import MeantimeError
from meantime.plugins import BackgroundConfig
from meantime.runtime.settings import Settings
from meantime.surfaces.http.http_settings import HttpSettings, in_force

ROOT = Path(__file__).parent.parent.parent


def loaded(
    folder: Path, text: str = "", environ: dict[str, str] | None = None, **flags: Any
) -> Configuration:
    path = folder / "config.toml"
    path.write_text(text)
    named = {name.replace("__", "."): value for name, value in flags.items()}
    return load(Home(folder / "home", path), environ or {}, named)


def refused(folder: Path, text: str = "", environ: dict[str, str] | None = None, **flags: Any) -> BadConfig:
    with pytest.raises(BadConfig) as caught:
        loaded(folder, text, environ, **flags)
    return caught.value


def tried(home: Home, environ: dict[str, str]) -> Configuration | BadConfig:
    try:
        return load(home, environ)
    except BadConfig as problem:
        return problem


def test_the_defaults_are_those_of_the_parts(tmp_path: Path) -> None:
    config = loaded(tmp_path).values
    assert settings_of(config) == Settings()
    assert http_of(config) == HttpSettings(port=5165)
    assert config == Config()
    plugins = {name: getattr(config.plugins, name) for name in PluginsSection.__struct_fields__}
    assert BackgroundConfig(**plugins) == BackgroundConfig()
    assert (config.executors.lease, config.executors.grace) == (60.0, 30.0)


def test_every_setting_of_the_parts_can_be_configured(tmp_path: Path) -> None:
    """A new field must get a key. `umask` is the daemon's own; the rest belongs to the home."""
    homely = {"folder", "socket", "tcp", "url", "version"}
    assert set(Config().http.__struct_fields__) == set(HttpSettings.__struct_fields__) - homely
    changed = loaded(
        tmp_path,
        environ={key.variable: _other(key.default, key.kind.must) for key in known().values()},
    ).values
    settings, plain = settings_of(changed), Settings()
    same = [name for name in Settings.__struct_fields__ if getattr(settings, name) == getattr(plain, name)]
    assert same == ["umask"]
    http, usual = http_of(changed), HttpSettings(port=5165)
    same = [name for name in HttpSettings.__struct_fields__ if getattr(http, name) == getattr(usual, name)]
    assert set(same) == homely


def _other(default: Any, must: str) -> str:
    """A value that fits and is not the default."""
    if isinstance(default, bool):
        return str(not default).lower()
    if isinstance(default, str):
        return {"queue": "reject", "full": "fast", "keep": "stop", "peer": "strict"}.get(default, "localhost")
    if isinstance(default, list):
        return "one, two"
    if isinstance(default, dict):
        if "command" in must:
            return '{ files = { command = ["serve"] } }'
        if "table of settings" in must:
            return '{ explore = { runner = "opencode" } }'
        if "pool:NAME" in must or "of texts" in must:
            return '{ shell = "pool:other" }'
        return "{ crawl = { max_lines = 5 } }" if "max_lines" in must else "{ shell = 3 }"
    return str(default + 1) if default != -1 else "7"


def test_what_is_said_last_holds_and_is_known(tmp_path: Path) -> None:
    text = "[limits]\nper_thread = 3\ntotal = 30\nqueued = 300\n"
    environ = {"MEANTIME_LIMITS_TOTAL": "40", "MEANTIME_LIMITS_QUEUED": "400"}
    found = loaded(tmp_path, text, environ, limits__queued=500, limits__depth=None)
    limits = found.values.limits
    assert (limits.per_thread, limits.total, limits.queued, limits.depth) == (3, 40, 500, -1)
    where = [found.where(f"limits.{name}") for name in ("per_thread", "total", "queued", "depth")]
    assert where == [
        f"file {tmp_path / 'config.toml'}", "environment MEANTIME_LIMITS_TOTAL", "flag", "default",
    ]  # fmt: skip
    with pytest.raises(MeantimeError, match=r"Did you mean limits\.total"):
        found.where("limits.totel")


@pytest.mark.parametrize(
    ("environ", "port", "source"),
    [
        ({}, 5165, "default"),
        ({"ASYNCAGENTS_API_PORT": "6001"}, 6001, "environment ASYNCAGENTS_API_PORT"),
        (
            {"ASYNCAGENTS_API_PORT": "6001", "MEANTIME_API_PORT": "6002"},
            6002,
            "environment MEANTIME_API_PORT",
        ),
        ({"MEANTIME_API_PORT": "6002", "MEANTIME_HTTP_PORT": "6003"}, 6003, "environment MEANTIME_HTTP_PORT"),
        ({"MEANTIME_API_PORT": " "}, 5165, "default"),
    ],
)
def test_older_names_hold(tmp_path: Path, environ: dict[str, str], port: int, source: str) -> None:
    found = loaded(tmp_path, environ=environ)
    assert (found.values.http.port, found.where("http.port")) == (port, source)


def test_switched_off_by_seed_001s_name(tmp_path: Path) -> None:
    assert loaded(tmp_path, environ={"ASYNCAGENTS_API_ENABLED": "False"}).values.http.enabled is False


def test_tables_and_lists_in_the_environment(tmp_path: Path) -> None:
    environ = {
        "MEANTIME_LIMITS_PER_KIND": "{ shell = 4 }",
        "MEANTIME_INLINE_BY_NAME": "{ crawl = { max_lines = 50 } }",
        "MEANTIME_HTTP_HOSTS": "a.example, b.example:80",
        "MEANTIME_TOOLS": '["my.tools"]',
    }
    config = loaded(tmp_path, environ=environ).values
    assert config.tools == ["my.tools"]
    assert config.http.hosts == ["a.example", "b.example:80"]
    settings = settings_of(config)
    assert settings.limits.per_kind == {"shell": 4, "agent": 5}
    assert settings.inline_by_name["crawl"].max_lines == 50
    assert settings.inline_by_name["crawl"].max_bytes == 51_200


CONFIG = "config.toml"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            '[limits]\n\nper_thread = "five"\n',
            "limits.per_thread in {path}, line 3, must be a whole number above 0, or -1 for no limit",
            "not 'five'. It is: running tasks of one kind in one thread. The default is 10.",
        ),
        ("[limits]\nper_thread = 0", "limits.per_thread in {path}, line 2, must be", "running tasks"),
        ("limits.total = true", "limits.total in {path}, line 1, must be a whole number", "not true"),
        ("[limits]\nper_thred = 3", "limits.per_thred in {path}, line 2, is not a setting", ".per_thread?"),
        ("[limit]\n", "limit in {path}, line 1, is not a setting.", "Did you mean limits?"),
        ("limits = 3", "limits in {path}, line 1, is a section, not a value.", "Write [limits]"),
        ("[limits.per_kind]\nagent = 3", "limits.per_kind in {path}, line 1, names the kind agent", "task_"),
        ("[limits.per_kind]\nshell = 0", "limits.per_kind in {path}, line 1, must be a table of kinds", ""),
        ("[timeouts]\ndefault = nan", "timeouts.default in {path}, line 2, must be", "-1"),
        ("[timeouts]\nstop_grace = inf", "timeouts.stop_grace in {path}, line 2, must be", ""),
        ("[ledger]\ndurability = 'slow'", 'durability in {path}, line 2, must be "full" or "fast", not', ""),
        ("[http]\nport = 70000", "http.port in {path}, line 2, must be a whole number from 0 to 65535", ""),
        ('[http]\nhost = "0.0.0.0"', "http.host in {path}, line 2, can be reached from other machines", ""),
        ('tools = "one"', "tools in {path}, line 1, must be a list of texts, not 'one'.", "@background"),
        ("x =", "{path} is not TOML: ", "line"),
        ("zzz = 1", "zzz in {path}, line 1, is not a setting.", "`meantime config` lists what there is."),
    ],
)  # fmt: skip
def test_a_wrong_file_is_explained(tmp_path: Path, text: str, message: str, hint: str) -> None:
    problem = refused(tmp_path, text)
    assert message.format(path=tmp_path / CONFIG) in problem.message
    assert hint in str(problem)
    assert problem.code == "bad_config"


def test_a_wrong_environment_is_explained(tmp_path: Path) -> None:
    wrong = refused(tmp_path, environ={"MEANTIME_API_PORT": "high"})
    assert "http.port in the environment (MEANTIME_API_PORT) must be a whole number" in wrong.message
    unknown = refused(tmp_path, environ={"MEANTIME_LIMITS_TOTL": "3"})
    assert "MEANTIME_LIMITS_TOTL" in unknown.message
    assert unknown.hint == "Did you mean MEANTIME_LIMITS_TOTAL?"
    assert loaded(tmp_path, environ={"MEANTIME_HOME": "/x", "MEANTIME_DEBUG": "1"}).values == Config()


def test_a_wrong_flag_is_explained(tmp_path: Path) -> None:
    assert refused(tmp_path, http__port=-1).message.startswith("http.port must be a whole number")
    assert refused(tmp_path, http__prot=1).hint == "Did you mean http.port?"


def test_files_that_cannot_be_read_are_explained(tmp_path: Path) -> None:
    path = tmp_path / CONFIG
    with pytest.raises(BadConfig, match="cannot be read: Is a directory"):
        load(Home(tmp_path, tmp_path), {})
    path.write_bytes(b"# \xff\n")
    with pytest.raises(BadConfig, match="is not UTF-8"):
        load(Home(tmp_path, path), {})
    path.write_bytes(b"#" * 1_000_001)
    with pytest.raises(BadConfig, match="too long"):
        load(Home(tmp_path, path), {})
    path.unlink()
    assert load(Home(tmp_path, path), {}).values == Config()


JSONISH = st.recursive(
    st.booleans() | st.integers(-(2**62), 2**62) | st.floats() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(min_size=1, max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


@pytest.mark.breadth
@given(name=st.sampled_from(sorted(known())), value=JSONISH)
def test_any_value_is_taken_and_works_or_is_explained(
    tmp_path_factory: pytest.TempPathFactory, name: str, value: Any
) -> None:
    """What the configuration lets through, the parts take: nothing fails later."""
    path = tmp_path_factory.getbasetemp() / "any.toml"
    section, _, key = name.rpartition(".")
    path.write_text((f"[{section}]\n" if section else "") + f"{key} = {_written(value)}\n")
    found = tried(Home(path.parent, path), {})
    if isinstance(found, BadConfig):
        assert (f"{name} in {path}" if name != "agents.named" else f" in {path}") in found.message
        assert found.hint
        return
    assert found.where(name) == f"file {path}"
    Meantime.open(":memory:", settings=settings_of(found.values))
    in_force(http_of(found.values), {})


def _written(value: Any) -> str:
    """TOML of anything: nan and inf too, which ours never has to write."""
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{toml(name)} = {_written(one)}' for name, one in value.items())} }}"
    return toml(value)


@given(name=st.sampled_from(sorted(known())), text=st.text(max_size=30) | st.floats().map(str))
def test_any_text_in_the_environment_is_taken_or_explained(name: str, text: str) -> None:
    variable = known()[name].variable
    found = tried(Home(Path("/nowhere"), Path("/nowhere/config.toml")), {variable: text})
    if isinstance(found, BadConfig):
        assert f"{name} in the environment ({variable})" in found.message
    else:
        assert found.where(name) in ("default", f"environment {variable}")


def test_the_beginning_is_the_defaults(tmp_path: Path) -> None:
    text = beginning()
    assert loaded(tmp_path, text).values == Config()
    assert all(f"\n[{section}]" in text for section in sections())
    uncommented = "\n".join(line.removeprefix("# ") if " = " in line else line for line in text.splitlines())
    assert tomllib.loads(uncommented.split("\n", 3)[3])
    found = loaded(tmp_path, uncommented.split("\n", 3)[3])
    assert found.values == Config()
    assert {source for _, _, source in found.rows()} == {f"file {tmp_path / CONFIG}"}


def test_servers_are_configured_and_their_secrets_are_not_shown(tmp_path: Path) -> None:
    text = '[mcp.servers.files]\ncommand = ["serve"]\nenv = { KEY = "secret" }\n'
    servers = loaded(tmp_path, text).values.mcp.servers
    assert servers == {"files": {"command": ["serve"], "env": {"KEY": "secret"}}}
    assert discreet(servers) == {"files": {"command": ["serve"], "env": {"KEY": "…"}}}
    assert "mcp.servers" in refused(tmp_path, '[mcp.servers.files]\ncommand = "serve"\n').message
