"""Counts how far a walk through the package goes: files, changes of room, hops.

The walk is one `await thread.start(Shell("true"))` in a Meantime that has started a command before, until its
notice is acknowledged (`traced_starts.py`). `call_trace.py` says what a call and a path are. All threads of
the owner count; the process of the shim does not.

- files: distinct files of the package with a call.
- changes of room: along each path, in the order of its calls, how often a call is in another room than the
  call before it. So a function that calls a neighbour, and then a helper of its own, changes twice.
- changes of file: the same, where each file is a room of its own.
- hops: calls whose caller is in another room. So that function makes one.
- gains: how many changes of package are saved if a function is not called from outside of its package.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from call_trace import Call, room_of


def changes(calls: Iterable[Call], room: Callable[[str], str] = room_of) -> int:
    last: dict[str, str] = {}
    found = 0
    for call in calls:
        now = room(call.file)
        found += last.get(call.path, now) != now
        last[call.path] = now
    return found


def hops(calls: Iterable[Call], room: Callable[[str], str] = room_of) -> list[Call]:
    return [call for call in calls if call.caller is not None and room(call.caller[0]) != room(call.file)]


def parents(calls: Sequence[Call]) -> list[int | None]:
    """The place of each call's caller among the calls. None for a call that begins its path, and for one
    whose caller was entered before."""
    running: dict[str, list[int]] = {}
    found: list[int | None] = []
    for place, call in enumerate(calls):
        above = running.setdefault(call.path, [])
        while above and (calls[above[-1]].file, calls[above[-1]].name) != call.caller:
            above.pop()
        found.append(above[-1] if above else None)
        above.append(place)
    return found


def without(calls: Sequence[Call], is_avoided: Callable[[Call], bool]) -> list[Call]:
    """The calls that are left, if some of them are not made; what they call is not called either."""
    gone: set[int] = set()
    for place, (call, parent) in enumerate(zip(calls, parents(calls), strict=True)):
        if is_avoided(call) or parent in gone:
            gone.add(place)
    return [call for place, call in enumerate(calls) if place not in gone]


def gains(calls: Sequence[Call]) -> dict[str, int]:
    """How many changes of package each function saves if no other package calls it: best first. The gains of
    two functions do not add up where their calls are neighbours."""
    whole = changes(calls)
    crossing = set(hops(calls))
    found: dict[str, int] = {}
    for file, name in {(call.file, call.name) for call in crossing}:
        left = without(calls, lambda call, one=(file, name): call in crossing and call[2:4] == one)
        if (saved := whole - changes(left)) > 0:
            found[f"{file}:{name}"] = saved
    return dict(sorted(found.items(), key=lambda each: (-each[1], each[0])))


def walk_figures(calls: Sequence[Call]) -> dict[str, Any]:
    calls = [call for call in calls if call.how != "sends"]
    crossing = hops(calls)
    return {
        "calls": len(calls),
        "files": len({call.file for call in calls}),
        "changes of file": changes(calls, lambda file: file),
        "changes of room": changes(calls),
        "hops": len(crossing),
        "different hops": len({(call.caller, call.file, call.name) for call in crossing}),
        "paths": len({call.path for call in calls}),
        "by file": dict(Counter(call.file for call in calls).most_common()),
        "by hop": dict(Counter(_hop(call) for call in crossing).most_common()),
        "gains": gains(calls),
    }


def _hop(call: Call) -> str:
    assert call.caller is not None
    return f"{call.caller[0]}:{call.caller[1]} -> {call.file}:{call.name}"
