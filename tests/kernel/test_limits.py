"""How much may run at once, and who is next."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec.structs import replace

from meantime.kernel.constraints import check_fields
from meantime.kernel.errors import InvalidInput, LimitReached
from meantime.kernel.limits import NO_LIMIT, Lane, Limits, Slots
from meantime.kernel.pool_slots import Need

A, B = Lane("thread-a", "call"), Lane("thread-b", "call")
AGENT = Lane("thread-a", "agent")


def fill(slots: Slots, lane: Lane, count: int) -> Slots:
    for _ in range(count):
        slots.take(lane)
    return slots


def queue(slots: Slots, lane: Lane, *tasks: str) -> Slots:
    for task in tasks:
        slots.wait(lane, task)
    return slots


# Limits


@pytest.mark.behaviour("M1")
def test_the_defaults_are_ten_a_thread_five_agents_fifty_in_all():
    limits = Limits()
    assert (limits.for_kind("call"), limits.for_kind("agent"), limits.total) == (10, 5, 50)


@pytest.mark.behaviour("M1")
def test_each_thread_has_its_own_limit():
    slots = fill(Slots(Limits(per_thread=2)), A, 2)
    assert not slots.fits(A)
    assert slots.fits(B)


@pytest.mark.behaviour("M1")
def test_a_kind_may_have_a_limit_of_its_own():
    slots = fill(Slots(Limits(per_thread=5, per_kind={"agent": 1})), AGENT, 1)
    assert not slots.fits(AGENT)
    assert slots.fits(A)


@pytest.mark.behaviour("M1")
def test_the_total_counts_every_thread_and_kind():
    slots = Slots(Limits(total=3))
    for lane in (A, B, AGENT):
        assert slots.fits(lane)
        slots.take(lane)
    assert not slots.fits(Lane("thread-c", "shell"))


@pytest.mark.behaviour("M1")
def test_minus_one_is_no_limit():
    slots = fill(Slots(Limits(per_thread=NO_LIMIT, total=NO_LIMIT, per_kind={})), A, 1_000)
    assert slots.fits(A)


@pytest.mark.behaviour("M1")
def test_limits_change_at_run_time():
    slots = queue(fill(Slots(Limits(per_thread=1)), A, 1), A, "t1", "t2")
    assert list(slots.admit()) == []
    slots.limits = replace(slots.limits, per_thread=3)
    assert list(slots.admit()) == ["t1", "t2"]


@pytest.mark.behaviour("M1")
def test_a_lowered_limit_stops_nobody_and_starts_nobody():
    slots = queue(fill(Slots(Limits(per_thread=3)), A, 3), A, "t1")
    slots.limits = replace(slots.limits, per_thread=1)
    slots.give_back(A)
    assert list(slots.admit()) == []
    slots.give_back(A)
    slots.give_back(A)
    assert list(slots.admit()) == ["t1"]


@pytest.mark.behaviour("M1")
@pytest.mark.parametrize("value", [0, -2, True, 1.5, "3", None])
@pytest.mark.parametrize("name", ["per_thread", "total"])
def test_an_impossible_limit_is_refused(name, value):
    with pytest.raises(InvalidInput, match=f"{name}=.* above 0, or -1"):
        check_fields(Limits(**{name: value}))


@pytest.mark.behaviour("M1")
def test_an_impossible_limit_of_a_kind_names_the_kind():
    with pytest.raises(InvalidInput, match="shell"):
        check_fields(Limits(per_kind={"shell": 0}))


@pytest.mark.behaviour("M4")
@pytest.mark.parametrize("value", [-7, True, "many"])
def test_an_impossible_queue_is_refused(value):
    with pytest.raises(InvalidInput):
        check_fields(Limits(queued=value))


@pytest.mark.behaviour("M4")
def test_at_the_limit_is_queue_or_reject_and_nothing_else():
    assert check_fields(Limits(on_limit="reject")).on_limit == "reject"
    with pytest.raises(InvalidInput, match="'queue' or 'reject'"):
        check_fields(Limits(on_limit="drop"))


# Refusals


@pytest.mark.behaviour("M3")
def test_a_refusal_says_how_many_run_and_what_to_do():
    refusal = fill(Slots(Limits(per_kind={"agent": 2})), AGENT, 2).refusal(AGENT)
    assert isinstance(refusal, LimitReached)
    assert (refusal.running, refusal.limit, refusal.code) == (2, 2, "limit_reached")
    assert "2 of at most 2 agent tasks are running in this thread" in str(refusal)
    assert "cancel one" in refusal.hint


@pytest.mark.behaviour("M3")
def test_a_refusal_by_the_total_says_so():
    refusal = fill(Slots(Limits(total=1)), B, 1).refusal(A)
    assert (refusal.running, refusal.limit) == (1, 1)
    assert "in all" in str(refusal)


@pytest.mark.behaviour("M3")
def test_a_refusal_by_the_total_does_not_call_the_others_its_own_kind():
    assert "call tasks" not in str(fill(Slots(Limits(total=1)), AGENT, 1).refusal(A))


@pytest.mark.behaviour("M3")
def test_a_refusal_never_shows_minus_one():
    slots = queue(Slots(Limits(total=NO_LIMIT)), A, "t1")
    assert not slots.is_open(A)
    assert "-1" not in str(slots.refusal(A))


# Slots


@pytest.mark.behaviour("M2")
def test_a_slot_that_is_given_back_is_free_again():
    slots = fill(Slots(Limits(per_thread=1)), A, 1)
    slots.give_back(A)
    assert slots.fits(A)
    assert (slots.running, slots.running_in(A)) == (0, 0)


@pytest.mark.behaviour("M2")
def test_admit_takes_the_slot_it_names():
    slots = queue(Slots(Limits()), A, "t1")
    assert list(slots.admit()) == ["t1"]
    assert (slots.running, slots.running_in(A), slots.waiting) == (1, 1, 0)


@pytest.mark.behaviour("M2")
def test_an_admit_that_is_left_early_loses_nobody():
    slots = queue(Slots(Limits()), A, "t1", "t2")
    assert next(slots.admit()) == "t1"
    assert (slots.running, slots.waiting) == (1, 1)
    assert list(slots.admit()) == ["t2"]


@pytest.mark.behaviour("M2")
def test_a_slot_that_was_never_taken_does_not_break_the_count():
    slots = Slots(Limits())
    with pytest.raises(KeyError):
        slots.give_back(A)
    assert slots.running == 0


@pytest.mark.behaviour("M4")
def test_a_newcomer_does_not_pass_who_waits_in_its_lane():
    slots = queue(Slots(Limits()), A, "t1")
    assert slots.fits(A)
    assert not slots.is_open(A)
    assert slots.is_open(B)


@pytest.mark.behaviour("L4")
def test_a_queued_task_knows_its_position():
    slots = queue(Slots(Limits()), A, "t1", "t2")
    assert (slots.position(A, "t1"), slots.position(A, "t2")) == (1, 2)
    assert slots.position(A, "t3") is None
    assert slots.position(B, "t1") is None


@pytest.mark.behaviour("L4")
def test_a_queued_task_that_is_cancelled_leaves_its_place():
    slots = queue(Slots(Limits()), A, "t1", "t2")
    assert slots.forget(A, "t1")
    assert not slots.forget(A, "t1")
    assert (slots.position(A, "t2"), slots.waiting) == (1, 1)


@pytest.mark.behaviour("M4")
def test_the_last_to_leave_the_queue_opens_the_lane():
    slots = queue(Slots(Limits()), A, "t1")
    slots.forget(A, "t1")
    assert slots.is_open(A)


@pytest.mark.behaviour("M4")
def test_lanes_take_turns():
    slots = queue(queue(Slots(Limits()), A, "a1", "a2", "a3"), B, "b1")
    assert list(slots.admit()) == ["a1", "b1", "a2", "a3"]


@pytest.mark.behaviour("M4")
def test_a_full_lane_does_not_hold_up_the_others():
    slots = queue(queue(fill(Slots(Limits(per_thread=1)), A, 1), A, "a1"), B, "b1")
    assert list(slots.admit()) == ["b1"]


@pytest.mark.behaviour("M4")
@given(st.lists(st.integers(1, 6), min_size=1, max_size=6))
def test_with_one_slot_every_waiting_lane_comes_once_a_round(lengths):
    slots = Slots(Limits(per_thread=NO_LIMIT, total=1))
    for number, length in enumerate(lengths):
        queue(slots, Lane(f"thread-{number}", "call"), *(f"{number}.{at}" for at in range(length)))
    order: list[str] = []
    while slots.waiting:
        (task,) = slots.admit()
        thread = task.partition(".")[0]
        order.append(thread)
        slots.give_back(Lane(f"thread-{thread}", "call"))
    assert len(set(order[: len(lengths)])) == len(lengths)


# Whatever comes and goes

LANES = [Lane(thread, kind) for thread in ("a", "b", "c") for kind in ("call", "agent")]
some_limit = st.sampled_from([NO_LIMIT, 1, 2, 3])
some_limits = st.builds(
    lambda thread, total, agent: Limits(per_thread=thread, total=total, per_kind={"agent": agent}),
    some_limit,
    some_limit,
    some_limit,
)


class SlotsModel(RuleBasedStateMachine):
    """Tasks come, wait, start, end and are cancelled, as the runtime does it."""

    def __init__(self) -> None:
        super().__init__()
        self.slots = Slots(Limits(per_thread=2, total=3))
        self.running: list[tuple[Lane, str]] = []
        self.queues: dict[Lane, list[str]] = {lane: [] for lane in LANES}
        self.born = 0

    def start(self, lane: Lane, task: str) -> None:
        """The model's own count, before this one: there must have been room."""
        lanes = Counter(of for of, _ in self.running)
        own, total = self.slots.limits.for_kind(lane[1]), self.slots.limits.total
        assert own == NO_LIMIT or lanes[lane] < own
        assert total == NO_LIMIT or len(self.running) < total
        self.running.append((lane, task))

    def admit(self) -> None:
        for task in self.slots.admit():
            lane = next(lane for lane, queue in self.queues.items() if task in queue)
            assert self.queues[lane].pop(0) == task, "first in, first out"
            self.start(lane, task)

    @rule(lane=st.sampled_from(LANES))
    def submit(self, lane: Lane) -> None:
        self.born += 1
        task = f"t{self.born}"
        if self.slots.is_open(lane):
            assert not self.queues[lane]
            self.slots.take(lane)
            self.start(lane, task)
        else:
            self.slots.wait(lane, task)
            self.queues[lane].append(task)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        lane, _ = self.running.pop(data.draw(st.integers(0, len(self.running) - 1)))
        self.slots.give_back(lane)
        self.admit()

    @precondition(lambda self: any(self.queues.values()))
    @rule(data=st.data())
    def cancel_queued(self, data: st.DataObject) -> None:
        lane = data.draw(st.sampled_from([lane for lane, queue in self.queues.items() if queue]))
        task = data.draw(st.sampled_from(self.queues[lane]))
        assert self.slots.forget(lane, task)
        self.queues[lane].remove(task)
        self.admit()

    @rule(limits=some_limits)
    def set_limits(self, limits: Limits) -> None:
        self.slots.limits = check_fields(limits)
        self.admit()

    @invariant()
    def counts_balance(self) -> None:
        lanes = Counter(lane for lane, _ in self.running)
        assert self.slots.running == len(self.running)
        assert self.slots.waiting == sum(map(len, self.queues.values()))
        assert {lane: self.slots.running_in(lane) for lane in LANES} == {lane: lanes[lane] for lane in LANES}

    @invariant()
    def positions_are_the_order_of_arrival(self) -> None:
        for lane, tasks in self.queues.items():
            assert [self.slots.position(lane, task) for task in tasks] == list(range(1, len(tasks) + 1))

    @invariant()
    def nobody_waits_for_a_free_slot(self) -> None:
        assert not [lane for lane, tasks in self.queues.items() if tasks and self.slots.fits(lane)]

    def teardown(self) -> None:
        """Nobody starves: as those who run end, all who wait get their turn."""
        rounds = len(self.running) + self.slots.waiting
        for _ in range(rounds):
            lane, _ = self.running.pop(0)
            self.slots.give_back(lane)
            self.admit()
        assert (self.running, self.slots.running, self.slots.waiting) == ([], 0, 0)


@pytest.mark.core("the one model of the limits")
class TestM2Slots(SlotsModel.TestCase):
    """Never more than the limits, first in first out in a lane, nobody starves, counts balance."""


class Compared(str):
    """An id that counts how often it is compared with another."""

    times = 0

    def __eq__(self, other: object) -> bool:
        Compared.times += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_a_queued_task_that_is_cancelled_is_not_looked_for_among_the_others():
    slots = Slots(Limits(per_thread=1, total=1))
    lane = Lane("a", "call")
    tasks = [Compared(f"t{number}") for number in range(500)]
    queue(slots, lane, *tasks)
    Compared.times = 0
    for task in reversed(tasks):
        assert slots.forget(lane, task)
    assert Compared.times < 2 * len(tasks)
    assert slots.waiting == 0


# The limit that a queued task waits for


def test_a_queued_task_waits_for_the_limit_of_its_kind_first():
    slots = fill(Slots(Limits(per_thread=2, total=2)), A, 2)
    assert slots.full_limit(A) == (2, 2, "call")


def test_otherwise_it_waits_for_the_limit_of_all():
    slots = fill(Slots(Limits(per_thread=10, total=2)), A, 2)
    assert slots.full_limit(B) == (2, 2, "")


def test_a_queue_without_a_full_limit_waits_for_none():
    assert Slots(Limits(per_thread=NO_LIMIT, total=NO_LIMIT)).full_limit(A) == (0, 0, "")


# -- pools of workers

GPU = Lane("thread-a", "call", Need("pool:gpu", "call", "training:fit"))


def pooled(limits: Limits, count: int) -> Slots:
    return Slots(limits, lambda need: count)


def test_a_pool_is_offered_twice_its_free_slots():
    slots = queue(pooled(Limits(per_thread=NO_LIMIT), 2), GPU, *"abcdefgh")
    assert list(slots.admit()) == list("abcd")
    slots.claim(GPU)
    assert list(slots.admit()) == []  # one slot is free, and three are offered
    slots.give_back(GPU)
    assert list(slots.admit()) == ["e"]


def test_a_pool_without_workers_is_offered_nothing():
    slots = queue(Slots(Limits()), GPU, "a")
    assert list(slots.admit()) == []
    assert not slots.fits(GPU)


def test_work_of_a_pool_does_not_count_against_the_total():
    slots = fill(pooled(Limits(total=1), 5), GPU, 3)
    assert slots.fits(B)
    assert slots.running == 0


def test_a_full_machine_does_not_hold_up_a_pool():
    slots = queue(fill(pooled(Limits(total=1), 1), B, 1), A, "here")
    assert list(queue(slots, GPU, "there").admit()) == ["there"]


def test_work_of_a_pool_counts_against_its_thread():
    slots = fill(pooled(Limits(per_thread=2), 9), GPU, 2)
    assert not slots.fits(A)
    assert "2 of at most 2 call tasks" in str(slots.refusal(GPU))


def test_an_offer_that_nobody_claimed_gives_its_place_back():
    slots = fill(pooled(Limits(), 1), GPU, 2)
    slots.give_back(GPU, claimed=False)
    assert (slots.pools[GPU.need].offered, slots.pools[GPU.need].claimed) == (1, 0)


def test_a_full_pool_says_so():
    slots = fill(pooled(Limits(), 1), GPU, 1)
    slots.claim(GPU)
    assert "1 of the 1 slots of pool:gpu are in use" in str(slots.refusal(GPU))
