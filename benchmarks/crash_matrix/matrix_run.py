"""Plays the rows of the matrix, and keeps their figures."""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ..measure import table
from .crash_round import WATCH, Stuck, play
from .judge import Evidence, judged
from .matrix_rows import NOT_PLAYED, SUBJECTS
from .subject import ROOT, Subject

FIGURES = ROOT / "docs" / "reference" / "crash-matrix.json"
ROUNDS = 3
AT_ONCE = 3  # rounds of one row: they wait most of the time
UNPLAYED = "it was not played yet."
SHOWN = 2  # texts that the model was told, for each row
MOST = 160  # characters of one
# Ids, times and folders are other ones in each round; their shape is enough.
CHANGES = (
    (re.escape(str(ROOT)), "…"), (r"t_[a-z0-9]{10}", "t_…"), (r"[0-9a-f]{8}-[0-9a-f-]{27}", "…"),
    (r"after \d+s", "after …s"),
)  # fmt: skip


async def play_all() -> None:
    rounds = int(os.environ.get("ROUNDS") or ROUNDS)
    for subject in SUBJECTS:
        if _is_wanted(subject):
            row = None if subject.missing else await asyncio.to_thread(_played, subject, rounds)
            _write(subject, row)


def _write(subject: Subject, row: dict[str, Any] | None) -> None:
    """After each row, as all take half an hour. A row that was not played keeps the figures that it had."""
    before = json.loads(FIGURES.read_text()) if FIGURES.exists() else {"rows": []}
    rows = {each["name"]: each for each in before["rows"]} | ({subject.name: row} if row else {})
    missing = {each.name: each.missing or UNPLAYED for each in SUBJECTS} | NOT_PLAYED
    figures = {
        "watch": WATCH,
        "rows": [rows[each.name] for each in SUBJECTS if each.name in rows],
        "missing": {name: why for name, why in missing.items() if name not in rows},
    }  # fmt: skip
    FIGURES.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n")
    if row:
        table(row["name"], list(row["verdict"]), [[str(value) for value in row["verdict"].values()]])


def _is_wanted(subject: Subject) -> bool:
    words = (os.environ.get("ROWS") or "").split()
    return not words or any(word in subject.name for word in words)


def _played(subject: Subject, rounds: int) -> dict[str, Any]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        played = list(pool.map(lambda _: _round(subject), range(rounds)))
    found = [each[0] for each in played if not isinstance(each, str)]
    problems = [each for each in played if isinstance(each, str)]
    texts = next((each[1] for each in played if not isinstance(each, str) and each[1]), [])
    said = [shape(text) for text in texts[:SHOWN]]
    for problem in problems:
        print(f"a round of {subject.name} could not be played: {problem}")
    return {
        "name": subject.name, "mode": subject.mode, "versions": subject.versions, "tells": subject.tells,
        "date": time.strftime("%Y-%m-%d"), "rounds": rounds,
        "verdict": judged(found)._asdict(), "said": said, "not_played": len(problems),
        "evidence": [_kept(each) for each in found],
    }  # fmt: skip


def _kept(each: Evidence) -> dict[str, Any]:
    words: Counter[str] = Counter()
    for text, times in each.words.items():
        words[shape(text)] += times
    return {**each._asdict(), "words": words}


def _round(subject: Subject) -> tuple[Evidence, list[str]] | str:
    """One round, or why it could not be played."""
    try:
        return play(subject)
    except Stuck as problem:
        return str(problem)[-400:]


def shape(text: str) -> str:
    for pattern, shown in CHANGES:
        text = re.sub(pattern, shown, text)
    return text[:MOST]
