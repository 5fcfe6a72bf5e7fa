"""Where the machine, or the process that we live in, has not what we need."""

from __future__ import annotations

import errno
import os
from typing import Any

import pytest

from meantime import Completed, Shell, Thread

pytestmark = pytest.mark.anyio


async def test_without_a_descriptor_for_its_shim_a_command_is_left_alone(
    thread: Thread, monkeypatch: pytest.MonkeyPatch
):
    def no_descriptor(*args: Any) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "pidfd_open", no_descriptor)
    task = await (await thread.start(Shell("sleep 0.3; echo fine"))).wait(10)
    assert isinstance(task.outcome, Completed)
    assert task.outcome.result == "fine\n"
