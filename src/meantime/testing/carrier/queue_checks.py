"""Offers: each is pulled in its pool, stays until it is acknowledged, and `is_empty` tells the truth."""

from __future__ import annotations

import asyncio
import time

from meantime.ports.carrier import MOST_BYTES, MOST_PULLED, Offered

from ..suite.patience import stays, until, within
from .carrier_site import CarrierSite, Ends
from .refusals import assert_refused


async def offered_work_is_pulled(site: CarrierSite) -> None:
    async with Ends(site) as ends:
        owner, worker = await ends.owner(), await ends.worker()
        async with worker.working("red"):
            await owner.offer_until("red", "k1", b"work", lambda: worker.pulled)
        found = worker.pulled[0]
        assert (found.pool, found.key, found.data) == ("red", "k1", b"work"), f"pulled {found}"


async def every_offer_is_pulled_by_one_of_its_pool(site: CarrierSite) -> None:
    async with Ends(site) as ends:
        owner, one, two = await ends.owner(), await ends.worker("w1"), await ends.worker("w2")
        keys = {f"k{number}" for number in range(40)}

        def pulled() -> set[str]:
            return {offered.key for offered in one.pulled + two.pulled}

        async with one.working("red"), two.working("red"):
            for key in keys:
                await asyncio.sleep(0)
                owner.carrier.offer("red", key, key.encode())
            for key in keys:
                await owner.offer_until("red", key, key.encode(), lambda key=key: key in pulled())
        assert pulled() == keys, "an offer that nobody made was pulled"


async def another_pool_sees_nothing(site: CarrierSite) -> None:
    async with Ends(site) as ends:
        owner = await ends.owner("red", "blue")
        red, blue = await ends.worker("w1"), await ends.worker("w2")
        async with red.working("red"), blue.working("blue"):
            for number in range(10):
                key = f"red{number}"
                await owner.offer_until("red", key, b"", lambda: red.pulled)
            await owner.offer_until("blue", "blue", b"", lambda: blue.pulled)
            await owner.empty("red")
        assert {offered.pool for offered in red.pulled} == {"red"}, "an offer of another pool was pulled"
        assert {offered.key for offered in blue.pulled} == {"blue"}, "an offer of another pool was pulled"


async def a_queue_is_empty_once_everything_is_acknowledged(site: CarrierSite) -> None:
    async with Ends(site) as ends:
        owner, worker = await ends.owner(), await ends.worker()
        await owner.empty("red")
        async with worker.working("red", acknowledges=False):
            await owner.offer_until("red", "k1", b"", lambda: worker.pulled)

            async def is_kept() -> bool:
                return not await owner.carrier.is_empty("red")

            await stays(is_kept, "the offer is kept, as nothing was acknowledged", 3 * site.ack_wait)
        await worker.drain(owner, "red")


async def an_offer_on_its_way_is_not_overlooked(site: CarrierSite) -> None:
    """`is_empty` right after `offer`: whoever says true would have the owner offer everything twice."""
    async with Ends(site) as ends:
        owner, worker = await ends.owner(), await ends.worker()
        for number in range(20):
            await owner.empty("red")
            before = len(worker.pulled)
            owner.carrier.offer("red", f"k{number}", b"")
            if await owner.carrier.is_empty("red"):  # then it is lost, and must not come any more
                assert not await worker.pull("red", wait=0.3), "an offer came out of an empty queue"
            await worker.drain(owner, "red")
            assert len(worker.pulled) >= before


async def what_is_not_acknowledged_goes_to_another(site: CarrierSite) -> None:
    async with Ends(site) as ends:
        owner, dies = await ends.owner(), await ends.worker("w1")
        async with dies.working("red", acknowledges=False):
            await owner.offer_until("red", "k1", b"work", lambda: dies.pulled)
        await dies.carrier.close()
        lives = await ends.worker("w2")
        assert (await lives.pull_one("red")).data == b"work"
        await lives.drain(owner, "red")


async def what_is_released_comes_again(site: CarrierSite) -> None:
    async with Ends(site) as ends:
        owner, one, two = await ends.owner(), await ends.worker("w1"), await ends.worker("w2")
        async with one.working("red", acknowledges=False):
            await owner.offer_until("red", "k1", b"work", lambda: one.pulled)
        for offered in one.pulled:
            one.carrier.release(offered)
        assert (await two.pull_one("red")).key == "k1"


async def what_is_withdrawn_does_no_harm(site: CarrierSite) -> None:
    async with Ends(site) as ends:
        owner, worker = await ends.owner(), await ends.worker()
        owner.carrier.withdraw("red", "unknown")
        owner.carrier.offer("red", "k1", b"")
        owner.carrier.withdraw("red", "k1")
        await worker.drain(owner, "red")
        async with worker.working("red"):
            await owner.offer_until("red", "k2", b"", lambda: [o for o in worker.pulled if o.key == "k2"])


async def a_pull_takes_no_more_than_it_may(site: CarrierSite) -> None:
    async with Ends(site) as ends:
        owner, worker = await ends.owner(), await ends.worker()
        for number in range(12):
            owner.carrier.offer("red", f"k{number}", b"")
        for _ in range(8):
            assert len(await worker.pull("red", free=3)) <= 3, "more than were asked for"
        await worker.drain(owner, "red")


async def a_pull_waits_as_long_as_it_was_told(site: CarrierSite) -> None:
    async with Ends(site) as ends:
        owner, worker = await ends.owner(), await ends.worker()
        await worker.drain(owner, "red")
        began = time.monotonic()
        assert await within(worker.carrier.pull("red", 1, 0.5), "the end of a short pull") == []
        assert time.monotonic() - began >= 0.4, "it did not wait as long as it was told"


async def a_waiting_pull_returns_with_the_offer(site: CarrierSite) -> None:
    async with Ends(site) as ends:
        owner, worker = await ends.owner(), await ends.worker()
        pulling = await worker.begin_to_pull("red")
        await owner.offer_until("red", "k1", b"", pulling.done)
        assert await pulling


async def a_cancelled_pull_keeps_nothing(site: CarrierSite) -> None:
    async with Ends(site) as ends:
        owner, worker = await ends.owner(), await ends.worker()
        pulling = await worker.begin_to_pull("red")
        pulling.cancel()
        await asyncio.gather(pulling, return_exceptions=True)
        async with worker.working("red"):
            await owner.offer_until("red", "k1", b"", lambda: worker.pulled)


async def an_offer_arrives_as_it_was_made(site: CarrierSite) -> None:
    async with Ends(site) as ends:
        owner, worker = await ends.owner(), await ends.worker()
        offers = {"empty": b"", "bytes": bytes(range(256)), "large": b"\xff" * MOST_BYTES}
        async with worker.working("red"):
            for key, data in offers.items():
                await owner.offer_until("red", key, data, lambda key=key: key in _found(worker.pulled))
        assert _found(worker.pulled) == offers, "the data has changed on its way"


async def offers_out_of_bounds_are_refused(site: CarrierSite) -> None:
    async with Ends(site) as ends:
        owner, worker = await ends.owner(), await ends.worker()
        too_large = b"." * (MOST_BYTES + 1)
        assert_refused(lambda: owner.carrier.offer("red", "k1", too_large), f"{MOST_BYTES:,}")
        for name in ("", "a.b", "a b", "*", ">", "-a", "a" * 65, "ä", "a\n", "a'; DROP TABLE offer"):
            assert_refused(lambda name=name: owner.carrier.offer(name, "k1", b""), "name of a pool")
            assert_refused(lambda name=name: owner.carrier.offer("red", name, b""), "name of an offer")
        for free in (0, -1, MOST_PULLED + 1):
            try:
                await worker.carrier.pull("red", free, 0.1)
            except ValueError:
                continue
            raise AssertionError(f"a pull of {free} was not refused")
        await until(lambda: owner.carrier.state.up, "the refusals left it connected")


def _found(pulled: list[Offered]) -> dict[str, bytes]:
    return {offered.key: offered.data for offered in pulled}


CHECKS = (
    offered_work_is_pulled,
    every_offer_is_pulled_by_one_of_its_pool,
    another_pool_sees_nothing,
    a_queue_is_empty_once_everything_is_acknowledged,
    an_offer_on_its_way_is_not_overlooked,
    what_is_not_acknowledged_goes_to_another,
    what_is_released_comes_again,
    what_is_withdrawn_does_no_harm,
    a_pull_takes_no_more_than_it_may,
    a_pull_waits_as_long_as_it_was_told,
    a_waiting_pull_returns_with_the_offer,
    a_cancelled_pull_keeps_nothing,
    an_offer_arrives_as_it_was_made,
    offers_out_of_bounds_are_refused,
)
