"""Messages to one recipient within one step of the event loop travel together."""

from __future__ import annotations

import asyncio

import pytest
from tests.waiting import until_async

from meantime.workers.message_batch import MOST_BATCHED, MessageBatch, unbatched
from meantime.workers.message_parts import PIECE, WHOLE
from meantime.workers.messages import HeardMessage, UnreadableMessage, encode, from_owner

pytestmark = pytest.mark.anyio


async def test_messages_of_one_step_are_one_frame_for_each_recipient_in_their_order():
    sent: list[tuple[str, bytes]] = []
    batch = MessageBatch(lambda recipient, data: sent.append((recipient, data)))
    heard = [HeardMessage(nonce=str(number)) for number in range(3)]
    for message in heard:
        batch.add("w1", encode(message))
    batch.add("w2", encode(heard[0]))
    assert not sent
    await asyncio.sleep(0)
    assert [recipient for recipient, _ in sent] == ["w1", "w2"]
    assert [from_owner(each) for each in unbatched(sent[0][1].removeprefix(WHOLE))] == heard
    assert sent[1][1] == WHOLE + encode(heard[0])  # one alone is not in an array
    await asyncio.sleep(0)
    assert len(sent) == 2


async def test_a_message_that_may_wait_travels_with_the_next_one_or_alone_after_its_time():
    sent: list[bytes] = []
    batch = MessageBatch(lambda recipient, data: sent.append(data))
    batch.add("w1", b"1", wait=600.0)
    await asyncio.sleep(0)
    assert not sent
    batch.add("w1", b"2")
    await asyncio.sleep(0)
    assert sent == [WHOLE + b"[1,2]"]
    batch.add("w1", b"3", wait=0.001)
    batch.add("w1", b"4", wait=600.0)
    await until_async(lambda: len(sent) == 2, "the time of the first is over", lambda: sent)
    assert sent[1] == WHOLE + b"[3,4]"


async def test_a_batch_has_a_limit_of_messages_and_of_bytes():
    sent: list[bytes] = []
    batch = MessageBatch(lambda recipient, data: sent.append(data))
    for number in range(MOST_BATCHED):
        batch.add("w1", b"%d" % number)
    assert len(sent) == 1
    batch.add("w1", b"1")
    batch.add("w1", b"2" * PIECE)
    assert sent[1] == WHOLE + b"1"
    batch.flush()
    assert len(sent) == 3


def test_a_batch_that_cannot_be_read_is_refused():
    with pytest.raises(UnreadableMessage, match="A batch cannot be read"):
        unbatched(b'[{"kind": ')
