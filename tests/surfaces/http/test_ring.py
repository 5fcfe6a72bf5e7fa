"""The ring of the event streams: what several readers want is made once, and is what each would get."""

from __future__ import annotations

from meantime.surfaces.http.event_ring import Delta, Ring
from meantime.testing import FakeClock


def filled(count: int, size: int = 10) -> Ring:
    ring = Ring(size, FakeClock())
    for number in range(count):
        ring.publish(Delta(number, "t", "a", "", b"%d;" % number))
    return ring


def test_joined_is_what_comes_after_a_cursor():
    ring = filled(7)
    assert ring.joined(4) == b"4;5;6;"
    assert ring.joined(4) is ring.joined(4)
    assert ring.joined(7) == b""


def test_what_comes_later_is_joined_anew():
    ring = filled(3)
    assert ring.joined(1) == b"1;2;"
    ring.publish(Delta(3, "t", "a", "", b"3;"))
    assert ring.joined(1) == b"1;2;3;"
    assert ring.joined(3) == b"3;"
