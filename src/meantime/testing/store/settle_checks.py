"""Notices that a turn holds are told once, together with its transcript."""

from __future__ import annotations

from meantime.ports.store import Store

from .store_fixture import PARKS, Check, StoreFixture, ids, said, same


async def settling_tells_and_writes_the_transcript(store: Store) -> None:
    bench = StoreFixture(store)
    await bench.ended("t_1", "t_2", "t_3")
    await store.append("a", [said("hello"), said("early", "t_2.1")])
    await bench.lease("turn")
    entries = [said("one", "t_1.1"), said("two", "t_2.1"), said("größe 漢字"), said("one again", "t_1.1")]
    settled = await bench.settle("turn", "t_1.1", "t_2.1", entries=entries)
    same((set(settled.told), settled.gone), ({"t_1.1", "t_2.1"}, ()), "what was settled")
    same(await bench.states(), {"t_1.1": "told", "t_2.1": "told", "t_3.1": "leased"}, "the states")
    kept = await store.transcript("a")
    texts = [entry.message.text for entry in kept]
    same(texts, ["hello", "early", "one", "größe 漢字"], "the transcript, nothing doubled")
    same([entry.notice for entry in kept], [None, "t_2.1", "t_1.1", None], "the notices of the transcript")
    positions = [entry.position for entry in kept]
    same(positions, sorted(set(positions)), "positions that go up")
    same((await bench.settle("turn")).told, ("t_3.1",), "no ids settle all that it holds")
    await bench.tell()
    same(dict(await store.unread()), {}, "what is unread")
    same(ids(await bench.lease("later")), [], "what was told is not told again")


async def settling_twice_is_harmless(store: Store) -> None:
    bench = StoreFixture(store)
    await bench.ended("t_1")
    await bench.lease("turn")
    for _ in range(2):
        settled = await bench.settle("turn", "t_1.1", entries=[said("one", "t_1.1")])
        same((settled.told, settled.gone), (("t_1.1",), ()), "told by this same turn")
    same(len(await store.transcript("a")), 1, "entries")
    same((await bench.settle("other", "t_1.1")).gone, ("t_1.1",), "told by another turn")


async def what_a_turn_told_stays_its_own(store: Store) -> None:
    """However the turn continued: an ack that is sent again must be answered as it was."""
    bench = StoreFixture(store)
    first, *_ = await bench.ended("t_1", "t_2", "t_3")
    await bench.lease("turn")
    await bench.settle("turn", "t_2.1", "t_1.1")
    asked = ["t_1.1", "t_2.1", "t_3.1", "t_1.1", "t_nobody.1", "t_1.9999999999", "t_1.x", "t_1", ""]
    for moment in ("while it holds more", "after it gave that back", "for a later owner", "after a resume"):
        same(list(await store.told_by("turn", asked, None)), ["t_1.1", "t_2.1"], moment)
        same(list(await store.told_by("turn", asked, "a")), ["t_1.1", "t_2.1"], f"{moment}, of its thread")
        match moment:
            case "while it holds more":
                await bench.fail("turn")
            case "after it gave that back":
                await store.recover(PARKS)
            case _:
                first = await bench.resume(first) if first.ended else first
    same(list(await store.told_by("turn", asked, "b")), [], "of another thread")
    same(list(await store.told_by("other", asked, None)), [], "by another turn")
    same((await bench.settle("turn", "t_2.1", "t_1.1")).told, ("t_2.1", "t_1.1"), "in the order asked for")
    await bench.tell()
    same(list(await store.told_by("turn", ["t_3.1"], None)), [], "what somebody else told")


async def what_a_turn_lost_is_gone(store: Store) -> None:
    bench = StoreFixture(store)
    await bench.ended("t_1", "t_2")
    await bench.lease("one")
    await bench.give_back("one")
    same((await bench.settle("one", "t_1.1")).gone, ("t_1.1",), "back in the inbox")
    same((await bench.states())["t_1.1"], "unread", "it was not told")
    await bench.lease("two", limit=1)
    settled = await bench.settle("one", "t_1.1", "t_2.1", "t_nobody.1")
    same((settled.told, set(settled.gone)), ((), {"t_1.1", "t_2.1", "t_nobody.1"}), "leased by somebody else")
    same(await bench.states(), {"t_1.1": "leased", "t_2.1": "unread"}, "the states")
    same((await bench.settle("one")).told, (), "a turn that holds nothing settles nothing")
    same(list(await bench.give_back("one")), [], "and gives nothing back")
    same((await bench.settle("two", "t_1.1")).told, ("t_1.1",), "the other turn's lease stands")
    await bench.lease("elsewhere", "b")
    same((await bench.settle("two", "t_2.1", thread="b")).gone, ("t_2.1",), "not in that thread")


async def naming_one_twice_settles_only_that_one(store: Store) -> None:
    bench = StoreFixture(store)
    await bench.ended("t_1", "t_2")
    await bench.lease("turn")
    same((await bench.settle("turn", "t_1.1", "t_1.1")).told, ("t_1.1",), "what was settled")
    same(await bench.states(), {"t_1.1": "told", "t_2.1": "leased"}, "the states")


CHECKS: tuple[Check, ...] = (
    settling_tells_and_writes_the_transcript,
    settling_twice_is_harmless,
    what_a_turn_told_stays_its_own,
    naming_one_twice_settles_only_that_one,
    what_a_turn_lost_is_gone,
)
