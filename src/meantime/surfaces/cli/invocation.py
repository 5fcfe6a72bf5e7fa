"""Around every verb: how a call of the executable is performed, and how it ends."""

from __future__ import annotations

import contextlib
import os
import sys

from meantime.surfaces.terminal.errors import BROKEN_PIPE, FAILED, INTERRUPTED, USAGE, CliError
from meantime.surfaces.terminal.std_streams import echo, let_go_of_stdout, open_streams
from meantime.surfaces.terminal.terminal_text import plain, plain_lines

from .plain_argv import read
from .verb import Verb
from .verb_table import COMPLETE, loaded, places

TYPE_CHECKING = False  # to load `typing` takes 2 ms
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .verb_table import Table


def run(table: Table, arguments: Sequence[str], version: str) -> int:
    """One call of `meantime`: its exit code. Nobody sees a traceback, whatever happens."""
    open_streams()
    try:
        _check_platform()
        code = _performed(table, arguments, version)
        sys.stdout.flush()
        return code
    except CliError as trouble:
        return _told(trouble.what, trouble.hint, trouble.exit_code)
    except (KeyboardInterrupt, EOFError):
        return INTERRUPTED
    except BrokenPipeError:
        let_go_of_stdout()
        return BROKEN_PIPE
    except OSError as error:
        let_go_of_stdout()
        return _told(str(error), "", FAILED)
    except Exception as error:
        if os.environ.get("MEANTIME_DEBUG"):
            raise
        what = f"This is a fault in meantime itself: {type(error).__name__}: {error}"
        return _told(what, "MEANTIME_DEBUG=1 shows where.", FAILED)


def _check_platform() -> None:
    """Before a daemon is started, which could not say it here."""
    asked = os.environ.get("MEANTIME_PLATFORM", "")
    if not asked:  # it holds everywhere, and nothing need be loaded
        return
    try:
        from meantime.system import platform as _
    except ValueError as trouble:
        what, _, hint = str(trouble).rpartition(". ")
        raise CliError(f"{what}.", hint, USAGE) from None
    except ImportError as trouble:  # a package that the path needs is missing
        raise CliError(str(trouble), "Or unset MEANTIME_PLATFORM.", USAGE) from None


def _performed(table: Table, arguments: Sequence[str], version: str) -> int:
    """An ordinary call goes straight to its verb; help, completion and mistakes are click's."""
    where = places(table).get(arguments[0]) if arguments and COMPLETE not in os.environ else None
    verb = loaded(arguments[0], where) if where else None
    given = read(verb, arguments[1:]) if isinstance(verb, Verb) else None
    if isinstance(verb, Verb) and given is not None:
        return verb.perform(given)
    try:
        from .click_commands import invoked
    except ModuleNotFoundError as missing:
        what = f"the command line needs {missing.name}: pip install 'meantime[server]'"
        raise CliError(what) from missing
    return invoked(table, arguments, version)


def _told(what: str, hint: str, code: int) -> int:
    from meantime.surfaces.caller.executable import named

    first = next((line for line in what.splitlines() if line.strip()), "It failed.")
    hints = plain_lines(named(hint)).split("\n")
    lines = [f"meantime: {plain(first)}", *(f"  {line}" for line in hints if line)]
    try:
        sys.stdout.flush()
    except OSError:
        let_go_of_stdout()
    with contextlib.suppress(OSError):  # then there is nobody to tell
        echo("\n".join(lines), err=True)
    return code
