"""The judge of wrapped calls: pure functions over the outside ledger."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from meantime.surfaces.mcp.notice_delivery import AGAIN

from .judge import Fact, Told, Verdict, judge
from .wrap_ledger import THREAD, Noted

# How a notice names its call: `mcp/…` if it was recorded before the server had said its own name.
CALL = re.compile(r"(?:wrapped|mcp)/(?:slow|quick)-(\w+)")
RESULT = re.compile(r"result of (\w+)")
LOSSES = ("daemon", "server")  # kills that a call of theirs does not survive
FORGETTING = ("host", "wrap", "daemon")  # kills after which a notice may be told once more, and says so


def verdict(facts: Sequence[Noted]) -> Verdict:
    """`lost` has what was never told, and every answer that is wrong or reached another call."""
    story = judge(list(_story(facts)), {THREAD: [Told(mark) for mark in dict(_tellings(facts))]})
    lost = (*story.lost, *_unanswered(facts), *_crossed(facts), *_unfair(facts))
    return Verdict(lost, tuple(_doubled(facts)), story.misordered)


def _story(facts: Sequence[Noted]) -> Iterator[Fact]:
    names = {"sent": "attempt", "background": "accepted", "freed": "finishing", "ended": "ended"}
    for fact in facts:
        if fact.what in names:
            yield Fact(names[fact.what], THREAD, fact.mark)


def _tellings(facts: Sequence[Noted]) -> Iterator[tuple[str, int]]:
    """The call of each notice that was told, and its place among the facts."""
    for place, fact in enumerate(facts):
        if fact.what == "told":
            found = CALL.search(fact.note)
            yield (found[1] if found else f"nobody: {fact.note}"), place


def _doubled(facts: Sequence[Noted]) -> Iterator[str]:
    for what, meaning in (("got", "was sent to a server"), ("result", "was answered")):
        for mark, count in Counter(fact.mark for fact in facts if fact.what == what).items():
            if count > 1:
                yield f"{mark} {meaning} {count} times"
    first: dict[str, int] = {}
    for mark, place in _tellings(facts):
        if mark in first:
            since = _carried_since(facts, first[mark])
            kills = [one.mark for one in facts[since:place] if one.what == "killed"]
            if not set(kills) & set(FORGETTING):
                yield f"{mark} was told again, and nobody was killed in between"
            elif AGAIN.strip() not in facts[place].note:
                yield f"{mark} was told again, and the notice does not say so"
        first[mark] = place
    answered = {fact.mark for fact in facts if fact.what == "result"}
    yield from (f"{mark} was answered and told" for mark in first if mark in answered)
    yield from (f"an answer to nothing: {fact.note}" for fact in facts if fact.what == "stray")


def _carried_since(facts: Sequence[Noted], place: int) -> int:
    """Where the call was sent whose answer took the notice at `place` along. A daemon that is killed while
    the answer is on its way does not know that it was read, and the host reads it after the kill is noted."""
    carrier = next((one.mark for one in facts[place:] if one.what in ("result", "background")), None)
    sent = (at for at, one in enumerate(facts[:place]) if one.what == "sent" and one.mark == carrier)
    return next(sent, place)


def _crossed(facts: Sequence[Noted]) -> Iterator[str]:
    for fact in facts:
        if fact.what == "result" and fact.note != f"result of {fact.mark}":
            yield f"the answer to {fact.mark} is {fact.note!r}"
        elif fact.what == "told":
            call, result = CALL.search(fact.note), RESULT.search(fact.note)
            if call is None or (result is not None and result[1] != call[1]):
                yield f"a notice is of another call: {fact.note!r}"


def _unanswered(facts: Sequence[Noted]) -> Iterator[str]:
    """A call that a server got is answered, in words or by an error, or told, unless its answer was on its
    way when its host or wrap was killed: nobody can know whether such an answer was read."""
    settled = {fact.mark for fact in facts if fact.what in ("result", "error", "background")}
    settled |= {mark for mark, _ in _tellings(facts)}
    for place, fact in enumerate(facts):
        if fact.what != "sent" or fact.mark in settled:
            continue
        after = facts[place:]
        cut = next((at for at, one in enumerate(after) if one.what == "gone"), len(after))
        on_its_way = any(one.what == "answering" and one.mark == fact.mark for one in after[:cut])
        got = any(one.what == "got" and one.mark == fact.mark for one in after)
        is_cut = any(one.what == "killed" and one.mark in ("host", "wrap") for one in after)
        if not is_cut or (got and not on_its_way):
            yield f"{fact.mark} was sent, and nobody was ever told what became of it"


def _unfair(facts: Sequence[Noted]) -> Iterator[str]:
    """An error, or a task that is lost, needs a kill that explains it. Calls that look whether a server is
    there (`p…`) may find that it is not."""
    sent = {fact.mark: place for place, fact in enumerate(facts) if fact.what == "sent"}
    ended = {fact.mark: place for place, fact in enumerate(facts) if fact.what == "ended"}
    for place, fact in enumerate(facts):
        if fact.what == "error" and not fact.mark.startswith("p"):
            mark = fact.mark
        elif fact.what == "told" and RESULT.search(fact.note) is None and CALL.search(fact.note):
            mark = CALL.search(fact.note)[1]  # type: ignore[index]
        else:
            continue
        until = min(place, ended.get(mark, place))
        kills = [one.mark for one in facts[sent.get(mark, 0) : until] if one.what == "killed"]
        if not set(kills) & set(LOSSES):
            yield f"{mark} has no result, and neither daemon nor server was killed: {fact.note[:300]}"
