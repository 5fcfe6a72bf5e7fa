"""The sources of configuration values, in order: code, the environment, the file, defaults.

A wrong value is an error that names the key and where it stands; a key that nobody knows is one, too.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple, cast, get_origin, get_type_hints

from meantime.daemon.home import Home
from meantime.kernel.constraints import shown
from meantime.kernel.errors import InvalidInput
from meantime.ports.agent_settings import Unfit, settled
from meantime.surfaces.http.http_settings import is_loopback

from .config_keys import Key, known, sections
from .config_schema import AgentsSection, Config

DEFAULT, FLAG = "default", "flag"
NAMED = "agents.named"  # every [agents.NAME]
_OWN = AgentsSection.__struct_fields__  # keys of [agents] that are no agents
NAME = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")  # of an agent
MOST_BYTES = 1_000_000  # of a configuration file


class BadConfig(InvalidInput):
    code = "bad_config"


class ConfiguredValue(NamedTuple):
    value: Any
    source: str  # as `where` says it
    line: int = 0  # in the file


class Configuration:
    """The values, and where each came from."""

    def __init__(self, values: Config, sources: Mapping[str, str]) -> None:
        self.values = values
        self._sources = sources

    def where(self, key: str) -> str:
        """ "default", "file …", "environment NAME" or "flag"."""
        if key not in known():
            raise InvalidInput(f"There is no key {key!r}.", hint=_nearest(key, known()))
        return self._sources.get(key, DEFAULT)

    def rows(self) -> Iterator[tuple[Key, Any, str]]:
        for key in known().values():
            yield key, _dig(self.values, key.name), self.where(key.name)


def load(
    home: Home, environ: Mapping[str, str] = os.environ, flags: Mapping[str, Any] | None = None
) -> Configuration:
    said = {**_from_file(home.config), **_from_environment(environ), **_from_flags(flags or {})}
    for name, one in said.items():
        _check(known()[name], one)
    _check_together(said)
    values = {name: one.value for name, one in said.items()}
    parts = {
        section: kind(**_within(values, section))
        for section, kind in get_type_hints(Config).items()
        if section in sections()
    }
    alone = {name: value for name, value in values.items() if "." not in name}
    return Configuration(Config(**parts, **alone), {name: one.source for name, one in said.items()})


# -- the three places


def _from_file(path: Path) -> dict[str, ConfiguredValue]:
    text = _text_of(path)
    try:
        found = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as problem:
        raise BadConfig(f"{path} is not TOML: {problem}.", hint="Mend that line.") from problem
    said: dict[str, ConfiguredValue] = {}
    for name, value in _flattened(found, path, text):
        said[name] = ConfiguredValue(value, f"file {path}", _line_of(text, name))
    return said


def _text_of(path: Path) -> str:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise BadConfig(f"{path} is too long for a configuration.", hint="Name another file.")
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return ""
    except OSError as problem:
        raise BadConfig(
            f"{path} cannot be read: {problem.strerror or problem}.", hint="Make it readable, or remove it."
        ) from problem
    except UnicodeDecodeError as problem:
        raise BadConfig(f"{path} is not UTF-8.", hint="Save it as UTF-8.") from problem


def _flattened(found: Mapping[str, Any], path: Path, text: str) -> Iterator[tuple[str, Any]]:
    """A table that is a section is looked into; one that is a value is not."""
    for name, value in found.items():
        if name not in sections():
            _must_be_known(name, [*sections(), *known()], path, text)
            yield name, value
        elif not isinstance(value, dict):
            raise BadConfig(
                f"{name} in {_place(path, _line_of(text, name))} is a section, not a value.",
                hint=f"Write [{name}] above its keys.",
            )
        else:
            table = cast("dict[str, Any]", value)
            if name == "agents":
                _must_be_tables(table, path, text)
                table = _agents(table)
            for key, one in table.items():
                _must_be_known(f"{name}.{key}", known(), path, text)
                yield f"{name}.{key}", one


def _must_be_tables(section: Mapping[str, Any], path: Path, text: str) -> None:
    """An unknown key of [agents], unless it is nearly a known one, is an agent that is not a table."""
    for name, value in section.items():
        if isinstance(value, dict) or get_close_matches(name, _OWN, n=1):
            continue
        place = _place(path, _line_of(text, f"agents.{name}"))
        raise BadConfig(
            f"agents.{name} in {place} must be a table of settings, not {shown(value)}.",
            hint=f'Write [agents.{name}], and below it runner = "acp"; see docs/guides/subagents.md.',
        )


def _agents(section: Mapping[str, Any]) -> dict[str, Any]:
    """[agents.NAME]: every table of the section is an agent, as if it stood in `named`."""
    tables: dict[str, Any] = {
        name: one for name, one in section.items() if isinstance(one, dict) and name not in _OWN
    }
    plain = {name: one for name, one in section.items() if name not in tables}
    named = plain.get("named", {})
    return {**plain, "named": {**named, **tables}} if tables and isinstance(named, dict) else plain


def _from_environment(environ: Mapping[str, str]) -> dict[str, ConfiguredValue]:
    _refuse_unknown(environ)
    said: dict[str, ConfiguredValue] = {}
    for key in known().values():
        variable = next((name for name in key.variables if environ.get(name, "").strip()), None)
        if variable is not None:
            said[key.name] = ConfiguredValue(
                _parsed(key, environ[variable].strip()), f"environment {variable}"
            )
    return said


def _refuse_unknown(environ: Mapping[str, str]) -> None:
    """Only names that begin like a section of ours: a slip of the pen there would go unnoticed."""
    ours = {key.variable for key in known().values()}
    begins = tuple(f"MEANTIME_{section.upper()}_" for section in sections())
    for name in environ:
        if name.startswith(begins) and name not in ours:
            raise BadConfig(
                f"The environment names {name}, which is not a setting.", hint=_nearest(name, ours)
            )


def _parsed(key: Key, text: str) -> Any:
    """A text of the environment as the value that it means; one that means nothing stays a text."""
    if key.type is str:
        return text
    if key.type is bool:
        return {"true": True, "1": True, "false": False, "0": False}.get(text.lower(), text)
    if get_origin(key.type) is list and not text.startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    if "\n" in text:
        return text
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError, KeyError):
        return text


def _from_flags(flags: Mapping[str, Any]) -> dict[str, ConfiguredValue]:
    for name in flags:
        if name not in known():
            raise BadConfig(f"There is no setting {name!r}.", hint=_nearest(name, known()))
    return {name: ConfiguredValue(value, FLAG) for name, value in flags.items() if value is not None}


# -- what is wrong


def _check(key: Key, said: ConfiguredValue) -> None:
    if not key.kind.fits(said.value):
        raise BadConfig(
            f"{_named(key.name, said)} must be {key.kind.must}, not {shown(said.value)}.",
            hint=f"It is: {key.doc}. The default is {shown(key.default)}.",
        )


def _check_together(said: Mapping[str, ConfiguredValue]) -> None:
    if "agent" in said.get("limits.per_kind", ConfiguredValue({}, "")).value:
        key = "limits.per_kind"
        raise BadConfig(
            f"{_named(key, said[key])} names the kind agent.", hint="Use agents.task_max_async for it."
        )
    named = said.get(NAMED)
    if named is not None:
        _check_agents(named)
    host, remote = said.get("http.host"), said.get("http.allow_remote")
    if host is not None and not is_loopback(host.value) and not (remote and remote.value):
        raise BadConfig(
            f"{_named('http.host', host)} can be reached from other machines.",
            hint="Keep 127.0.0.1 and forward a port, or set http.allow_remote = true as well.",
        )


def _check_agents(said: ConfiguredValue) -> None:
    """Each as a section of its own: an error names the setting, and the line of it."""
    for name, table in said.value.items():
        if not NAME.match(name):
            says = "has a name that an agent cannot have."
            raise BadConfig(
                f"{_placed(name, said)} {says}", hint="Use letters, digits, . _ and -, at most 64."
            )
        try:
            settled(table)
        except Unfit as problem:
            key = f"{name}.{problem.key}"
            raise BadConfig(f"{_placed(key, said)} {problem.says}", hint=problem.hint) from None


def _placed(key: str, said: ConfiguredValue) -> str:
    """`key` of an agent, as it is written in the file: mostly below [agents.NAME]."""
    if said.source.startswith("file "):
        text = _text_of(Path(said.source.removeprefix("file ")))
        spelled = (f"{section}.{key.replace(' ', '')}" for section in ("agents", NAMED))
        said = said._replace(line=max(_line_of(text, name) for name in spelled))
    return _named(f"agents.{key}", said)


def _must_be_known(name: str, names: Iterable[str], path: Path, text: str) -> None:
    if name not in names:
        place = _place(path, _line_of(text, name))
        raise BadConfig(f"{name} in {place} is not a setting.", hint=_nearest(name, names))


def _nearest(name: str, names: Iterable[str]) -> str:
    near = get_close_matches(name, list(names), n=1, cutoff=0.5)
    return f"Did you mean {near[0]}?" if near else "`meantime config` lists what there is."


def _named(key: str, said: ConfiguredValue) -> str:
    if said.source.startswith("file "):
        return f"{key} in {_place(Path(said.source.removeprefix('file ')), said.line)}"
    if said.source == FLAG:
        return key
    return f"{key} in the environment ({said.source.removeprefix('environment ')})"


def _place(path: Path, line: int) -> str:
    return f"{path}, line {line}," if line else str(path)


def _line_of(text: str, name: str) -> int:
    """Where a key stands, as far as its plain spelling tells; 0 where it does not."""
    section = name.rpartition(".")[0]
    inside = ""
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.split("#")[0].strip()
        if bare.startswith("["):
            inside = bare.strip("[]").replace('"', "").replace(" ", "")
            if inside == name:
                return number
        word = bare.partition("=")[0].replace('"', "").replace(" ", "")
        if "=" in bare and not bare.startswith("[") and name == (f"{inside}.{word}" if inside else word):
            return number
    return _line_of(text, section) if section else 0


def _within(values: Mapping[str, Any], section: str) -> dict[str, Any]:
    begin = f"{section}."
    return {name.removeprefix(begin): value for name, value in values.items() if name.startswith(begin)}


def _dig(config: Config, name: str) -> Any:
    section, _, key = name.rpartition(".")
    return getattr(getattr(config, section) if section else config, key)
