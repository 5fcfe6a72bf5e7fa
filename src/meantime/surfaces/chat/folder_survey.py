"""Work for the scripted agent, as a program of its own: it outlives the chat. The standard library alone.

python folder_survey.py index FOLDER      count files, lines and words, by the ends of their names
python folder_survey.py explore FOLDER    the biggest files, and what lies where
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

SKIPPED = {".git", ".venv", "node_modules", "__pycache__"}
MOST = 2_000_000  # bytes of a file that is read
EVERY = 500  # files between two lines about how far it is
SHOWN = 10


def say(text: str) -> None:
    sys.stdout.write(text.encode("utf-8", "replace").decode("utf-8") + "\n")
    sys.stdout.flush()


def files(folder: Path) -> Iterator[Path]:
    for where, inner, names in os.walk(folder):
        inner[:] = sorted(set(inner) - SKIPPED)
        yield from (Path(where, name) for name in sorted(names) if Path(where, name).is_file())


def index(folder: Path) -> str:
    kinds: Counter[str] = Counter()
    lines = words = count = 0
    for count, file in enumerate(files(folder), 1):
        kinds[file.suffix or "(none)"] += 1
        if count % EVERY == 0:
            say(f"{count:,} files so far, {lines:,} lines")
        try:
            if file.stat().st_size > MOST:
                continue
            data = file.read_bytes()
        except OSError:
            continue
        lines += data.count(b"\n")
        words += len(data.split())
    most = ", ".join(f"{number:,} {kind}" for kind, number in kinds.most_common(5))
    return f"{count:,} files, {lines:,} lines, {words:,} words: {most or 'nothing'}"


def explore(folder: Path) -> str:
    sizes: list[tuple[int, Path]] = []
    held: Counter[str] = Counter()
    for file in files(folder):
        try:
            size = file.stat().st_size
        except OSError:
            continue
        sizes.append((size, file))
        inside = file.relative_to(folder)
        held[inside.parts[0] if len(inside.parts) > 1 else "."] += size
    for place, size in held.most_common(SHOWN):
        say(f"{size:>14,}  {place}")
    for size, file in sorted(sizes, reverse=True)[:SHOWN]:
        say(f"{size:>14,}  {file.relative_to(folder)}")
    return f"{len(sizes):,} files, {sum(size for size, _ in sizes):,} bytes"


if __name__ == "__main__":
    say({"index": index, "explore": explore}[sys.argv[1]](Path(sys.argv[2])))
