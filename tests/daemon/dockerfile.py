"""The instructions of our Dockerfile, in the small part of its language that it uses.

An instruction that is not known here is an error, so that no line of the file goes untested.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "Dockerfile"
KNOWN = frozenset(["FROM", "RUN", "COPY", "ENV", "USER", "WORKDIR", "VOLUME", "HEALTHCHECK", "ENTRYPOINT"])


class Step(NamedTuple):
    word: str
    rest: str


class Stage(NamedTuple):
    name: str  # empty for the last one
    base: str  # an image, or the name of an earlier stage
    steps: list[Step]


class Settings(NamedTuple):
    """How a container of the image is started."""

    environ: dict[str, str]
    user: str
    folder: str
    volume: str
    health: list[str]
    start: list[str]


def steps(text: str) -> list[Step]:
    found: list[Step] = []
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        word, _, rest = line.partition(" ")
        if word not in KNOWN:
            raise ValueError(f"{word} is not an instruction that the tests know: {line}")
        found.append(Step(word, rest.strip()))
    return found


def stages(found: list[Step]) -> list[Stage]:
    made: list[Stage] = []
    for step in found:
        if step.word == "FROM":
            base, _, name = step.rest.partition(" AS ")
            made.append(Stage(name, base, []))
        else:
            made[-1].steps.append(step)
    return made


def settings(stage: Stage) -> Settings:
    """Of the last stage. ENTRYPOINT must be a list: a shell in between would be process 1."""
    said = {step.word: step.rest for step in stage.steps}
    assigned = (
        word.partition("=") for step in stage.steps if step.word == "ENV" for word in shlex.split(step.rest)
    )
    options, _, health = said["HEALTHCHECK"].partition("CMD ")
    if not all(option.startswith("--") for option in options.split()):
        raise ValueError(f"HEALTHCHECK {said['HEALTHCHECK']}")
    return Settings(
        environ={name: value for name, _, value in assigned},
        user=said["USER"], folder=said["WORKDIR"], volume=said["VOLUME"],
        health=["/bin/sh", "-c", health], start=json.loads(said["ENTRYPOINT"]),
    )  # fmt: skip


def context(ignored: str) -> tuple[set[str], set[str]]:
    """What .dockerignore lets through at the top, and the names that are ignored at any depth below it."""
    lines = [line for line in ignored.splitlines() if line and not line.startswith("#")]
    if lines[0] != "*":
        raise ValueError(".dockerignore must begin with everything")
    below = {line.removeprefix("**/") for line in lines if line.startswith("**/")}
    return {line[1:] for line in lines if line.startswith("!")}, below
