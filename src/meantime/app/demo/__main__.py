"""`python -m meantime.app.demo`, which is `meantime demo` without the rest of the command line."""

from __future__ import annotations

import sys


def main() -> None:
    try:
        from meantime.app.demo import command
    except ImportError as problem:
        if problem.name != "click":
            raise
        sys.exit("The demo needs a package that is not installed: click. pip install 'meantime[server]'")
    command(prog_name="meantime demo")


if __name__ == "__main__":
    main()
