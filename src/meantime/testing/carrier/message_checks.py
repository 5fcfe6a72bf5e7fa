"""Messages: to the worker that is named and no other, and to the owner with the sender's name."""

from __future__ import annotations

from meantime.ports.carrier import MOST_BYTES

from .carrier_site import CarrierSite, Ends
from .refusals import assert_refused

SAMPLES = (b"", bytes(range(256)), b"\xff" * MOST_BYTES)


async def a_message_reaches_its_worker_and_no_other(site: CarrierSite) -> None:
    async with Ends(site) as ends:
        owner, one, two = await ends.owner(), await ends.worker("w1"), await ends.worker("w2")
        await owner.say_until("w1", b"for one", lambda: one.received)
        await owner.say_until("w2", b"for two", lambda: two.received)
        assert set(one.received) == {b"for one"}, f"the first was told {set(one.received)}"
        assert set(two.received) == {b"for two"}, f"the second was told {set(two.received)}"


async def a_message_reaches_the_owner_with_its_senders_name(site: CarrierSite) -> None:
    async with Ends(site) as ends:
        owner, one, two = await ends.owner(), await ends.worker("w1"), await ends.worker("w2")
        await one.say_until(b"of one", lambda: ("w1", b"of one") in owner.received)
        await two.say_until(b"of two", lambda: ("w2", b"of two") in owner.received)
        assert set(owner.received) == {("w1", b"of one"), ("w2", b"of two")}, f"{set(owner.received)}"


async def messages_arrive_as_they_were_sent(site: CarrierSite) -> None:
    async with Ends(site) as ends:
        owner, worker = await ends.owner(), await ends.worker()
        for data in SAMPLES:
            await owner.say_until("w1", data, lambda data=data: data in worker.received)
            await worker.say_until(data, lambda data=data: ("w1", data) in owner.received)
        assert set(worker.received) == set(SAMPLES), "a message to the worker changed on its way"
        assert {data for _, data in owner.received} == set(SAMPLES), "a message to the owner changed"


async def messages_out_of_bounds_are_refused(site: CarrierSite) -> None:
    async with Ends(site) as ends:
        owner, worker = await ends.owner(), await ends.worker()
        too_large = b"." * (MOST_BYTES + 1)
        assert_refused(lambda: owner.carrier.to_worker("w1", too_large), f"{MOST_BYTES:,}")
        assert_refused(lambda: worker.carrier.to_owner(too_large), f"{MOST_BYTES:,}")
        for name in ("", "w.1", "*", ">", "a" * 65):
            assert_refused(lambda name=name: owner.carrier.to_worker(name, b""), "name of a worker")
        await worker.say_until(b"still here", lambda: owner.received)


async def a_message_to_nobody_is_lost(site: CarrierSite) -> None:
    async with Ends(site) as ends:
        owner, worker = await ends.owner(), await ends.worker()
        owner.carrier.to_worker("nobody", b"hello?")
        await owner.say_until("w1", b"hello", lambda: worker.received)
        assert set(worker.received) == {b"hello"}


async def a_callback_that_fails_ends_nothing(site: CarrierSite) -> None:
    failures: list[bytes] = []

    def fail(data: bytes) -> None:
        failures.append(data)
        raise ValueError("a callback of the check fails on purpose")

    async with Ends(site) as ends:
        owner = await ends.owner()
        worker = site.worker("w1")
        await worker.open(fail, lambda state: None)
        try:
            await owner.say_until("w1", b"first", lambda: b"first" in failures)
            await owner.say_until("w1", b"second", lambda: b"second" in failures)
        finally:
            await worker.close()


CHECKS = (
    a_message_reaches_its_worker_and_no_other,
    a_message_reaches_the_owner_with_its_senders_name,
    messages_arrive_as_they_were_sent,
    messages_out_of_bounds_are_refused,
    a_message_to_nobody_is_lost,
    a_callback_that_fails_ends_nothing,
)
