"""The messages between the owner of a ledger and its workers: JSON, one struct each, `protocol` 1.

Unknown fields are ignored, so that a newer side may say more. Unknown kinds and other protocols are refused.
A nonce names one claim of one run by one worker. Everything that a worker says of a run carries it, and
everything that the owner asks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from meantime.kernel.errors import MeantimeError
from meantime.kernel.model import Chunk, Spill, Task, fence_of
from meantime.kernel.pool_slots import need_of, split_place
from meantime.kernel.questions import Question, Reply
from meantime.link.frames import Fence, WireReport, WorkState
from meantime.link.wire_errors import WireError

PROTOCOL = 1
MOST_SHOWN = 100  # characters of a kind that is not known
SEALED = {"meantime:sealed": "1"}  # a label that no worker can be configured with


class UnreadableMessage(MeantimeError):
    """A message of another protocol, of an unknown kind, or one that cannot be read."""

    code = "unknown_message"
    protocol = PROTOCOL  # of the message


class WorkerMessage(Struct, frozen=True, kw_only=True, tag_field="kind", gc=False):
    protocol: int = PROTOCOL


class KeptFile(Struct, frozen=True, omit_defaults=True, gc=False):
    """A file of a command's output, which the owner copies before the worker removes it."""

    ending: str  # of its name
    size: int
    crc: int


# -- from a worker


class ClaimMessage(WorkerMessage, frozen=True, kw_only=True, tag="claim"):
    """The worker would perform this run."""

    task: str
    fence: Fence
    nonce: str
    home: str
    boot: str
    key: str = ""  # that its grant is sealed for
    opens_input: bool = False  # and so are texts and answers to its run; not by an earlier version


class AliveMessage(WorkerMessage, frozen=True, kw_only=True, tag="alive"):
    """The worker, and the claims that it has begun and not yet had acknowledged."""

    home: str
    boot: str
    pool: str
    slots: int
    running: int = 0
    runs: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()  # of these runs, in the same order; "" for one that has ended
    host: str = ""
    version: str = ""
    labels: dict[str, str] = {}
    kinds: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()  # now and then, as capabilities.advertised writes them; empty: as before
    draining: bool = False
    sent: float = 0.0  # by the worker's clock, in seconds since the epoch
    key: str = ""  # that its grants are sealed for; a worker of an earlier version has none
    opens_input: bool = False  # as in a claim


class SayingMessage(WorkerMessage, frozen=True, kw_only=True, tag="saying"):
    """How a run stands. `number` grows with each of one life of the worker, which `sender` names, so that an
    older one does not undo a newer one."""

    nonce: str
    number: int
    said: WorkState
    age: float
    is_deaf: bool = False
    line: str = ""  # the last one of its output
    quiet: float | None = None  # seconds since that was written; None: it has written nothing
    sender: str = ""


class UnsentEvent(Struct, frozen=True, gc=False):
    """An event that the owner has not acknowledged when its run ends."""

    number: int
    text: str


class EndedMessage(WorkerMessage, frozen=True, kw_only=True, tag="ended"):
    """How a run ended. Repeated until the owner has recorded it and says `heard`."""

    nonce: str
    task: str
    fence: Fence
    report: WireReport
    said: WorkState
    age: float
    spill: Spill | None = None  # the output is in a file of the worker's, which is one of `files`
    files: tuple[KeptFile, ...] = ()
    events: tuple[UnsentEvent, ...] = ()


class UnknownMessage(WorkerMessage, frozen=True, kw_only=True, tag="unknown"):
    """The worker has no such claim, neither in its journal nor on its way."""

    nonce: str
    home: str
    boot: str


class AskedMessage(WorkerMessage, frozen=True, kw_only=True, tag="asked"):
    """A run asks a question. Repeated until it is answered."""

    nonce: str
    question: Question
    again: bool = False


class WithdrawnMessage(WorkerMessage, frozen=True, kw_only=True, tag="withdrawn"):
    nonce: str
    question: str
    reply: Reply | None = None


class NotifiedMessage(WorkerMessage, frozen=True, kw_only=True, tag="notified"):
    """An event that the conversation is to be told before the run ends. `number` counts those of one claim.
    Repeated until the owner says `noted`; the next one is sent after that."""

    nonce: str
    task: str
    fence: Fence
    number: int
    text: str


class AnswerMessage(WorkerMessage, frozen=True, kw_only=True, tag="answer"):
    """To a ReadMessage, a WatchMessage, a SendMessage or an EndLeftoversMessage."""

    ask: str
    chunk: Chunk | None = None
    changed: bool = False
    killed: int = 0
    left: tuple[int, ...] = ()
    error: WireError | None = None


# -- from the owner


class Sealed(Struct, frozen=True, gc=False):
    """Data that only the worker that claimed can read: grant_seal.py opens it."""

    key: str  # of the owner
    data: bytes


class OfferMessage(WorkerMessage, frozen=True, kw_only=True, tag="offer"):
    """A run that any worker of the pool may claim. It names the work and holds none of its input. The label
    `SEALED` keeps away workers that could not open its grant: an earlier version lacks it."""

    task: str
    fence: Fence
    pool: str
    work: str  # its kind
    name: str = ""
    needs: dict[str, str] = {}  # labels


def offer_of(task: Task) -> OfferMessage:
    """A function is found by its name. The name of a command is its text, which is nobody's business yet."""
    need = need_of(task)
    pool, labels = split_place(need.place)
    return OfferMessage(
        task=task.id,
        fence=fence_of(task.run),
        pool=pool,
        work=need.kind,
        name=need.name,
        needs=labels | SEALED,
    )


def offer_key(task: Task) -> str:
    """The key of the offer of this attempt: ids may hold anything, and a key is a name."""
    number, attempt = fence_of(task.run)
    return hashlib.sha256(f"{task.id}\0{number}\0{attempt}".encode()).hexdigest()[:32]


class GrantedMessage(WorkerMessage, frozen=True, kw_only=True, tag="granted"):
    """The claim is on record: begin. The only message that holds input, values of variables and stdin: in
    `sealed`, from which the worker fills in the others."""

    nonce: str
    task: Task
    env: dict[str, str | None] = {}
    stdin: bytes | None = None
    sealed: Sealed | None = None
    events: bool = False  # whether the owner takes `notified`; one of an earlier version does not


class DeniedMessage(WorkerMessage, frozen=True, kw_only=True, tag="denied"):
    """The claim came too late: another worker has the run, or nobody needs it any more."""

    nonce: str


class HeardMessage(WorkerMessage, frozen=True, kw_only=True, tag="heard"):
    """The ending is recorded: the worker may forget it."""

    nonce: str


class HaveMessage(WorkerMessage, frozen=True, kw_only=True, tag="have"):
    """Does the worker have this claim? It answers with how the run stands, its ending, or Unknown."""

    nonce: str


class CancelMessage(WorkerMessage, frozen=True, kw_only=True, tag="cancel"):
    """The run is asked to stop, for the `times`th time: the second request is harder."""

    nonce: str
    times: int


class SendMessage(WorkerMessage, frozen=True, kw_only=True, tag="send"):
    """Bytes for a command's stdin, in `sealed`. `number` counts those of one life of the owner, which
    `sender` names, so that none is written twice."""

    ask: str
    nonce: str
    number: int
    data: bytes = b""
    eof: bool = False
    sender: str = ""
    sealed: Sealed | None = None


class ReadMessage(WorkerMessage, frozen=True, kw_only=True, tag="read"):
    """A stretch of output: from an offset, or with `lines` the last lines; or, by its ending, of a file."""

    ask: str
    nonce: str
    stream: str = ""
    offset: int = 0
    most: int = 0
    lines: int = 0
    file: str = ""


class WatchMessage(WorkerMessage, frozen=True, kw_only=True, tag="watch"):
    """Answered when the stream has more than `seen` bytes, or after a while. The answer carries the first
    `most` bytes of that, which spares the owner a request; a worker of an earlier version answers without."""

    ask: str
    nonce: str
    stream: str
    seen: int
    most: int = 0


class EndLeftoversMessage(WorkerMessage, frozen=True, kw_only=True, tag="end_leftovers"):
    """Ends the processes that a command of an ended task has left running, even if its claim is forgotten."""

    ask: str
    nonce: str
    task: Task


class RepliedMessage(WorkerMessage, frozen=True, kw_only=True, tag="replied"):
    """The answer to a question, in `sealed`."""

    nonce: str
    question: str
    reply: Reply | None = None
    error: WireError | None = None
    sealed: Sealed | None = None


class NotedMessage(WorkerMessage, frozen=True, kw_only=True, tag="noted"):
    """The event is on record, or will never be: `error` says why."""

    nonce: str
    number: int
    answer: str = ""
    error: WireError | None = None


FromWorker: TypeAlias = (
    ClaimMessage
    | AliveMessage
    | SayingMessage
    | EndedMessage
    | UnknownMessage
    | AskedMessage
    | WithdrawnMessage
    | NotifiedMessage
    | AnswerMessage
)
FromOwner: TypeAlias = (
    OfferMessage
    | GrantedMessage
    | DeniedMessage
    | HeardMessage
    | HaveMessage
    | CancelMessage
    | SendMessage
    | ReadMessage
    | WatchMessage
    | EndLeftoversMessage
    | RepliedMessage
    | NotedMessage
)
_Side = TypeVar("_Side")


class _Head(Struct, frozen=True):
    protocol: int = 0
    kind: str = ""


_HEAD = msgspec.json.Decoder(_Head)
_OF_WORKER: msgspec.json.Decoder[FromWorker] = msgspec.json.Decoder(FromWorker)
_OF_OWNER: msgspec.json.Decoder[FromOwner] = msgspec.json.Decoder(FromOwner)


encode: Callable[[FromWorker | FromOwner], bytes] = msgspec.json.Encoder().encode


def from_worker(data: bytes) -> FromWorker:
    """Raises UnreadableMessage."""
    return _decoded(data, _OF_WORKER)


def from_owner(data: bytes) -> FromOwner:
    """Raises UnreadableMessage."""
    return _decoded(data, _OF_OWNER)


def _decoded(data: bytes, decoder: msgspec.json.Decoder[_Side]) -> _Side:
    try:
        head = _HEAD.decode(data)
        if head.protocol != PROTOCOL:
            refused = UnreadableMessage(
                f"A message has protocol {head.protocol}; this side speaks {PROTOCOL}.",
                code="unknown_protocol",
                hint="Install the same version of Meantime on the owner and its workers.",
            )
            refused.protocol = head.protocol
            raise refused
        return decoder.decode(data)
    except msgspec.MsgspecError as problem:
        raise UnreadableMessage(f"A message cannot be read: {str(problem)[:MOST_SHOWN]}.") from None
