"""The configuration as text: a file to begin with, and the table for the docs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

from .config_keys import Key, known, sections

HEAD = """\
# Meantime's configuration. Every line that is commented out shows the default.
# `meantime config` shows what holds and where each value came from.
# After a change: meantime down && meantime up (commands keep running meanwhile).
"""


def toml(value: Any) -> str:
    """A value of ours as TOML writes it."""
    if isinstance(value, dict):
        pairs = (f"{_key(name)} = {toml(one)}" for name, one in cast("dict[str, Any]", value).items())
        return f"{{ {', '.join(pairs)} }}" if value else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml, cast('list[Any]', value)))}]"
    if isinstance(value, float):
        return f"{value:.1f}" if value.is_integer() else repr(value)
    # Texts, whole numbers, true and false are as in JSON, but for one character that TOML wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def beginning() -> str:
    """A whole file in which nothing is set."""
    return "".join(f"{line}\n" for line in _lines())


def table() -> str:
    """Markdown: every key of every section."""
    lines: list[str] = []
    for section, about in {"": "Before the first section.", **sections()}.items():
        lines += [f"### `[{section}]`" if section else "### On top", "", about, ""]
        lines += ["| key | default | must be | is |", "|---|---|---|---|"]
        for key in _of(section):
            name = key.name.rpartition(".")[2]
            lines.append(f"| `{name}` | `{toml(key.default)}` | {key.kind.must} | {key.doc} |")
        lines.append("")
    return "\n".join(lines)


def _lines() -> Iterator[str]:
    yield HEAD
    for section in ("", *sections()):
        if section:
            yield f"\n[{section}]  # {sections()[section]}"
        for key in _of(section):
            yield f"# {key.name.rpartition('.')[2]} = {toml(key.default)}  # {key.doc}"


def _of(section: str) -> list[Key]:
    return [key for key in known().values() if key.name.rpartition(".")[0] == section]


def _key(name: str) -> str:
    return name if name.replace("_", "").replace("-", "").isalnum() and name.isascii() else toml(name)
