"""The command line: speaks HTTP to the daemon, with the standard library and click alone.

Agents and people call it often, and feel how long it takes to start. So an ordinary call loads little: no
click, no `pathlib`, no `typing` (hence `TYPE_CHECKING = False`). tests/cli/test_loading.py watches over it.
"""
