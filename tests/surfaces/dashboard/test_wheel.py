"""The page comes with the wheel: nothing is built, and nothing is fetched from elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from meantime.surfaces.dashboard.assets import BUNDLE, FOLDER, SHEET, TYPES, installed

pytestmark = pytest.mark.pythons

ROOT = Path(__file__).resolve().parents[3]
FETCH = """
import json, sys, urllib.request
import meantime
from meantime.blocking import Meantime

with Meantime.open(sys.argv[1]) as mt, mt.serve(port=0) as door:
    sizes = {}
    for name in json.loads(sys.argv[2]):
        with urllib.request.urlopen(f"{door.url}/assets/{name}") as answer:
            sizes[name] = len(answer.read())
    with urllib.request.urlopen(door.url) as answer:
        page = answer.read().decode()
print(json.dumps({"from": meantime.__file__, "page": page, "sizes": sizes}))
"""


def run(*argv: object, **more: object) -> str:
    done = subprocess.run([str(arg) for arg in argv], capture_output=True, text=True, timeout=300, **more)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel of this clone, and the packages of others that it needs."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    [wheel] = folder.glob("*.whl")
    run(sys.executable, "-m", "venv", "--without-pip", folder / "venv")
    python = folder / "venv/bin/python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", "--no-index", wheel)
    # Others' packages come from here, by a path: .pth files of that folder, such as our own, are not read.
    [found] = (folder / "venv").glob("lib/python*/site-packages")
    (found / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


def test_every_file_of_the_page_is_served_from_the_wheel_without_node(clean: Path, tmp_path: Path):
    files = installed().files
    names = [path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*") if path.suffix in TYPES]
    assert files.keys() - set(names) == {SHEET, BUNDLE}  # made when the files are read
    environment = {"PATH": str(clean / "venv/bin"), "HOME": str(tmp_path), "LANG": os.environ.get("LANG", "")}
    script = tmp_path / "fetch.py"
    script.write_text(FETCH)
    python = clean / "venv/bin/python"
    told = run(python, script, tmp_path / "work.db", json.dumps(sorted(files)), env=environment, cwd=tmp_path)
    found = json.loads(told)
    assert found["from"].startswith(str(clean))
    assert found["page"] == installed().page.data.decode("utf-8")
    assert found["sizes"] == {name: len(one.data) for name, one in files.items()}


def test_nothing_in_the_folder_is_of_a_kind_that_is_not_served():
    """Records beside a vendored file may lie there; everything that a page could load has its type."""
    others = {path.suffix for path in FOLDER.rglob("*") if path.is_file()} - TYPES.keys()
    assert others <= {".md", ".json", ".toml", ".ts", ""}
