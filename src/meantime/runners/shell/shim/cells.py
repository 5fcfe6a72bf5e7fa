"""The state of one command, as its shim publishes it: numbered cells of eight bytes in one small file.

The owner makes the file, empty, before it records the task. The shim locks it for as long as it
lives, maps it into its memory and stores whole cells; whoever reads it needs no lock. It costs nothing
to publish, and it is still right after the reader, or the shim, was killed. All cells but the pids are in one
sector of a disk, so a power cut leaves the old state or the new one, never a mixture.
"""

from __future__ import annotations

import zlib

from meantime.system import process_marks

SIZE = 4096
VERSION = 1

(
    FORMAT,  # VERSION, once a shim has taken the command: nobody else may start it
    PHASE,
    SHIM_PID,
    SHIM_START,  # a pid alone names nobody: it is used again after its owner's end
    COMMAND_PID,
    COMMAND_START,
    BEGAN,  # monotonic nanoseconds, one clock for all processes until the next boot
    ENDED_AT,
    EXIT_CODE,
    SIGNAL,  # what killed it, or 0
    STOPPED,  # it was asked to stop while it still ran
    STOPPED_BY,
    PROBLEM,  # errno of what kept it from starting, or 0
    PROBLEM_WITH,
    OUT_TOTAL,  # bytes that came, those that were dropped included
    ERR_TOTAL,
    SWITCHES,  # how often the streams took turns: the length of the order file
    OUT_GAP_FROM,  # bytes that came while the disk was full, and were not kept
    OUT_GAP_TO,
    ERR_GAP_FROM,
    ERR_GAP_TO,
    HEAD,  # bytes at the beginning that are always kept
    RING,  # bytes at the end that are kept
    WANTS_WAKE,  # set by a reader that follows: wake it at the next output
    KEPT,  # it goes on when its owner is gone; written by the owner alone, also before there is a shim
    STDIN_PENDING,  # bytes that the command has not read yet
    LINEAR,  # where the ring's bytes begin in the .txt that took the place of the .out; 0 while it has not
    LEFT,  # processes that were left when it ended; their pids follow
    DEVICE,  # where this file was made, written by the owner; all 0 where an older one made it
    INODE,
    FOLDER_INODE,  # of its folder: a hard link to this file lies in another one
    BOOT,  # at which start of the machine the command began; 0 where an older shim began it
    SUM,  # checksum of the ending: the cells from BEGAN to PROBLEM_WITH; 0 where there is none
    OUT_SUM,  # of the files of its output, where they are short and nobody is left who could add to them
    ERR_SUM,
) = range(35)
SUMMED = 1 << 20  # bytes of output up to which there is a checksum
LEFT_PIDS = 64  # the first cell of the pids
MAX_LEFT = 64
LEFT_STARTS = 448  # the first cell of their start times; 0 where an older shim wrote the pids
PATH, PATH_SIZE = 1024, 1024  # where the folder was when this file was made, in bytes; empty if too long
ID = 2048  # where the task's id stands, in bytes

NEW, RUNNING, ENDED = range(3)  # PHASE
BY_OWNER, BY_DEADLINE, BY_ORPHANHOOD = 1, 2, 3  # STOPPED_BY
PROGRAM, FOLDER, SUPERVISION = 1, 2, 3  # PROBLEM_WITH

CHUNK = 1 << 16  # the most that is written at once; the ring is so much longer than it promises
SWITCH_BYTES = 16  # one entry of the order file: both totals when the streams took turns
MAX_SWITCHES = 1 << 15  # the newest that are kept

# What the owner writes into the control pipe: a letter, then the length of the data in four bytes.
# A message is at most PIPE_BUF long, so it is written whole or not at all, whoever is killed.
STOP, KILL, INPUT, CLOSE_INPUT = b"S", b"K", b"I", b"E"
MAX_MESSAGE = 4096
MESSAGE_HEAD = 5

# What shims write into the events pipe of their owner: the name of the command, then a letter.
BEGUN, OUTPUT, OVER, GAVE_UP = b"b", b"o", b"e", b"x"
NAME_LENGTH = 24

# The files of one command: its name with one of these.
STATE_FILE, CONTROL_PIPE, OUT_FILE, ERR_FILE, ORDER_FILE = ".state", ".control", ".out", ".err", ".order"
WHOLE_FILE = ".txt"  # what was kept, from its beginning to its end; made afterwards where that was needed
FILES = (STATE_FILE, CONTROL_PIPE, OUT_FILE, ERR_FILE, ORDER_FILE, WHOLE_FILE)
EVENTS_PIPE = "events"  # one for all
MARK = process_marks.COMMAND


def checksum(data: bytes | memoryview) -> int:
    """Never 0, which is that there is none."""
    return 1 << 32 | zlib.crc32(data)


def ending_of(state: memoryview) -> bytes:
    """The bytes that its checksum covers."""
    return bytes(state[BEGAN:OUT_TOTAL])
