"""The processes below a supervisor: finding them, signalling them, knowing when none is left.

A process is named by its pid and its start, in the platform's own unit: a pid is used again. The operations:

- `orphan_adopter()`: a function after whose call, where the system can do it, processes below us that lose
  their parent become our children.
- `follow(command, variable)`: we supervise this child, whose environment has this NAME=value.
- `with_mark(environ, name, value)`: the environment of a child to be, with a variable by which it and what it
  starts are found again where the platform needs one.
- `facts(pid)`: parent, group and start of a process that lives; None for others. `start_time(pid)`: 0 for one
  that is gone.
- `children(pid)`: its children; some of them may have ended.
- `descendants(of)`: everything below a process that still lives. A process that forks and ends while we look
  may be missed. For our own process, orphans are included as far as they can be found.
- `alone()`: whether nothing is below us, as far as can be known. `childless_is_alone()`: the same, when we
  have no child. `LOOK_AGAIN`: seconds after which that may have changed without a signal; infinity where it
  cannot.
- `marked(is_mark, since)`: living processes with such a NAME=value in their environment; `since`: none is
  older.
- `send(pid, started, number)`: a signal to this very process, not to one that has taken its pid since.
- `exit_descriptor(child)`: a descriptor that can be read once this child of ours has ended, and perhaps at
  other times. After a look at the child, `clear_exit(descriptor)` waits for the next.
- `hold_folder(folder)`: a path that stays that of this folder when the folder is moved, and the working
  directory in which that path holds.
- `splice(source, file, most, place)`: moves bytes from a pipe into a file; only where `splices` is true.
- `enter_group(group)`, `leave_group(group, home, processes)`: into a group that limits the number of
  processes, and out of it.
- `import_paths()`: folders from which a Python without site-packages has to import for this.

Shims load this before they are forked, and share the memory: no `typing`, no `contextlib`.
"""

from __future__ import annotations

from . import NAME

Found = dict[int, tuple[int, int]]  # pid -> start time, process group

if NAME == "linux":
    from .linux_tree import (
        LOOK_AGAIN,
        alone,
        childless_is_alone,
        children,
        clear_exit,
        descendants,
        enter_group,
        exit_descriptor,
        facts,
        follow,
        hold_folder,
        import_paths,
        leave_group,
        marked,
        orphan_adopter,
        send,
        splice,
        splices,
        start_time,
        with_mark,
    )
else:
    from .posix_tree import (
        LOOK_AGAIN,
        alone,
        childless_is_alone,
        children,
        clear_exit,
        descendants,
        enter_group,
        exit_descriptor,
        facts,
        follow,
        hold_folder,
        import_paths,
        leave_group,
        marked,
        orphan_adopter,
        send,
        splice,
        splices,
        start_time,
        with_mark,
    )

__all__ = [
    "LOOK_AGAIN",
    "Found",
    "alone",
    "childless_is_alone",
    "children",
    "clear_exit",
    "descendants",
    "enter_group",
    "exit_descriptor",
    "facts",
    "follow",
    "hold_folder",
    "import_paths",
    "leave_group",
    "marked",
    "orphan_adopter",
    "send",
    "splice",
    "splices",
    "start_time",
    "with_mark",
]
