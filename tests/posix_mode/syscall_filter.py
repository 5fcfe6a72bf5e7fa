"""A seccomp filter that lets system calls of Linux fail as another kernel would. See __init__.py."""

from __future__ import annotations

import ctypes
import errno
import platform
import struct

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06  # BPF: a word at an offset, a comparison, the verdict
NUMBER, ARCHITECTURE, FIRST, SECOND, THIRD = 0, 4, 16, 24, 32  # offsets in struct seccomp_data
X86_64 = 0xC000003E

# Each is the conditions under which a call fails, and its error.
REFUSED: list[tuple[list[tuple[int, int]], int]] = [
    ([(NUMBER, 434)], errno.ENOSYS),  # pidfd_open
    ([(NUMBER, 424)], errno.ENOSYS),  # pidfd_send_signal
    ([(NUMBER, 275)], errno.ENOSYS),  # splice
    ([(NUMBER, 157), (FIRST, 36)], errno.EINVAL),  # prctl(PR_SET_CHILD_SUBREAPER)
    ([(NUMBER, 55), (SECOND, 1), (THIRD, 17)], errno.ENOPROTOOPT),  # getsockopt(SOL_SOCKET, SO_PEERCRED)
]


def program() -> list[tuple[int, int, int, int]]:
    """Instructions as (code, jump if true, jump if false, operand). A rule that does not hold leads to the
    next."""
    made = [(LOAD, 0, 0, ARCHITECTURE), (EQUAL, 1, 0, X86_64), (RETURN, 0, 0, ALLOW)]
    for conditions, error in REFUSED:
        left = len(conditions)
        for offset, value in conditions:
            made += [(LOAD, 0, 0, offset), (EQUAL, 0, 2 * (left - 1) + 1, value)]
            left -= 1
        made.append((RETURN, 0, 0, ERRNO | error))
    return [*made, (RETURN, 0, 0, ALLOW)]


def install() -> bool:
    """For this process and all that it starts, for ever. False where there is no filter for this machine."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        return False
    code = b"".join(struct.pack("=HBBI", *each) for each in program())
    kept = ctypes.create_string_buffer(code, len(code))
    filter = ctypes.create_string_buffer(struct.pack("@HP", len(program()), ctypes.addressof(kept)))
    libc = ctypes.CDLL(None, use_errno=True)
    for prepare in (None, PR_SET_NO_NEW_PRIVS):  # a privileged user can do without
        if prepare is not None:
            libc.prctl(prepare, 1, 0, 0, 0)
        if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter, 0, 0) == 0:
            return True
    raise OSError(ctypes.get_errno(), "the filter cannot be installed")
