"""Looking for notices in transcripts: what it costs, and what a host may do with the file meanwhile."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from meantime.surfaces.hooks import transcript_search

NOTICE = '{"content":"<task-notification id=\\"t_1.1\\" task=\\"t_1\\">"}\n'


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes were read, each time."""
    sizes: list[int] = []
    pread = os.pread

    def counted(file: int, size: int, offset: int) -> bytes:
        data = pread(file, size, offset)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(os, "pread", counted)
    return sizes


def test_only_what_came_after_a_notice_was_shown_is_read(tmp_path: Path, read: list[int]):
    path = tmp_path / "long.jsonl"
    path.touch()
    os.truncate(path, 250_000_000)
    shown = transcript_search.size(str(path))
    with path.open("a") as to:
        to.write(NOTICE)
    assert transcript_search.found(str(path), {"t_1.1": shown}) == {"t_1.1"}
    assert sum(read) < 1_000


def test_a_transcript_that_was_written_anew_is_read_from_its_start(tmp_path: Path):
    path = tmp_path / "shorter.jsonl"
    path.write_text(NOTICE)
    assert transcript_search.found(str(path), {"t_1.1": 10_000}) == {"t_1.1"}


def test_a_notice_across_two_pieces_is_found(tmp_path: Path):
    path = tmp_path / "cut.jsonl"
    for before in range(len(NOTICE) + 2):
        path.write_text("x" * (transcript_search.PIECE - before) + NOTICE)
        assert transcript_search.found(str(path), {"t_1.1": 0}) == {"t_1.1"}, before


QUEUED = (
    '{"type":"queue-operation","operation":"enqueue","timestamp":"2026-11-16T22:43:26.768Z",'
    '"sessionId":"1ea3df32","content":"<task-notification>\\n<summary>Stop hook feedback</summary>\\n'
    'Stop hook blocking error: <task-notification id=\\"t_1.1\\" task=\\"t_1\\">"}\n'
)


@pytest.mark.parametrize("size", [0, 100, transcript_search.PIECE - 200])
def test_a_notice_that_claude_code_only_queued_is_not_in_the_conversation(tmp_path: Path, size: int):
    """Killed before it took the notice from its queue, it does not have it when it resumes."""
    path, before = tmp_path / "queued.jsonl", "x" * size + "\n"
    path.write_text(before + QUEUED)
    assert transcript_search.found(str(path), {"t_1.1": 0}) == set()
    assert transcript_search.found(str(path), {"t_1.1": len(before)}) == set()
    path.write_text(before + QUEUED + NOTICE)
    assert transcript_search.found(str(path), {"t_1.1": len(before)}) == {"t_1.1"}


def test_each_is_looked_for_and_only_the_end_of_a_huge_one(
    tmp_path: Path, read: list[int], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(transcript_search, "MOST", 1 << 22)
    path = tmp_path / "huge.jsonl"
    path.write_text(NOTICE)
    os.truncate(path, 10_000_000_000)
    with path.open("a") as to:
        to.write(NOTICE.replace("t_1", "t_2"))
    assert transcript_search.found(str(path), {"t_1.1": 0, "t_2.1": 0, "t_3.1": 0}) == {"t_2.1"}
    assert sum(read) <= (1 << 22) + 1_000


def test_a_pipe_is_no_transcript_and_keeps_nobody(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    assert transcript_search.found(str(tmp_path / "pipe"), {"t_1.1": 0}) is None
    assert transcript_search.found("nul\0", {"t_1.1": 0}) is None
