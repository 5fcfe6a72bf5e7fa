"""An entry of an inbox says for people why it is parked."""

from __future__ import annotations

import pytest

from meantime.kernel.inbox_page import inbox_entry
from meantime.kernel.lifecycle import Status
from meantime.kernel.notices import Notice, NoticeState

from .make import make_task


@pytest.mark.parametrize(
    ("parked_for", "reason"),
    [
        ("failures", "Its delivery failed 5 times."),
        ("unclaimed", "Nobody asked for the notices of this conversation for long."),
        ("unreadable", "Its task cannot be read: the ledger is damaged."),
        ("", ""),
    ],
)
def test_a_parked_entry_says_why(parked_for: str, reason: str):
    notice = Notice(make_task(Status.COMPLETED), 1, "n0nce", state=NoticeState.PARKED)
    entry = inbox_entry(notice, failures=5, parked_for=parked_for)
    assert entry.reason == reason
