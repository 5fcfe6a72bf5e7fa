"""The id of a notice says its source, and is taken apart in one place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meantime.kernel.notice_sources import (
    NoticeRef,
    SourceKind,
    is_like_a_notice,
    notice_id,
    parse_notice_id,
)

OURS = "t_2qx7m4kd9a"
FOREIGN = st.from_regex(r"[A-Za-z0-9._:-]{1,40}", fullmatch=True).filter(lambda id: not is_like_a_notice(id))
NUMBERS = st.integers(0, 999_999_999)


@pytest.mark.parametrize(
    ("ref", "id"),
    [
        (NoticeRef(SourceKind.ENDING, OURS, 1), "t_2qx7m4kd9a.1"),
        (NoticeRef(SourceKind.EVENT, OURS, 1, 7), "t_2qx7m4kd9a.1.7"),
        (NoticeRef(SourceKind.ENDING, "build.1", 7), "build.1.7"),
        (NoticeRef(SourceKind.EVENT, "build", 1, 7), "build.1:7"),
        (NoticeRef(SourceKind.ALARM, "s_2qx7m4kd9a", 12), "s_2qx7m4kd9a.12"),
        (NoticeRef(SourceKind.MESSAGE, "m_2qx7m4kd9a"), "m_2qx7m4kd9a"),
        (NoticeRef(SourceKind.ENDING, "s_mine", 1), "s_mine.1"),
    ],
)
def test_each_source_has_its_form(ref: NoticeRef, id: str):
    assert ref.id == id
    assert parse_notice_id(id) == ref


@given(FOREIGN, NUMBERS, NUMBERS)
def test_a_task_of_any_id_gets_its_own_notices_back(of: str, run: int, seq: int):
    for ref in (NoticeRef(SourceKind.ENDING, of, run), NoticeRef(SourceKind.EVENT, of, run, seq)):
        assert parse_notice_id(ref.id) == ref
    assert notice_id(of, run) == NoticeRef(SourceKind.ENDING, of, run).id


@pytest.mark.parametrize("id", ["", "t_1", "t_1.", ".1", "t_1.x", "t_1.9999999999", "t_1.-1", "t_1.1.", "…"])
def test_other_texts_are_no_notices(id: str):
    assert parse_notice_id(id) is None


@pytest.mark.parametrize("id", [f"{OURS}.1", "s_2qx7m4kd9a", "m_2qx7m4kd9a", "s_2qx7m4kd9a.3"])
def test_an_id_that_would_be_taken_for_a_notice_is_known(id: str):
    assert is_like_a_notice(id)


@pytest.mark.parametrize("id", [OURS, "build.42", "s_mine", "t_1.1", "m_", "conv:7"])
def test_other_ids_are_free(id: str):
    assert not is_like_a_notice(id)
