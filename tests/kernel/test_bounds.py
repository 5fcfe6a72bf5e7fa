"""Whatever an ending carries: nothing in it is over its limit, and the whole is in its file."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from meantime.kernel import bounds
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Cancelled, Completed, Failed, InlineLimits, Lost, Outcome, Spill, TimedOut
from meantime.kernel.notices import Notice, payload_text
from meantime.kernel.payloads import PREVIEW, as_text, is_over
from meantime.kernel.questions import Question
from meantime.testing.dialect.sample_tasks import task

SIZES = (0, 10, 3_999, 4_000, 4_001, 51_200, 51_201, 300_000)
texts = st.builds(
    lambda size, unit: (unit * size)[:size],
    st.sampled_from(SIZES),
    st.sampled_from(["x", "line\n", "ж", "🙂"]),
)
payloads = st.one_of(st.none(), texts, texts.map(lambda text: {"deep": [text]}))
outcomes: st.SearchStrategy[Outcome] = st.one_of(
    st.builds(Completed, result=payloads, final_message=texts, terminate_reason=texts),
    st.builds(Failed, texts, texts, texts, partial=payloads, final_message=texts, terminate_reason=texts),
    st.builds(Cancelled, texts, texts, partial=payloads),
    st.builds(TimedOut, st.just(3.0), partial=payloads),
    st.builds(Lost, texts, partial=payloads),
)
LIMITS = InlineLimits()
CUT = 4 * PREVIEW + 10  # bytes of a text's two ends


@given(outcomes, st.sampled_from([LIMITS, InlineLimits(max_bytes=100), InlineLimits(max_lines=3)]))
def test_no_text_of_an_ending_is_over_its_limit(outcome: Outcome, limits: InlineLimits):
    over = bounds.bounded(outcome, limits)
    ended = over.outcome if over.whole is None else bounds.filed(over, "/the/file")
    sizes = [len(as_text(getattr(ended, name, None)).encode()) for name in ("result", "partial")]
    assert max(sizes) <= max(limits.max_bytes, CUT)
    for name in ("message", "reason"):
        assert not is_over(getattr(ended, name, ""), InlineLimits(max(bounds.ERROR.max_bytes, CUT), 2_010))
    assert len(getattr(ended, "final_message", "").encode()) <= max(limits.max_bytes, CUT)
    assert len(getattr(ended, "detail", "")) <= bounds.DETAIL
    for name in ("code", "terminate_reason", "by"):
        assert len(getattr(ended, name, "")) <= bounds.WORD
    assert len(payload_text(ended).encode()) <= max(limits.max_bytes, CUT) + CUT + 100


@given(outcomes)
def test_the_file_has_the_whole_of_what_is_cut(outcome: Outcome):
    over = bounds.bounded(outcome, LIMITS)
    value = outcome.result if isinstance(outcome, Completed) else outcome.partial
    message = getattr(outcome, "message", getattr(outcome, "reason", ""))
    if is_over(message, bounds.ERROR):
        assert over.whole is not None
        assert over.whole.startswith(message)
        assert as_text(value) in over.whole
    elif is_over(as_text(value), LIMITS):
        assert over.whole == as_text(value)
        assert over.is_text or msgspec.json.decode(over.whole or "") == value
    elif is_over(getattr(outcome, "final_message", ""), LIMITS) and isinstance(outcome, Completed):
        assert over.whole == outcome.final_message
    else:
        assert over.whole is None


@given(outcomes)
def test_an_ending_whose_file_cannot_be_written_says_why_and_is_short(outcome: Outcome):
    over = bounds.bounded(outcome, LIMITS)
    if over.whole is not None:
        ended = bounds.unfiled(over, "the disk is full")
        assert ended.spill is None
        assert len(msgspec.json.encode(ended)) < 10 * LIMITS.max_bytes
        shown = f"{payload_text(ended)}{getattr(ended, 'final_message', '')}"
        assert "could not be written to a file: the disk is full" in shown


@given(st.dictionaries(st.text(max_size=5), payloads, max_size=100))
def test_emitted_values_have_one_limit_together(emitted: dict[str, object]):
    assert len(msgspec.json.encode(bounds.values(emitted)).decode()) <= LIMITS.max_bytes


@given(texts, payloads)
def test_a_question_is_cut_and_keeps_its_id_and_its_subject(text: str, arguments: object):
    asked = Question(id="q", text=text, subject="bash", arguments=arguments)
    kept = bounds.bounded_question(asked)
    assert (kept.id, kept.subject) == ("q", "bash")
    assert len(msgspec.json.encode(kept).decode()) < 2 * 4_000 + 2 * 4_000 + 200


def test_a_long_error_is_told_by_its_two_ends_and_once():
    over = bounds.bounded(Failed("begin " + "x" * 300_000 + " end"), LIMITS)
    ended = bounds.filed(over, "/the/file")
    told = Notice(task(Status.FAILED, ended), 1, "n0nce").message().text
    assert "begin" in told
    assert " end" in told
    assert "/the/file" in told
    assert told.count("begin") == 1
    assert len(told) < 3_000


@given(outcomes)
def test_the_ending_of_an_inline_call_is_cut_without_a_file(outcome: Outcome):
    ended = bounds.cut(outcome)
    assert type(ended) is type(outcome)
    assert getattr(ended, "spill", None) is None
    for name in ("result", "partial", "message", "reason", "final_message"):
        said = as_text(getattr(ended, name, None))
        assert len(said) <= LIMITS.max_bytes + 100, name  # characters, and the line that says what was cut


def test_a_long_error_beside_the_file_of_a_command_is_cut_and_the_file_stays():
    spill = Spill("/its/output", 10_000, 100)
    over = bounds.bounded(Failed("x" * 300_000, spill=spill), LIMITS)
    assert over.whole is None, "there is one file for an ending, and the output is in it"
    assert over.outcome.spill == spill
    assert isinstance(over.outcome, Failed)
    assert len(over.outcome.message) < 10_000
