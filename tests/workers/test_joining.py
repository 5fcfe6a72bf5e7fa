"""Joining: a line is traded for the login of one worker, once, over a server that the line pins."""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from tests.waiting import LIMIT, until_async

from meantime import InvalidInput
from meantime.app.config_schema import WorkerSection
from meantime.app.local_owner import LocalOwner, read_listen
from meantime.app.worker_addresses import join_file, worker_address
from meantime.app.worker_logins import GivenLine, WorkerLogin, join_owner, read_given, worker_folder
from meantime.carriers.nats import join_request, pinned_authority, private_server, server_accounts
from meantime.carriers.nats.join_answers import answer_join, make_line
from meantime.carriers.nats.join_line import JoinLine, read_join_line
from meantime.carriers.nats.nats_address import read_address
from meantime.carriers.nats.nats_client import close, log_in
from meantime.carriers.nats.nats_worker import NatsWorker
from meantime.carriers.nats.server_accounts import AccountFiles, PrivateServerRecord, new_login
from meantime.carriers.nats.server_config import ServerTls
from meantime.daemon.home import Home
from meantime.kernel.errors import Disconnected, Refused

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("workers")]
ELSEWHERE = "127.0.0.2"  # an address of loopback that nobody uses by default
LINE = JoinLine("10.0.0.5:4222", "meantime", bytes(32), "k" * 43, "1" * 16, "p" * 32, 1_800_000_000)


# -- the line itself


def test_a_join_line_is_read_as_it_was_written():
    assert read_join_line(LINE.text()) == LINE


def test_a_join_line_that_a_terminal_wrapped_is_whole():
    text = LINE.text()
    assert read_join_line(f" '{text[:80]}\n{text[80:160]}\r\n  {text[160:]}'\n") == LINE


def test_a_join_line_that_was_cut_off_anywhere_says_so():
    text = LINE.text()
    for length in range(len(text)):
        with pytest.raises(InvalidInput, match=r"cut off or was changed|not a join line"):
            read_join_line(text[:length])


def test_a_join_line_with_any_other_character_says_so():
    text = LINE.text()
    for at in range(len("mtjoin1-"), len(text)):
        changed = text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :]
        with pytest.raises(InvalidInput, match="cut off or was changed"):
            read_join_line(changed)


@pytest.mark.parametrize("text", ["", "hello", "mtjoin1", "mtjoin1-" + "A" * 5_000, "\0", "mtjoin1-ä"])
def test_something_else_is_not_a_join_line(text: str):
    with pytest.raises(InvalidInput, match="join line") as refused:
        read_join_line(text)
    assert "meantime workers join-line" in refused.value.hint


def test_a_join_line_of_another_version_says_which():
    with pytest.raises(InvalidInput, match=r"another version of Meantime .mtjoin2"):
        read_join_line(LINE.text().replace("mtjoin1", "mtjoin2"))


def test_a_file_that_is_not_there_is_named():
    with pytest.raises(InvalidInput, match="'/no/such' is neither a join line nor a file: No such file"):
        read_given("/no/such")


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("10.0.0.5", "10.0.0.5", 0),
        ("10.0.0.5:4222", "10.0.0.5", 4222),
        ("::1", "::1", 0),
        ("[::1]:4222", "::1", 4222),
        ("owner.example:4222", "owner.example", 4222),
    ],
)
def test_addresses_to_listen_on(text: str, host: str, port: int):
    found = read_listen(text)
    assert (found.host, found.port, found.is_for_others) == (host, port, True)


@pytest.mark.parametrize("text", [":4222", "a b", "host:port", "10.0.0.5:70000", "nats://x", "[::1", "x@y"])
def test_something_else_is_not_an_address_to_listen_on(text: str):
    with pytest.raises(InvalidInput, match="not an address to listen on"):
        read_listen(text)


@pytest.mark.parametrize("url", ["nats://10.0.0.5:4222", "nats://127.0.0.1,10.0.0.5", "nats://nats"])
def test_nothing_is_sent_in_the_clear_to_another_machine(url: str):
    with pytest.raises(InvalidInput, match=r"in the clear.*Use tls://"):
        read_address(url)
    assert read_address(f"{url}?clear=yes").is_clear
    assert read_address(read_address(f"{url}?clear=yes").url()).is_clear
    assert read_address(url.replace("nats:", "tls:")).is_secure


@pytest.mark.parametrize(
    "url", ["nats://127.0.0.1", "nats://127.0.0.2:1", "nats://[::1]:4222", "nats://localhost"]
)
def test_loopback_needs_no_tls(url: str):
    assert not read_address(url).is_secure


# -- an owner that listens for others


class Owner:
    def __init__(self, folder: Path) -> None:
        self.home = Home(folder / "owner", folder / "owner.toml")
        self.home.make()
        self.other = Home(folder / "elsewhere", folder / "elsewhere.toml")
        self.other.make()
        self.files = AccountFiles(self.home.folder / "nats")
        self.carrier: LocalOwner | None = None
        self.received: list[tuple[str, bytes]] = []

    async def open(self, listen: str = ELSEWHERE) -> None:
        key = self.home.folder / "owner.key"
        self.carrier = LocalOwner(
            self.files.folder, join_file(self.home), key, ("default",), read_listen(listen)
        )
        carrier = self.carrier
        await carrier.open(lambda worker, data: self.received.append((worker, data)), lambda state: None)
        await until_async(lambda: carrier.state.up, "the owner is connected", lambda: carrier.state)

    async def close(self) -> None:
        if self.carrier is not None:
            await self.carrier.close()

    def line(self, *pools: str, expires: float = 900.0) -> JoinLine:
        return make_line(self.files, pools or ("default",), expires=expires)

    async def join(self, line: JoinLine, name: str = "w1", pool: str = "default") -> WorkerLogin:
        return await join_owner(self.other, GivenLine(line), name, pool)


@pytest.fixture(autouse=True)
def busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """It outlasts what a person is made to wait."""
    monkeypatch.setattr(join_request, "MOST_WAIT", LIMIT)
    monkeypatch.setattr(join_request, "NEW_LINE_WAIT", LIMIT)
    monkeypatch.setattr(pinned_authority, "WAIT", LIMIT)
    monkeypatch.setattr(private_server, "START_WAIT", LIMIT)


@pytest.fixture
async def owner(tmp_path: Path) -> AsyncIterator[Owner]:
    owner = Owner(tmp_path)
    await owner.open()
    try:
        yield owner
    finally:
        await owner.close()


async def connected(login: WorkerLogin) -> NatsWorker:
    worker = NatsWorker(login.address, login.name)
    await worker.open(lambda data: None, lambda state: None)
    await until_async(lambda: worker.state.up, "the worker is connected", lambda: worker.state)
    return worker


async def test_a_worker_joins_and_its_own_login_works_from_then_on(owner: Owner):
    login = await owner.join(owner.line())
    assert (login.name, login.pools, login.address.user) == ("w1", ("default",), "worker-w1")
    worker = await connected(login)
    worker.to_owner(b"hello")
    await until_async(lambda: owner.received == [("w1", b"hello")], "the owner has the message")
    await worker.close()
    alone = await worker_address(owner.other, WorkerSection(), "", "default")
    assert (alone.carrier.worker, alone.owner_key, alone.is_own) == ("w1", login.owner_key, False)
    folder = worker_folder(owner.other, "w1")
    assert sorted(path.name for path in folder.iterdir()) == ["ca.pem", "login.json"]
    for path in (folder, *folder.iterdir(), *(path for path in owner.files.folder.rglob("*"))):
        assert path.stat().st_mode & 0o077 == 0, path


async def test_a_line_is_good_for_one_worker(owner: Owner):
    line = owner.line()
    await owner.join(line)
    with pytest.raises(Refused, match="was used already, for worker 'w1'") as refused:
        await owner.join(line, "w2")
    assert "meantime workers join-line" in refused.value.hint
    assert not worker_folder(owner.other, "w2").exists()


async def test_two_workers_with_one_line_at_once_are_one(owner: Owner):
    line = owner.line()
    found = await asyncio.gather(*(owner.join(line, f"w{n}") for n in range(4)), return_exceptions=True)
    assert sum(isinstance(one, WorkerLogin) for one in found) == 1
    assert sum(isinstance(one, Refused) for one in found) == 3
    record = owner.files.read()
    assert record is not None
    assert len(record.workers) == 2  # with `local`


async def test_a_join_that_was_killed_before_it_stored_its_login_is_repeated(owner: Owner):
    line = owner.line()
    first = await owner.join(line)
    folder = worker_folder(owner.other, "w1")
    (folder / "login.json").unlink()
    begun = {"line": line.id, "password": first.address.password}
    (folder / "joining.json").write_bytes(msgspec.json.encode(begun))
    assert await owner.join(line) == first


@pytest.mark.breadth
async def test_a_line_that_expired_says_so_and_its_login_is_gone(owner: Owner):
    line = owner.line(expires=1.0)
    await until_async(lambda: time.time() > line.expires + 1, "the line has expired")
    answer = answer_join(owner.files, line.id, _request("w1"))
    assert answer is not None
    assert answer.error == "This join line has expired."
    await until_async(
        lambda: (record := owner.files.read()) and line.id not in record.lines, "its login is gone"
    )

    async def is_unknown() -> bool:
        """The server reads its accounts again a moment after the record was written."""
        with pytest.raises((Refused, Disconnected)) as refused:
            await owner.join(line)
        return re.search(r"expired \d+ min ago.*meantime workers join-line", str(refused.value)) is not None

    await until_async(is_unknown, "the server does not know it any more")


async def test_another_authority_is_refused_before_anything_is_sent(
    owner: Owner, monkeypatch: pytest.MonkeyPatch
):
    async def never(*given: object) -> None:
        raise AssertionError("it logged in")

    monkeypatch.setattr("meantime.app.worker_logins.request_login", never)
    with pytest.raises(InvalidInput, match="certificate authority that the join line pins") as refused:
        await owner.join(replace(owner.line(), fingerprint=hashlib.sha256(b"another").digest()))
    assert "Nothing was sent to it" in refused.value.hint


async def test_an_owner_with_another_key_is_refused(owner: Owner, tmp_path: Path):
    from meantime.workers.owner_key import Signer

    forged = replace(owner.line(), owner_key=Signer.load(None).public)
    with pytest.raises(InvalidInput, match="not signed with the owner key of the join line"):
        await owner.join(forged)
    assert not (worker_folder(owner.other, "w1") / "login.json").exists()


async def test_a_name_that_is_taken_leaves_the_line_good(owner: Owner):
    await owner.join(owner.line())
    line = owner.line()
    with pytest.raises(Refused, match="'w1' has a login already") as refused:
        await owner.join(line)
    assert "meantime workers revoke w1" in refused.value.hint
    assert (await owner.join(line, "w2")).name == "w2"


async def test_a_pool_that_the_line_is_not_for_leaves_it_good(owner: Owner):
    line = owner.line("cpu", "gpu")
    with pytest.raises(Refused, match="not for pool 'tpu'; it is for cpu, gpu"):
        await owner.join(line, pool="tpu")
    login = await owner.join(line, pool="gpu")
    assert login.pools == ("cpu", "gpu")
    with pytest.raises(InvalidInput, match="is for pool cpu, gpu, not for 'tpu'"):
        await worker_address(owner.other, WorkerSection(), "w1", "tpu")


async def test_an_owner_that_does_not_answer_is_named(owner: Owner, monkeypatch: pytest.MonkeyPatch):
    line = owner.line()
    with monkeypatch.context() as silent:
        silent.setattr(join_request, "MOST_WAIT", 0.5)
        silent.setattr("meantime.app.local_owner.answer_join", lambda *given: None)
        with pytest.raises(Disconnected, match="did not answer") as failed:
            await owner.join(line)
    assert "it is still good" in failed.value.hint
    await owner.join(line)


async def test_a_server_that_is_gone_is_named(owner: Owner):
    line = owner.line()
    await owner.close()
    with pytest.raises(Disconnected, match=f"Nobody answers at {ELSEWHERE}"):
        await owner.join(line)


async def test_authority_port_and_logins_outlive_the_owner(owner: Owner):
    login = await owner.join(owner.line())
    line = owner.line()
    worker = await connected(login)
    await owner.close()
    await until_async(lambda: not worker.state.up, "the worker has lost its owner")
    await owner.open()
    await until_async(lambda: worker.state.up, "the worker is connected again", lambda: worker.state)
    await worker.close()
    assert (await owner.join(line, "w2")).address.servers == login.address.servers


async def test_revoking_a_login_disconnects_that_worker_only(owner: Owner):
    workers = [await connected(await owner.join(owner.line(), name)) for name in ("w1", "w2")]
    with owner.files.change() as record:
        del record.workers["w1"]
    revoked, other = workers
    await until_async(lambda: "it was revoked" in revoked.state.reason, "it says why", lambda: revoked.state)
    await until_async(lambda: other.state.up, "the other is connected", lambda: other.state)
    for worker in workers:
        await worker.close()


@pytest.mark.core("the one worker that joins a moment after the owner")
async def test_workers_of_the_owners_machine_have_names_of_their_own(owner: Owner):
    """They need no line; both at once, and for any pool."""
    section = WorkerSection()
    found = await asyncio.gather(
        worker_address(owner.home, section, "", "default"),
        worker_address(owner.home, section, "b", "default"),
        worker_address(owner.home, section, "c", "gpu"),
    )
    assert [one.carrier.worker for one in found] == ["local", "b", "c"]
    assert all(one.is_own for one in found)
    again = await worker_address(owner.home, section, "c", "cpu")
    assert again.pools == ("gpu", "cpu")
    await owner.join(owner.line())
    with pytest.raises(Refused, match="'w1' has a login already"):
        await worker_address(owner.home, section, "w1", "default")


async def test_a_worker_of_the_same_machine_joins_by_the_file_of_the_owner(owner: Owner):
    """For a ledger that a program opened: it is in no home."""
    given = read_given(str(join_file(owner.home)))
    assert given.is_own
    await join_owner(owner.other, given, "e1", "default")
    found = await worker_address(owner.other, WorkerSection(), "e1", "default")
    assert (found.carrier.worker, found.is_own) == ("e1", True)


async def test_several_that_joined_must_be_named(owner: Owner):
    for name in ("w1", "w2"):
        await owner.join(owner.line(), name)
    with pytest.raises(InvalidInput, match=r"Several workers joined from this machine: w1, w2.*--name"):
        await worker_address(owner.other, WorkerSection(), "", "default")


async def test_a_server_on_loopback_has_no_join_lines(tmp_path: Path):
    owner = Owner(tmp_path)
    await owner.open(listen="")
    try:
        with pytest.raises(InvalidInput, match=r"listens on this machine only.*--listen"):
            owner.line()
    finally:
        await owner.close()


async def test_an_address_of_another_machine_is_refused(tmp_path: Path):
    owner = Owner(tmp_path)
    with pytest.raises(InvalidInput, match=r"Nothing can listen on 192\.0\.2\.1"):
        await owner.open(listen="192.0.2.1")
    await owner.close()


# -- hostile requests


@pytest.fixture
def files(tmp_path: Path) -> AccountFiles:
    """Of a server that does not run."""
    files = AccountFiles(tmp_path / "nats")
    with files.change(
        PrivateServerRecord(4222, new_login(), {}, tls=ServerTls("c", "k"), fingerprint="00" * 32)
    ):
        pass
    return files


def _request(name: str, **given: object) -> bytes:
    asked = {"name": name, "pool": "default", "password": "p" * 43, "protocol": 1, **given}
    return msgspec.json.encode(asked)


@pytest.mark.parametrize(
    "data",
    [b"", b"garbage", b"[]", b"{}", b"\xff" * 100, b'{"name": 3}', b" " * 10_000 + b"{}", b"[" * 100_000],
)
def test_a_request_that_cannot_be_read_is_not_answered(files: AccountFiles, data: bytes):
    assert answer_join(files, make_line(files, ["default"]).id, data) is None


@pytest.mark.parametrize(
    "given",
    [
        {"name": "../../etc"},
        {"name": "a b"},
        {"name": ""},
        {"name": "x" * 2_000},
        {"pool": "*"},
        {"pool": ">"},
        {"password": "short"},
        {"password": "p" * 42 + '"'},
        {"protocol": 2},
    ],
)
def test_a_request_for_something_else_is_refused(files: AccountFiles, given: dict[str, object]):
    line = make_line(files, ["default"])
    answer = answer_join(files, line.id, _request(**{"name": "w1", **given}))  # type: ignore[arg-type]
    assert answer is not None
    assert answer.error
    after = files.read()
    assert after is not None
    assert after.workers == {}
    assert not after.lines[line.id].used_by


def test_open_join_lines_have_a_limit(files: AccountFiles):
    for _ in range(server_accounts.MOST_LINES):
        make_line(files, ["default"])
    with pytest.raises(InvalidInput, match="100 join lines are open already"):
        make_line(files, ["default"])


async def test_the_login_of_a_line_can_only_ask(owner: Owner):
    line = owner.line()
    refusals: list[str] = []

    async def refused(problem: Exception) -> None:
        refusals.append(str(problem).lower())

    async def ignore(*_: object) -> None: ...

    record = owner.files.read()
    assert record is not None
    address = record.address(f"join-{line.id}", server_accounts.ServerLogin(line.password))
    client = await log_in(
        address.servers[0], user=address.user, password=address.password, tls=address.tls(),
        tls_name=address.tls_name, failed=refused, closed=ignore, patience=LIMIT,
    )  # fmt: skip
    forbidden = [
        "meantime.offer.default.k", "meantime.worker.w1.message", "meantime.owner.w1", "meantime.join.own",
        "$js.api.stream.info.meantime_meantime", "$js.api.consumer.msg.next.meantime_meantime.default",
    ]  # fmt: skip
    foreign = [">", "meantime.joined.own", "meantime.join.*", "meantime.worker.>"]
    try:
        for subject in forbidden:
            await client.publish(subject.replace("$js.api", "$JS.API"), b"")
        for subject in foreign:
            await client.subscribe(subject, cb=ignore)
        await client.flush()
        for subject in (*forbidden, *foreign):
            named = f'"{subject}"'
            await until_async(
                lambda named=named: any(named in text for text in refusals),
                f"{subject} is refused",
                lambda: refusals,
            )
        assert owner.received == []
    finally:
        await close(client)
