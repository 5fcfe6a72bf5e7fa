"""The options of `meantime demo`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click

LONGEST = 3_600


def make_command() -> click.Command:
    import click  # here, so that the rest of us can be loaded without the extra

    @click.command("demo")
    @click.option("--headless", is_flag=True, help="Nobody types: plain lines, then the end.")
    @click.option("--json", "as_json", is_flag=True, help="One JSON object at the end. Implies --headless.")
    @click.option("--keep", is_flag=True, help="Keep the folder with the ledger, and name it.")
    @click.option(
        "--slow",
        type=click.IntRange(1, LONGEST),
        default=8,
        show_default=True,
        help="Seconds that the slow piece takes: more gives you time to look around.",
    )
    def demo(headless: bool, as_json: bool, keep: bool, slow: int) -> int:
        """A scripted agent at work, while you talk to it.

        It hands off six real pieces of work and tells you of each ending once, in the order of
        completion. No key, no network, no model; everything is in a temporary folder.
        """
        from .scenario import Wishes, play

        return play(Wishes(headless or as_json, as_json, keep, slow))

    return demo
