"""docs/guides/coding-agents.md says what a conversation costs, in tokens; our own texts stay short."""

from __future__ import annotations

import pytest
import write_costs as tool

from meantime.dialects import names
from meantime.kernel import notices
from meantime.kernel.payloads import fenced

pytestmark = pytest.mark.docs

NOTICE = 60  # tokens, without the task's title and output
FENCE = 20  # what the untrusted block adds, in every dialect
RUNNING = 15  # for each running task in a reminder; one more with the longest of a hundred ids


def test_the_page_is_fresh():
    page = tool.write()
    table = page.partition(tool.BEGIN)[2].partition(tool.END)[0]
    assert tool.PAGE.read_text("utf-8") == page, f"stale: run `python tools/write_costs.py`\n{table}"


def test_every_dialect_is_counted():
    assert sorted(tool.CALLS) == sorted(names())


def test_our_own_words_are_few():
    ours = tool.costs("meantime")
    assert max(ours.completed.most, ours.failed.most) <= NOTICE, tool.table([ours])
    assert ours.further.usual <= RUNNING, tool.table([ours])
    assert ours.further.most <= RUNNING + 1, tool.table([ours])
    assert ours.reminder.most <= 2 * RUNNING, f"with its head, the first costs no more than two\n{ours}"


def test_the_frame_around_untrusted_output_is_lean():
    for nonce in ("1f0c5e2a9b3d", "7f3k9q", "000000000000"):
        assert tool.tokens(fenced(tool.OUTPUT, nonce)) - tool.tokens(tool.OUTPUT) <= FENCE


def test_a_text_that_grew_is_noticed(monkeypatch):
    monkeypatch.setattr(notices, "EVENT", f"This is an important message. {notices.EVENT}")
    assert tool.costs("meantime").failed.most > NOTICE


def test_the_tokenizer_is_a_real_one():
    """The ids that OpenAI's own cl100k_base gives."""
    assert tool._ENCODING.encode("hello world") == [15339, 1917]
    assert tool.tokens("antidisestablishmentarianism") == 6
