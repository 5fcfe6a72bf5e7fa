"""Messages on their way: unknown fields are ignored, unknown kinds and protocols are refused."""

from __future__ import annotations

import msgspec
import pytest

from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Chunk, Run, Task, Work
from meantime.workers import messages as say

TASK = Task(id="t_1", thread="a", work=Work("shell", "ls", {"cwd": "/"}), status=Status.RUNNING, run=Run())


def test_a_message_comes_out_as_it_went_in():
    granted = say.GrantedMessage(nonce="n", task=TASK, env={"A": "b", "C": None}, stdin=b"\x00\xff")
    assert say.from_owner(say.encode(granted)) == granted
    answer = say.AnswerMessage(ask="a", chunk=Chunk(b"\xff", 0, 1, 1))
    assert say.from_worker(say.encode(answer)) == answer


def test_every_message_says_its_protocol():
    assert msgspec.json.decode(say.encode(say.HeardMessage(nonce="n"))) == {
        "kind": "heard",
        "protocol": 1,
        "nonce": "n",
    }


def test_an_unknown_field_is_ignored():
    assert say.from_owner(b'{"kind":"heard","protocol":1,"nonce":"n","new":[1]}') == say.HeardMessage(
        nonce="n"
    )


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"kind":"heard","protocol":2,"nonce":"n"}', "protocol 2"),
        (b'{"kind":"heard","nonce":"n"}', "protocol 0"),
        (b'{"kind":"run_this","protocol":1}', "run_this"),
        (b'{"kind":"claim","protocol":1}', "claim"),  # of a worker, and so not of an owner
        (b"\x80\x04.", "cannot be read"),
        (b"", "cannot be read"),
        (b"[" * 100_000, "cannot be read"),
    ],
)
def test_what_is_not_a_message_of_the_owner_is_refused(data: bytes, words: str):
    with pytest.raises(say.UnreadableMessage, match=words):
        say.from_owner(data)
