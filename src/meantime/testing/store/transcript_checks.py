"""Transcripts, events and spilled payloads are kept as they were written."""

from __future__ import annotations

import asyncio
import os

from msgspec.structs import replace

from meantime.kernel.change import amend, submit
from meantime.kernel.model import Progress
from meantime.ports.store import Store

from .store_fixture import MANY, Check, StoreFixture, said, same


async def transcripts_are_kept_by_thread(store: Store) -> None:
    await store.append("a", [said("one", "t_1.1"), said("two"), said("two")])
    await store.append("b", [said("other", "t_1.1")])
    await store.append("a", [])
    await store.append("a", [said("again", "t_1.1"), said("three")])
    texts = [entry.message.text for entry in await store.transcript("a")]
    same(texts, ["one", "two", "two", "three"], "the transcript")
    same([e.message for e in await store.transcript("b")], [said("other").message], "of the other thread")
    same(list(await store.transcript("nobody")), [], "of nobody")
    same(await store.has_entry("a", "t_1.1"), True, "an entry that is there")
    same(await store.has_entry("a", "t_2.1"), False, "an entry that is not")
    same(await store.has_entry("nobody", "t_1.1"), False, "an entry of another thread")


async def events_are_in_commit_order(store: Store) -> None:
    bench = StoreFixture(store)
    same(list(await bench.journal()), [], "an empty journal")
    task = bench.task("t_a")
    seqs = [(await bench.write(submit(task))).seq]
    silent = amend(task, bench.tick(), progress=Progress(50.0))
    same((await bench.write(silent)).seq, 0, "a change without an event")
    loud = amend(silent.task, bench.tick(), event="cleared", hidden=True)
    seqs.append((await bench.write(loud)).seq)
    last = bench.ending(loud.task)
    seqs.append((await bench.write(last)).seq)
    found = await bench.journal()
    same([event.seq for event in found], seqs, "the sequence numbers the commits gave")
    same(seqs, sorted(set(seqs)), "sequence numbers that go up")
    assert seqs[0] > 0, "a sequence starts above 0, so that `after=0` is the beginning"
    same([event.kind for event in found], ["submitted", "cleared", "ended"], "the kinds")
    assert last.event is not None, "an ending has an event"
    same(replace(found[-1], seq=0), last.event, "the event as it was written")
    same(await store.events(seqs[0], 1), found[1:2], "after a number, up to the limit")
    same(list(await store.events(seqs[-1], MANY)), [], "after the last")


async def spilled_payloads_come_back(store: Store) -> None:
    payloads = ["größe 漢字 😀\r\n\x00".encode(), b"", bytes(range(256)) * 4_000]
    paths = await asyncio.gather(*(store.spill(payload) for payload in payloads))
    same(len(set(paths)), len(payloads), "a file for each")
    for path, payload in zip(paths, payloads, strict=True):
        assert await store.unspill(path) == payload, f"{path} came back changed"
        same(_open_to_others(path), 0, "the rights of others on the file")


def _open_to_others(path: str) -> int:
    return os.stat(path).st_mode & 0o077


CHECKS: tuple[Check, ...] = (
    transcripts_are_kept_by_thread,
    events_are_in_commit_order,
    spilled_payloads_come_back,
)
