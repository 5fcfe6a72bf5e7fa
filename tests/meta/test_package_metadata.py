"""The metadata of the wheel: readable without the repository, and claiming what was tested alone."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import tomllib
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path

import pytest

pytestmark = pytest.mark.docs

ROOT = Path(__file__).resolve().parents[2]
VERSION = re.compile(r"Programming Language :: Python :: (3\.\d+)")


@pytest.fixture(scope="module")
def metadata(tmp_path_factory: pytest.TempPathFactory) -> Message:
    from hatchling.build import prepare_metadata_for_build_wheel

    folder, before = tmp_path_factory.mktemp("metadata"), os.getcwd()
    os.chdir(ROOT)  # as a builder of packages does
    try:
        made = prepare_metadata_for_build_wheel(str(folder))
    finally:
        os.chdir(before)
    return message_from_string((folder / made / "METADATA").read_text("utf-8"))


def outside(text: str, source: str) -> str:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.outside(text, source)


def test_the_description_has_no_link_that_needs_the_repository(metadata: Message):
    text = metadata.get_payload()
    assert isinstance(text, str)
    assert "# Meantime" in text
    assert [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if not link.startswith("https://")] == []


def test_with_an_address_links_and_pictures_lead_there():
    page = "![a picture](docs/a.svg)\n\nSee [b](docs/b.md#c), [d](https://d.example) and [below](#e)."
    assert outside(page, "") == "See b, [d](https://d.example) and [below](#e)."
    assert outside(page, "https://x.example/y/") == (
        "![a picture](https://x.example/y/raw/main/docs/a.svg)\n\n"
        "See [b](https://x.example/y/blob/main/docs/b.md#c), [d](https://d.example) and [below](#e)."
    )


def test_it_names_the_license_and_no_address_that_is_not_there(metadata: Message):
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["License-File"] == "LICENSE"
    assert metadata.get_all("Project-URL") is None
    assert metadata["Description-Content-Type"] == "text/markdown"


def test_the_classifiers_name_each_python_whose_tests_passed_and_no_other(metadata: Message):
    """Those of the table that `make matrix` writes, and the one that every change is tested with."""
    import run_python_matrix as tool

    runs = json.loads(tool.RESULTS.read_text()) if tool.RESULTS.exists() else {}
    passed = {"3.11"} | {version for version, row in runs.items() if row.get("passed") and not row["failed"]}
    claimed = {found[1] for each in metadata.get_all("Classifier", []) if (found := VERSION.fullmatch(each))}
    assert claimed == passed


def test_the_tables_of_tested_versions_are_those_of_the_last_runs():
    import run_posix_suites
    import run_python_matrix

    for tool in (run_python_matrix, run_posix_suites):
        rows, page = json.loads(tool.RESULTS.read_text()), tool.PAGE.read_text()
        assert page == tool.with_table(page, rows), tool.__name__


def test_each_suite_of_the_posix_path_has_passed():
    import run_posix_suites as tool

    rows = json.loads(tool.RESULTS.read_text())
    assert tuple(rows) == (*tool.SUITES, tool.TREES)
    assert [suite for suite in tool.SUITES if rows[suite]["failed"] or not rows[suite]["passed"]] == []


def test_one_wheel_is_for_every_system_and_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """No compiled part is in it, nor is one built where it is installed."""
    from hatchling.build import build_wheel

    monkeypatch.chdir(ROOT)
    name = build_wheel(str(tmp_path))
    assert name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(tmp_path / name) as wheel:
        suffixes = {Path(each).suffix for each in wheel.namelist()}
    assert not suffixes & {".so", ".dylib", ".pyd", ".dll", ".a", ".c", ".pyx", ".rs"}
    assert ".py" in suffixes


def test_each_extra_that_users_have_was_installed_from_the_wheel():
    import check_wheel as tool

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    rows = json.loads(tool.RESULTS.read_text())
    wanted = {"none", *extras, "all of them", "pipx run", "uvx"} - set(tool.NOT_FOR_USERS)
    assert wanted == set(rows)
    for label, row in rows.items():
        assert "failed" not in row.values(), label
    assert tool.PAGE.read_text() == tool.with_table(tool.PAGE.read_text(), rows)
