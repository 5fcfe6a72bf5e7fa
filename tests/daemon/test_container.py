"""The steps of our Dockerfile, run without Docker, and the container that they make.

`make container` makes what the build needs: Debian's files and the packages of Python.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.waiting import LIMIT, until

from . import dockerfile
from .container_image import IN_ROOT, KEPT, WHEELS, Build, Image
from .namespaces import can_unshare, children, entered, first_process

pytestmark = pytest.mark.pythons

APART = ["--mount", "--pid", "--fork", "--uts", "--ipc", "--kill-child"]
# Its supervisor is killed, so the processes that it leaves become children of process 1, and end there.
ORPHANS = "for n in 1 2 3; do setsid sleep 0.$n & done; kill -9 $PPID"


class Container:
    """A running container, seen from outside."""

    def __init__(self, image: Image, first: int, outer: subprocess.Popen[bytes]) -> None:
        self._image = image
        self.first = first
        self._outer = outer

    def __call__(self, *command: str) -> subprocess.CompletedProcess[str]:
        """As `docker exec`."""
        return entered(self.first, self._image.mounted, self._image.words(list(command)))

    def meantime(self, *arguments: str) -> str:
        done = self("meantime", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def health(self) -> int:
        return self(*self._image.settings.health).returncode

    def until_healthy(self) -> None:
        until(lambda: self._outer.poll() is not None or self.health() == 0, "it is healthy")
        assert self._outer.poll() is None, "it has ended"

    def stopped(self) -> int:
        """As `docker stop`: the exit code."""
        os.kill(self.first, signal.SIGTERM)
        return self._outer.wait(LIMIT)


@contextmanager
def run(image: Image, volume: Path, command: list[str] | None = None) -> Iterator[Container]:
    """As `docker run --read-only --tmpfs /tmp -v VOLUME:…`."""
    words = image.words(command or image.settings.start)
    with first_process(["unshare", *APART, str(IN_ROOT), *words], image.container(volume)) as (first, outer):
        yield Container(image, first, outer)


@pytest.fixture(scope="module")
def image() -> Iterator[Image]:
    if os.getuid() != 0 or not can_unshare(*APART):
        pytest.skip("this user may not make namespaces")
    if not WHEELS.exists() or shutil.which("mmdebstrap") is None:
        pytest.skip("`make container` makes what this needs")
    with TemporaryDirectory(dir=KEPT) as folder:
        yield Build(Path(folder)).image()


@pytest.mark.linux_only("a container is a thing of Linux")
def test_the_image_runs_the_daemon_as_process_1_without_root_and_keeps_its_volume(
    image: Image, tmp_path: Path
):
    volume = image.volume(tmp_path / "volume")
    with run(image, volume, ["sleep", "600"]) as idle:
        until(lambda: idle("true").returncode == 0, "it has its file system")
        assert idle.health() == 1, "without a daemon it is not healthy"

    with run(image, volume) as one:
        one.until_healthy()
        assert one("id", "-u").stdout.strip() == image.account()[2] != "0"
        status = Path(f"/proc/{one.first}/status").read_text()
        assert f"Uid:\t{image.account()[2]}\t" in status
        assert "CapBnd:\t0000000000000000" in status
        assert "Read-only file system" in one("touch", "/opt/meantime/x").stderr
        greeting = one.meantime("run", "-q", "--", "sh", "-c", "echo hello; exit 7")
        assert "exit code 7" in one("meantime", "wait", greeting).stdout
        for _ in range(3):
            one("meantime", "wait", one.meantime("run", "-q", "--", "sh", "-c", ORPHANS))
        until(lambda: children(one.first, "Z") == [], "no zombie is left")
        lasting = one.meantime("run", "-q", "--", "sleep", "600")
        assert one.stopped() == 0

    with run(image, volume) as two:
        two.until_healthy()
        assert "hello" in two.meantime("logs", greeting)
        shown = two.meantime("show", lasting)
        assert "lost" in shown, shown
        assert two.stopped() == 0


def test_no_line_of_a_dockerfile_goes_unread():
    with pytest.raises(ValueError, match="ADD"):
        dockerfile.steps("FROM a\nADD b /c\n")


def test_the_last_stage_runs_as_a_user_with_a_volume_and_a_health_check():
    settings = dockerfile.settings(dockerfile.stages(dockerfile.steps(dockerfile.FILE.read_text()))[-1])
    assert settings.user not in ("", "root", "0")
    assert settings.environ["MEANTIME_HOME"].startswith(f"{settings.volume}/")
    assert settings.start[-1] == "--foreground"


def test_the_build_is_given_what_it_copies_and_nothing_else():
    through, _ = dockerfile.context((dockerfile.ROOT / ".dockerignore").read_text())
    copied = [
        step.rest.split()[:-1]
        for step in dockerfile.steps(dockerfile.FILE.read_text())
        if step.word == "COPY"
    ]
    assert {name for names in copied if not names[0].startswith("--") for name in names} == through
