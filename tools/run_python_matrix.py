"""Runs the core of the suite on every supported Python; writes a table of docs/reference/tested-versions.md.

python tools/run_python_matrix.py [3.12 3.13 …]

An interpreter is found on the PATH or among those of pyenv. Otherwise it comes from a newer Debian, for root
and where mmdebstrap is installed: that system is a folder, in which the tests then run. The environments are
in .matrix. The table names a version that cannot be had.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import NamedTuple

from counted_tests import ROOT, counted

FOLDER = ROOT / ".matrix"
RESULTS = ROOT / "docs" / "reference" / "python-versions.json"
PAGE = ROOT / "docs" / "reference" / "tested-versions.md"
BEGIN, END = "<!-- Python versions: written by tools/run_python_matrix.py -->\n", "<!-- end -->"
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
CORE = (
    "kernel", "ports", "system", "fundamentals", "conformance", "runtime", "toolset", "seeds", "link",
    "client", "shell", "app", "daemon",
)  # fmt: skip
NEWER_DEBIAN = "forky"  # has the Python that the machine's own Debian does not have


class Interpreter(NamedTuple):
    words: list[str]  # the command that starts it
    source: str


def main(wanted: list[str]) -> int:
    """Exit code 1 if a test failed."""
    FOLDER.mkdir(exist_ok=True)
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for version in wanted or VERSIONS:
        known[version] = tested(version)
        sys.stderr.write(f"Python {version}: {known[version]}\n")
        RESULTS.write_text(json.dumps(dict(sorted(known.items())), indent=2) + "\n")
        PAGE.write_text(with_table(PAGE.read_text(), known))  # at once: a whole run takes long
    return int(any(row.get("failed") for row in known.values()))


def tested(version: str) -> dict[str, object]:
    found = _local(version) or _from_debian(version)
    if found is None:
        return {"missing": "not on this machine, and mmdebstrap could not bring it"}
    python = _environment(version, found)
    exact = _said([*python, "-c", "import platform; print(platform.python_version())"]).strip()
    ran = counted(python, [f"tests/{name}" for name in CORE], FOLDER / f"{version}.log")
    return {
        "version": exact, "from": found.source, "passed": ran.passed,
        "failed": ran.failed, "skipped": ran.skipped, "reasons": ran.reasons,
        "date": date.today().isoformat(),
    }  # fmt: skip


def _local(version: str) -> Interpreter | None:
    named = shutil.which(f"python{version}")
    if named is not None and _is(version, named):
        return Interpreter([named], "found here")
    for path in sorted(Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin/python")):
        return Interpreter([str(path)], "found here")
    return None


def _is(version: str, path: str) -> bool:
    """A shim of pyenv has the name, and may have no interpreter behind it."""
    done = subprocess.run(
        [path, "-c", "import sys; print(sys.version)"], capture_output=True, text=True, check=False
    )
    return done.stdout.startswith(f"{version}.")


def _from_debian(version: str) -> Interpreter | None:
    system = FOLDER / f"debian-{version}"
    if os.getuid() != 0 or shutil.which("mmdebstrap") is None:
        return None
    if not (system / f"usr/bin/python{version}").exists():
        shutil.rmtree(system, ignore_errors=True)
        packages = f"python{version},python{version}-venv,ca-certificates,procps"
        made = subprocess.run(
            ["mmdebstrap", "-q", "--aptopt=Acquire::Check-Valid-Until \"false\"", "--variant=minbase",
             f"--include={packages}", NEWER_DEBIAN, str(system)], check=False,
        )  # fmt: skip
        if made.returncode:
            return None
    inside = 'for each in /proc /sys /dev "$0"; do mount --rbind "$each" "$1$each" || exit; done; '
    inside += 'r=$1 && shift && exec chroot "$r" /usr/bin/env -C "$0" HOME=/root "$@"'
    (system / str(ROOT)[1:]).mkdir(parents=True, exist_ok=True)
    words = ["unshare", "--mount", "sh", "-c", inside, str(ROOT), str(system)]
    return Interpreter([*words, f"/usr/bin/python{version}"], f"Debian {NEWER_DEBIAN}")


def _environment(version: str, found: Interpreter) -> list[str]:
    """The command of a Python that has the package and what its tests need."""
    folder = FOLDER / version
    python = folder / "bin" / "python"
    apart = found.words[:-1]
    if not (folder / ".ready").exists():
        _run([*found.words, "-m", "venv", "--clear", str(folder)])
        if apart:
            _install_apart(version, apart, python)
        else:
            _run([_uv(), "pip", "install", "-q", "--python", str(python), "-e", f"{ROOT}[dev]"])
        (folder / ".ready").touch()
    return [*apart, str(python)]


def _uv() -> str:
    """It shares packages between environments, which pip unpacks and compiles for each."""
    uv = FOLDER / "tools" / "bin" / "uv"
    if not uv.exists():
        _run([sys.executable, "-m", "venv", str(FOLDER / "tools")])
        _run([str(uv.with_name("pip")), "install", "-q", "--disable-pip-version-check", "uv"])
    return str(uv)


def _install_apart(version: str, apart: list[str], python: Path) -> None:
    """Its system has no settings for an index of packages: they are fetched here. uv names them: pip, which
    fetches them, would try versions for minutes."""
    wheels, listed = FOLDER / f"wheels-{version}", FOLDER / f"needed-{version}.txt"
    (FOLDER / "needed.in").write_text("\n".join(_needed()) + "\n")
    _run([_uv(), "pip", "compile", "-q", f"--python-version={version}", "--no-header", "--no-annotate",
          "-o", str(listed), str(FOLDER / "needed.in")])  # fmt: skip
    pip = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps"]
    _run([*pip, "--only-binary=:all:", f"--python-version={version}", "-d", str(wheels), "-r", str(listed)])
    install = [*apart, str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    offline = ["--no-index", f"--find-links={wheels}", "--no-compile"]
    _run([*install, *offline, "hatchling", "editables"])
    _run([*install, *offline, "--no-build-isolation", "-e", f"{ROOT}[dev]"])


def _needed() -> list[str]:
    """Everything that the extra `dev` brings, with what builds the package itself."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    return [*project["dependencies"], "editables", *_flat(extras, "dev")]


def _flat(extras: dict[str, list[str]], name: str) -> Iterator[str]:
    for each in extras[name]:
        own = re.match(r"meantime\[(.*)\]", each)
        if own is None:
            yield each
        else:
            yield from (one for part in own[1].split(",") for one in _flat(extras, part))


def _run(command: list[str]) -> None:
    subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, check=True)


def _said(command: list[str]) -> str:
    return subprocess.run(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def table(known: dict[str, dict[str, object]]) -> str:
    head = ("Python", "from", "passed", "failed", "skipped", "on")
    lines = [f"| {' | '.join(head)} |", "|" + len(head) * "---|"]
    for version, row in sorted(known.items()):
        if "missing" in row:
            lines.append(f"| {version} | {row['missing']} | | | | | |")
        else:
            keys = ("version", "from", "passed", "failed", "skipped", "date")
            cells = (row.get(key, "") for key in keys)
            lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def with_table(text: str, known: dict[str, dict[str, object]]) -> str:
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + table(known) + END + rest.partition(END)[2]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
