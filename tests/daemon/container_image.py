"""Builds the image of our Dockerfile without Docker, and starts containers of it: overlays and namespaces.

mmdebstrap makes the Debian that FROM names. Each RUN and COPY is a layer of its own, as in Docker. Layers
before the first COPY need the network and depend on the Dockerfile alone, so they are kept in .container:

python -m tests.daemon.container_image     # makes them, and fetches the packages that pip installs
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from . import dockerfile
from .dockerfile import ROOT, Settings, Stage, Step

KEPT = ROOT / ".container"
WHEELS = KEPT / "wheels"
IN_ROOT = ROOT / "tests/daemon/container/in_root"
INDEX = "/run/packages"  # where the packages are during a build
LONGEST = 600.0  # seconds for one step
PLAIN = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
IMAGE = re.compile(r"debian:(\w+)-slim")


class Build:
    """Makes the stages of the Dockerfile, each a stack of layers with the lowest first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0
        self._mounted = self._new()
        self._made: dict[str, list[Path]] = {}

    def image(self) -> Image:
        stages = the_stages()
        layers = [self.stage(each) for each in stages][-1]
        return Image(layers, dockerfile.settings(stages[-1]), self._mounted)

    def stage(self, stage: Stage) -> list[Path]:
        layers = [*self._made[stage.base]] if stage.base in self._made else [base(stage.base)]
        kept, done = stage.base not in self._made, [stage.base]
        for step in stage.steps:
            done.append(" ".join(step))
            kept = kept and step.word == "RUN"
            if step.word == "RUN":
                layers.append(self._run(step, layers, _place(done) if kept else None))
            elif step.word == "COPY":
                layers.append(self._copied(step))
        self._made[stage.name] = layers
        return layers

    def _run(self, step: Step, below: list[Path], kept: Path | None) -> Path:
        if kept is not None and kept.exists():
            return kept
        upper, work = self._new(), self._new()
        offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": INDEX, "DEBIAN_FRONTEND": "noninteractive"}
        mounts = {"UPPER": str(upper), "WORK": str(work), "OUTSIDE": str(WHEELS), "INSIDE": INDEX}
        WHEELS.mkdir(parents=True, exist_ok=True)
        words = in_environment({**PLAIN, **offline}, ["/bin/sh", "-c", step.rest])
        done = subprocess.run(
            ["unshare", "--mount", str(IN_ROOT), *words], env=mounting(self._mounted, below, mounts),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=LONGEST, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"RUN {step.rest}\n{done.stdout[-4000:]}"
        return upper if kept is None else upper.rename(kept)

    def _copied(self, step: Step) -> Path:
        *sources, goal = step.rest.split()
        upper = self._new()
        target = upper / goal.strip("/")
        if sources[0].startswith("--from="):
            [layer] = [
                one for one in reversed(self._made[sources[0][7:]]) if (one / sources[1].strip("/")).exists()
            ]
            target.parent.mkdir(parents=True)
            shutil.copytree(layer / sources[1].strip("/"), target, symlinks=True)
            return upper
        through, ignored = dockerfile.context((ROOT / ".dockerignore").read_text())
        for name in sources:
            assert name in through, f".dockerignore keeps {name} from the build"
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, target, ignore=shutil.ignore_patterns(*ignored))
            else:
                target.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, target)
        return upper

    def _new(self) -> Path:
        self._count += 1
        made = self._folder / f"layer-{self._count}"
        made.mkdir()
        return made


class Image(NamedTuple):
    layers: list[Path]
    settings: Settings
    mounted: Path  # where containers mount it, each in its own namespace

    def container(self, volume: Path) -> dict[str, str]:
        """The environment in which `in_root` makes the file system of a container."""
        return mounting(self.mounted, self.layers, {"OUTSIDE": str(volume), "INSIDE": self.settings.volume})

    def volume(self, folder: Path) -> Path:
        """A new volume: it has the files, the owner and the mode that its folder has in the image."""
        inside = self.settings.volume.strip("/")
        [source] = [one / inside for one in self.layers if (one / inside).exists()]
        subprocess.run(["cp", "-a", str(source), str(folder)], check=True, timeout=LONGEST)
        return folder

    def words(self, command: list[str]) -> list[str]:
        """A command as Docker starts it in a container of this image, without a right that it could gain."""
        user = self.account()
        drop = [
            f"--reuid={user[2]}",
            f"--regid={user[3]}",
            "--clear-groups",
            "--no-new-privs",
            "--bounding-set=-all",
        ]
        environ = {**PLAIN, "HOME": user[5], **self.settings.environ}
        return ["/usr/bin/setpriv", *drop, *in_environment(environ, command, self.settings.folder)]

    def account(self) -> list[str]:
        """The line of /etc/passwd."""
        [newest, *_] = [one / "etc/passwd" for one in reversed(self.layers) if (one / "etc/passwd").exists()]
        [found] = [
            line for line in newest.read_text().splitlines() if line.startswith(f"{self.settings.user}:")
        ]
        return found.split(":")


def mounting(root: Path, layers: list[Path], more: dict[str, str]) -> dict[str, str]:
    """The environment of `in_root`."""
    stack = ":".join(str(one) for one in reversed(layers))
    return {"PATH": os.environ["PATH"], "ROOT": str(root), "LAYERS": stack, **more}


def the_stages() -> list[Stage]:
    return dockerfile.stages(dockerfile.steps(dockerfile.FILE.read_text()))


def in_environment(environ: dict[str, str], command: list[str], folder: str = "/") -> list[str]:
    return [
        "/usr/bin/env",
        "-i",
        f"--chdir={folder}",
        *(f"{name}={value}" for name, value in environ.items()),
        *command,
    ]


def base(image: str) -> Path:
    """The Debian that an image of this name has; made on the first call."""
    found = IMAGE.fullmatch(image)
    assert found is not None, f"{image} is not a Debian that mmdebstrap can make"
    made = _place([image])
    if not made.exists():
        made.parent.mkdir(parents=True, exist_ok=True)
        half = made.with_suffix(".half")
        shutil.rmtree(half, ignore_errors=True)
        subprocess.run(
            ["mmdebstrap", "-q", "--variant=minbase", found[1], str(half)], check=True, timeout=LONGEST
        )
        half.rename(made)
    return made


def _place(done: list[str]) -> Path:
    """Where a layer is kept, by everything that leads to it."""
    return KEPT / "layers" / hashlib.sha256("\n".join(done).encode()).hexdigest()[:16]


def fetch_packages(layers: list[Path]) -> None:
    """All that pip installs in a build, for the Python that the image has."""
    [python] = {
        path.name for one in layers for path in one.glob("usr/bin/python3.*") if path.name[8:].isdigit()
    }
    pip = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "-q",
        "--disable-pip-version-check",
        "--only-binary=:all:",
    ]
    shutil.rmtree(WHEELS, ignore_errors=True)
    subprocess.run(
        [*pip, f"--python-version={python[6:]}", "-d", str(WHEELS), f"{ROOT}[server,mcp]", "hatchling"],
        check=True, timeout=LONGEST,
    )  # fmt: skip
    for own in WHEELS.glob("meantime-*"):
        own.unlink()  # the build makes it from the source


def main() -> None:
    """Everything that needs the network."""
    KEPT.mkdir(exist_ok=True)
    with TemporaryDirectory(dir=KEPT) as folder:
        fetch_packages(Build(Path(folder)).stage(the_stages()[0]))
    (KEPT / ".ready").touch()


if __name__ == "__main__":
    main()
