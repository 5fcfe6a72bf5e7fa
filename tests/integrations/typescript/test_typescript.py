"""A typed TypeScript client is made from /v1/openapi.json; a host written with it is told once."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.waiting import LIMIT

from cli.person import Person
from meantime.surfaces.http.openapi import document

HERE = Path(__file__).resolve().parent
MODULES = HERE.parents[2] / ".typescript" / "node_modules"
TSC, GENERATOR = MODULES / ".bin" / "tsc", MODULES / ".bin" / "openapi-typescript"

pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.skipif(
        not TSC.exists() and os.environ.get("CI") != "true",
        reason="TypeScript is not installed: make typescript",
    ),
]


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=2 * LIMIT,
        check=False,
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The host program beside the client that was made for it."""
    folder = tmp_path_factory.mktemp("typescript")
    for name in ("package.json", "tsconfig.json", "host.ts"):
        (folder / name).write_bytes((HERE / name).read_bytes())
    (folder / "node_modules").symlink_to(MODULES)
    (folder / "openapi.json").write_bytes(document())
    made = run(GENERATOR, "openapi.json", "--default-non-nullable=false", "-o", "meantime.ts", cwd=folder)
    assert made.returncode == 0, made.stdout + made.stderr
    return folder


@pytest.fixture(scope="module")
def built(project: Path) -> Path:
    compiled = run(TSC, "--project", "tsconfig.json", cwd=project)
    assert compiled.returncode == 0, compiled.stdout
    return project / "built" / "host.js"


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    one = Person(tmp_path)
    assert one("up").code == 0
    yield one
    one.leave()


WRONG = [
    ("thread, toolCallID", "thread: 5, toolCallID"),
    ("lease: 60", 'lease: "60"'),
    ("query: { tail: 1 }", "query: { tial: 1 }"),
    ("exitCode: task.exitCode", "exitCode: task.exit_code"),
    ('"/v1/turns/{turn}/ack"', '"/v1/turns/{turn}/acknowledge"'),
]


def test_the_compiler_refuses_what_the_api_would(project: Path, built: Path):
    """Each program is the host with one mistake; without it, it compiles."""
    text = (HERE / "host.ts").read_text()
    files = [f"wrong{number}.ts" for number in range(len(WRONG))]
    for name, (right, wrong) in zip(files, WRONG, strict=True):
        assert right in text
        (project / name).write_text(text.replace(right, wrong, 1))
    options = json.loads((HERE / "tsconfig.json").read_text())
    (project / "wrong.json").write_text(json.dumps({**options, "files": files}))
    found = run(TSC, "--project", "wrong.json", "--noEmit", cwd=project)
    assert [name for name in files if f"{name}(" not in found.stdout] == [], found.stdout


@pytest.mark.behaviour("P5")
def test_a_host_in_typescript_is_told_once(built: Path, person: Person):
    url = person("open", "--base").out.strip()
    token = (person.home / "token").read_text().strip()
    headers = {"Authorization": f"Bearer {token}"}
    done = run("node", built, url, token, "conv-ts", cwd=built.parent)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    task = found["id"]
    assert found == {
        "id": task,
        "status": "error",
        "exitCode": 3,
        "toolCallID": "call-1",
        "existing": task,
        "told": [f"{task}.1"],
        "said": "hello\n",
    }
    asked = f"{url}/v1/notices?thread=conv-ts&state="
    with httpx.Client(headers=headers, trust_env=False, timeout=LIMIT) as asking:
        told = asking.get(f"{asked}told").json()
        assert [notice["id"] for notice in told["notices"]] == [f"{task}.1"]
        assert asking.get(f"{asked}unread,leased,parked").json()["total"] == 0
