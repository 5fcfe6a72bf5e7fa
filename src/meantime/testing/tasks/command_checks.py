"""Commands: what they say, what they are sent, and how they end."""

from __future__ import annotations

from meantime.kernel.errors import InvalidInput, Refused
from meantime.kernel.model import Failed
from meantime.ports.tasks import Tasks

from ..suite.patience import within
from .sample_work import Check, command, ended, refused


async def a_command_is_read_by_offset_and_by_its_tail(tasks: Tasks) -> None:
    task = await command(tasks, "printf 'one\\ntwo\\n'; printf 'bad\\377' >&2")
    await within(tasks.wait([task.id], "a"))
    out = await tasks.read(task.id, "a", "stdout", 4, 100)
    assert (out.data, out.ended) == (b"two\n", True)
    assert (await tasks.read(task.id, "a", "stderr", 0, 100)).data == b"bad\xff"
    assert (await tasks.tail(task.id, "a", "stdout", 1, 100)).data == b"two\n"


async def a_command_fails_with_its_exit_code(tasks: Tasks) -> None:
    task = await command(tasks, "exit 7")
    (task,) = await within(tasks.wait([task.id], "a"))
    assert isinstance(task.outcome, Failed), task.outcome
    assert task.outcome.exit_code == 7


async def a_command_is_sent_its_input(tasks: Tasks) -> None:
    task = await command(tasks, "cat", open_stdin=True)
    await tasks.send(task.id, "a", "é")
    await tasks.send(task.id, "a", b"\xff\n")
    await within(tasks.wait_output(task.id, "a", "stdout", 0))
    await tasks.send(task.id, "a", "", eof=True)
    await within(tasks.wait([task.id], "a"))
    assert (await tasks.read(task.id, "a", "both", 0, 100)).data == "é".encode() + b"\xff\n"


async def a_command_gets_its_environment_and_stdin(tasks: Tasks) -> None:
    task = await command(tasks, 'printf "%s" "$WORD"; cat', env={"WORD": "given"}, stdin=" and read")
    await within(tasks.wait([task.id], "a"))
    assert await tasks.result(task.id, "a") == "given and read"


async def what_has_no_log_says_so(tasks: Tasks) -> None:
    task = await ended(tasks)
    assert (await refused(Refused, tasks.read(task.id, "a", "both", 0, 10))).code == "no_log"
    assert (await refused(Refused, tasks.send(task.id, "a", "x"))).code == "ended"


async def bad_reads_are_refused(tasks: Tasks) -> None:
    task = await command(tasks, "true")
    await within(tasks.wait([task.id], "a"))
    for asking in (tasks.read(task.id, "a", "all", 0, 10), tasks.read(task.id, "a", "both", -1, 10),
                   tasks.read(task.id, "a", "both", 2**70, 10), tasks.tail(task.id, "a", "both", 0, 10),
                   tasks.wait_output(task.id, "a", "all", 0)):  # fmt: skip
        await refused(InvalidInput, asking)


CHECKS: tuple[Check, ...] = (
    a_command_is_read_by_offset_and_by_its_tail,
    a_command_fails_with_its_exit_code,
    a_command_is_sent_its_input,
    a_command_gets_its_environment_and_stdin,
    what_has_no_log_says_so,
    bad_reads_are_refused,
)
