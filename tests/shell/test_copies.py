"""P4, P8, P11: a copy harms nothing: what runs is the original's. A ledger that was moved is not a copy."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.waiting import LIMIT, until_async

from meantime import Call, Completed, Failed, Lost, Meantime, Shell
from meantime.runners.shell import provenance
from meantime.runners.shell.output_ring import State
from meantime.runners.shell.shim import cells
from meantime.stores.sqlite.store import SqliteStore

from .owners import QUICK, Owner, let_go, released, state_of, told, wait_for
from .saying import lives

pytestmark = [pytest.mark.anyio, pytest.mark.processes]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """In a folder of its own, to be copied whole."""
    return tmp_path / "home" / "work.db"


@pytest.fixture(autouse=True)
def strays(tmp_path: Path) -> Iterator[None]:
    """A test that fails must not leave the commands running that it is about."""
    yield
    mark = os.fsencode(f"{cells.MARK}={tmp_path}/")
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if mark in Path(f"/proc/{entry}/environ").read_bytes():
                os.kill(int(entry), signal.SIGKILL)


def copy(path: Path, to: str = "copy", *how: str) -> Path:
    """The ledger in a copy of its folder."""
    folder = path.parent.with_name(to)
    subprocess.run(["cp", *(how or ("-a",)), str(path.parent), str(folder)], check=True)
    return folder / path.name


def part(ledger: Path) -> None:
    """Of a copy that is made of hard links: the ledger changes, and is copied after all."""
    for own in (ledger, Path(f"{ledger}.lock")):
        shutil.copy(own, f"{own}.own")
        os.replace(f"{own}.own", own)


def mount(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


async def running(owner: Owner, tmp_path: Path, then: str = "exit 3") -> str:
    id = owner.start(released(tmp_path, then))
    await wait_for(tmp_path / "started", "\n")
    return id


def command(tmp_path: Path) -> int:
    return int((tmp_path / "started").read_text().split()[0])


async def lost_in(ledger: Path, id: str) -> Lost:
    """Opens a copy, in which the task has ended, and is told once."""
    async with Meantime.open(ledger, settings=QUICK) as mt:
        thread = mt.thread("conv-1")
        [task] = await thread.wait(id, timeout=LIMIT)
        assert isinstance(task.outcome, Lost), task.outcome
        assert await told(thread) == [(id, "lost")]
        assert await told(thread) == []
        return task.outcome


async def goes_on(path: Path, tmp_path: Path, id: str) -> None:
    """The original's next owner hears how it really ended."""
    assert lives(command(tmp_path))
    async with Meantime.open(path, settings=QUICK) as mt:
        thread = mt.thread("conv-1")
        assert (await thread.get(id)).status == "running"
        await asyncio.to_thread(let_go, tmp_path)
        [task] = await thread.wait(id, timeout=LIMIT)
        assert isinstance(task.outcome, Failed), task.outcome
        assert (task.outcome.exit_code, task.outcome.partial) == (3, "before\nafter\n")
        assert await told(thread) == [(id, "failed")]


def forget_the_origin(state: Path) -> None:
    """As an older version made it."""
    with open(state, "r+b") as file:
        file.seek(cells.DEVICE * 8)
        file.write(bytes(4 * 8))
        file.seek(cells.PATH)
        file.write(bytes(cells.PATH_SIZE))


def forget_the_ledger(path: Path) -> None:
    """The same for the lock: it does not say which file it belongs to."""
    Path(f"{path}.lock").write_text('{"clean": false, "made": true}')


# -- copies


@pytest.mark.behaviour("P11")
async def test_opening_a_copy_leaves_the_originals_commands_alone(owner: Owner, path: Path, tmp_path: Path):
    id = await running(owner, tmp_path)
    lost = await lost_in(copy(path), id)
    assert "copy" in lost.reason

    owner.kill()
    await goes_on(path, tmp_path, id)


@pytest.mark.behaviour("P11")
async def test_opening_a_copy_harms_nothing_when_the_original_has_no_owner(
    owner: Owner, path: Path, tmp_path: Path
):
    id = await running(owner, tmp_path)
    owner.kill()
    assert "copy" in (await lost_in(copy(path), id)).reason
    await goes_on(path, tmp_path, id)


@pytest.mark.behaviour("P11")
async def test_a_copy_of_the_commands_alone_is_known_for_one_too(owner: Owner, path: Path, tmp_path: Path):
    """Where the ledger does not say whose it is, every state file does."""
    id = await running(owner, tmp_path)
    owner.kill()
    ledger = copy(path)
    forget_the_ledger(ledger)
    lost = await lost_in(ledger, id)
    assert f"{path}.commands" in lost.reason
    assert lost.partial == "before\n"
    await goes_on(path, tmp_path, id)


@pytest.mark.behaviour("P11")
async def test_a_copy_of_the_ledger_file_alone_harms_nothing(owner: Owner, path: Path, tmp_path: Path):
    id = await running(owner, tmp_path)
    owner.close()
    ledger = tmp_path / "other.db"
    shutil.copy(path, ledger)
    assert "copy" in (await lost_in(ledger, id)).reason
    await goes_on(path, tmp_path, id)


@pytest.mark.behaviour("P11")
async def test_a_copy_that_was_moved_to_the_originals_place_harms_nothing(
    owner: Owner, path: Path, tmp_path: Path
):
    id = await running(owner, tmp_path)
    owner.kill()
    copied = copy(path)
    original = path.parent.rename(tmp_path / "original")
    copied.parent.rename(path.parent)
    await lost_in(path, id)

    await goes_on(original / path.name, tmp_path, id)


@pytest.mark.behaviour("P11")
async def test_a_copy_that_replaced_an_original_harms_nothing(owner: Owner, path: Path, tmp_path: Path):
    """Its inodes may be used again, but not that of a file which a living shim holds."""
    id = await running(owner, tmp_path)
    owner.kill()
    copied = copy(path)
    shutil.rmtree(path.parent)
    copied.parent.rename(path.parent)
    await lost_in(path, id)
    assert lives(command(tmp_path))
    os.killpg(command(tmp_path), signal.SIGKILL)


@pytest.mark.behaviour("P11")
async def test_a_copy_made_of_hard_links_is_a_copy(owner: Owner, path: Path, tmp_path: Path):
    """Snapshots of many backup programs are made so: the state files are the very same."""
    id = await running(owner, tmp_path)
    owner.close()
    ledger = copy(path, "snapshot", "-al")
    part(ledger)
    await lost_in(ledger, id)
    await goes_on(path, tmp_path, id)


@pytest.mark.behaviour("P11")
async def test_a_ledger_of_hard_links_is_known_by_its_states_alone(owner: Owner, path: Path, tmp_path: Path):
    id = await running(owner, tmp_path)
    owner.close()
    ledger = copy(path, "snapshot", "-al")
    part(ledger)
    forget_the_ledger(ledger)
    await lost_in(ledger, id)
    async with Meantime.open(ledger) as mt:  # what it does not know any more is swept away, not killed
        assert await mt.purge(id) == 1
    async with Meantime.open(ledger):
        pass
    await goes_on(path, tmp_path, id)


@pytest.mark.behaviour("P11")
async def test_states_of_an_older_version_are_safe_by_their_living_shims(
    owner: Owner, path: Path, tmp_path: Path
):
    id = await running(owner, tmp_path)
    owner.kill()
    forget_the_origin(state_of(path))
    forget_the_ledger(path)
    assert "copy" in (await lost_in(copy(path), id)).reason
    await goes_on(path, tmp_path, id)


@pytest.mark.behaviour("P8")
async def test_what_a_killed_shim_of_an_older_version_left_is_found_by_its_mark(
    owner: Owner, path: Path, tmp_path: Path
):
    id = await running(owner, tmp_path)
    owner.kill()
    forget_the_origin(state_of(path))
    os.kill(State(state_of(path).read_bytes())[cells.SHIM_PID], signal.SIGKILL)
    async with Meantime.open(path, settings=QUICK) as mt:
        [task] = await mt.thread("conv-1").wait(id, timeout=LIMIT)
        assert isinstance(task.outcome, Lost)
        assert "were killed" in task.outcome.reason
    assert not lives(command(tmp_path))


@pytest.mark.behaviour("P11")
async def test_a_copy_does_not_end_what_a_killed_shim_has_left_to_the_original(
    owner: Owner, path: Path, tmp_path: Path
):
    id = await running(owner, tmp_path)
    owner.kill()
    os.kill(State(state_of(path).read_bytes())[cells.SHIM_PID], signal.SIGKILL)
    ledger = copy(path)
    forget_the_ledger(ledger)
    await lost_in(ledger, id)
    assert lives(command(tmp_path))

    async with Meantime.open(path, settings=QUICK) as mt:
        [task] = await mt.thread("conv-1").wait(id, timeout=LIMIT)
        assert isinstance(task.outcome, Lost)
        assert "were killed" in task.outcome.reason
    assert not lives(command(tmp_path))


@pytest.mark.behaviour("P8")
async def test_cancelling_in_a_copy_does_not_end_what_the_original_left_running(
    owner: Owner, path: Path, tmp_path: Path
):
    id = owner.start(f"sleep 600 & echo $! > {tmp_path}/server")
    await wait_for(tmp_path / "server", "\n")
    server = int((tmp_path / "server").read_text())
    async with Meantime.open(copy(path), settings=QUICK) as mt:
        await mt.cancel(id)
    owner.close()
    async with Meantime.open(path, settings=QUICK) as mt:
        [task] = await mt.thread("conv-1").wait(id, timeout=LIMIT)
        assert task.status == "completed"
    ledger = copy(path, "later")
    async with Meantime.open(ledger, settings=QUICK) as mt:
        await mt.cancel(id)
    assert lives(server)
    async with Meantime.open(path, settings=QUICK) as mt:
        await mt.cancel(id)
    assert not lives(server)


@pytest.mark.behaviour("P3")
async def test_what_is_queued_is_started_by_the_original_alone(owner: Owner, path: Path, tmp_path: Path):
    for _ in range(4):
        owner.start(released(tmp_path))
    queued = owner.start(f"echo original >> {tmp_path}/queued")
    again = owner.start(f"echo again >> {tmp_path}/again", options={"retry": "idempotent"})
    ledger = copy(path)
    async with Meantime.open(ledger, settings=QUICK) as mt:
        [task] = await mt.thread("conv-1").wait(queued, timeout=LIMIT)
        assert isinstance(task.outcome, Lost)
        assert "may have started the task" in task.outcome.reason
        [task] = await mt.thread("conv-1").wait(again, timeout=LIMIT)
        assert isinstance(task.outcome, Completed)
    assert not (tmp_path / "queued").exists()
    assert (tmp_path / "again").read_text() == "again\n"
    owner.ask(cancel=owner.start("true"))
    owner.kill()
    async with Meantime.open(path, settings=QUICK) as mt:
        await mt.set_limits(per_thread=10)
        [task] = await mt.thread("conv-1").wait(queued, timeout=LIMIT)
        assert task.status == "completed"
        await mt.thread("conv-1").cancel_all()
        await mt.thread("conv-1").wait(timeout=LIMIT)
    assert (tmp_path / "queued").read_text() == "original\n"


@pytest.mark.behaviour("P11")
async def test_a_copy_that_crashes_while_it_is_opened_is_still_a_copy(
    owner: Owner, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for _ in range(4):
        owner.start(released(tmp_path))
    queued = owner.start(f"touch {tmp_path}/ran")
    owner.kill()
    ledger = copy(path)

    async def killed(self: SqliteStore) -> None:
        raise OSError("killed")

    with monkeypatch.context() as early:
        early.setattr(SqliteStore, "active", killed)
        with pytest.raises(OSError, match="killed"):
            await Meantime.open(ledger, settings=QUICK)
    async with Meantime.open(ledger, settings=QUICK) as mt:
        [task] = await mt.thread("conv-1").wait(queued, timeout=LIMIT)
        assert isinstance(task.outcome, Lost)
    assert not (tmp_path / "ran").exists()
    async with Meantime.open(path, settings=QUICK) as mt:
        await mt.thread("conv-1").cancel_all()
        await mt.thread("conv-1").wait(timeout=LIMIT)


async def test_a_copy_is_a_ledger_of_its_own_from_then_on(owner: Owner, path: Path, tmp_path: Path):
    id = await running(owner, tmp_path)
    ledger = copy(path)
    async with Meantime.open(ledger, settings=QUICK) as mt:
        handle = await mt.thread("conv-1").start(Shell(f"echo up > {tmp_path}/up; sleep 600"))
        await wait_for(tmp_path / "up", "up")
    async with Meantime.open(ledger, settings=QUICK) as mt:
        assert (await mt.get(handle.id)).status == "running"
        assert (await mt.cancel(handle.id, wait=True)).task.status == "cancelled"
    owner.kill()
    await goes_on(path, tmp_path, id)


async def test_a_copy_reads_its_own_payloads(path: Path):
    async with Meantime.open(path) as mt:
        call = await mt.thread("conv-1").start(Call(lambda: "x" * 60_000))
        shell = await mt.thread("conv-1").start(Shell("head -c 60000 /dev/zero | tr '\\0' y"))
        await mt.thread("conv-1").wait(timeout=LIMIT)
    ledger = copy(path)
    shutil.rmtree(path.parent)
    async with Meantime.open(ledger) as mt:
        thread = mt.thread("conv-1")
        for id, letter in ((call.id, "x"), (shell.id, "y")):
            assert await thread.result(id) == letter * 60_000
            outcome = (await thread.get(id)).outcome
            assert outcome is not None
            assert outcome.spill is not None
            assert Path(outcome.spill.path).read_text() == letter * 60_000
        async with thread.turn() as turn:
            paths = [notice.outcome.spill.path for notice in turn.notices if notice.outcome.spill]
        assert [Path(one).is_relative_to(ledger.parent) for one in paths] == [True, True]
        assert await mt.purge(call.id, shell.id) == 2
    assert not list(Path(f"{ledger}.files").iterdir())


# -- what is no copy


@pytest.mark.behaviour("P4")
async def test_a_ledger_that_was_moved_finds_its_commands_again(owner: Owner, path: Path, tmp_path: Path):
    id = await running(owner, tmp_path)
    owner.kill()
    moved = path.parent.rename(tmp_path / "moved") / path.name
    await goes_on(moved, tmp_path, id)


@pytest.mark.behaviour("P4")
async def test_a_command_whose_folder_was_moved_can_still_say_something_new(
    owner: Owner, path: Path, tmp_path: Path
):
    """Its files are made when they are first needed: by then the folder is elsewhere."""
    os.mkfifo(tmp_path / "gate")
    id = owner.start(f"echo $$ > {tmp_path}/started; cat {tmp_path}/gate; echo late >&2; exit 3")
    await wait_for(tmp_path / "started", "\n")
    owner.kill()
    moved = path.parent.rename(tmp_path / "moved") / path.name
    os.mkdir(path.parent)
    os.mkdir(f"{path}.commands")
    async with Meantime.open(moved, settings=QUICK) as mt:
        await asyncio.to_thread(let_go, tmp_path)
        [task] = await mt.thread("conv-1").wait(id, timeout=LIMIT)
        assert isinstance(task.outcome, Failed)
        assert (task.outcome.exit_code, task.outcome.partial) == (3, "late\n")
    assert not os.listdir(f"{path}.commands")


@pytest.mark.behaviour("P8")
async def test_what_a_killed_shim_left_is_found_after_a_move(owner: Owner, path: Path, tmp_path: Path):
    id = owner.start(f"sh -c 'echo $$ >> {tmp_path}/started; exec sleep 600' & {released(tmp_path)}")
    started = tmp_path / "started"
    await until_async(lambda: started.exists() and len(started.read_text().split()) == 2, "both have started")
    owner.kill()
    os.kill(State(state_of(path).read_bytes())[cells.SHIM_PID], signal.SIGKILL)
    moved = path.parent.rename(tmp_path / "moved") / path.name
    async with Meantime.open(moved, settings=QUICK) as mt:
        [task] = await mt.thread("conv-1").wait(id, timeout=LIMIT)
        assert isinstance(task.outcome, Lost)
        assert "were killed" in task.outcome.reason
    assert not any(lives(int(pid)) for pid in (tmp_path / "started").read_text().split())


@pytest.mark.behaviour("P4")
async def test_a_ledger_that_is_mounted_elsewhere_is_the_same(owner: Owner, path: Path, tmp_path: Path):
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    id = await running(owner, tmp_path)
    owner.kill()
    if not mount("mount", "--bind", str(path.parent), str(mounted)):
        os.killpg(command(tmp_path), signal.SIGKILL)
        pytest.skip("this user may not mount")
    try:
        await goes_on(mounted / path.name, tmp_path, id)
    finally:
        assert mount("umount", "-l", str(mounted))


@pytest.mark.behaviour("P4")
async def test_commands_are_found_again_under_a_ledger_that_was_put_back(
    owner: Owner, path: Path, tmp_path: Path
):
    """The database is a copy; the command that runs is not."""
    id = await running(owner, tmp_path)
    owner.close()
    shutil.copy(path, tmp_path / "backup.db")
    path.unlink()
    shutil.copy(tmp_path / "backup.db", path)
    await goes_on(path, tmp_path, id)


def test_a_state_says_where_it_was_made(tmp_path: Path):
    state, folder = tmp_path / "one.state", tmp_path
    with open(state, "wb") as file:
        file.write(provenance.written(file.fileno(), folder).ljust(cells.SIZE, b"\0"))
    base = tmp_path / "one"
    assert provenance.whose(base) is provenance.Whose.OURS
    assert provenance.made_in(base) == str(folder)
    shutil.copy(state, tmp_path / "two.state")
    assert provenance.whose(tmp_path / "two") is provenance.Whose.ANOTHERS
    provenance.disown(state)
    assert provenance.whose(base) is provenance.Whose.ANOTHERS
    forget_the_origin(state)
    assert provenance.whose(base) is provenance.Whose.UNSAID
    assert provenance.whose(tmp_path / "none") is provenance.Whose.UNSAID
