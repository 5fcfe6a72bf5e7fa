"""The terminal: a prompt at the bottom, and everything else above it, in the terminal's own scrollback.

The chat and the demo share it. It is the only file that loads prompt_toolkit.
"""

from __future__ import annotations

import os
import sys
import termios
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app_or_none
from prompt_toolkit.application.current import set_app
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input.vt100 import Vt100Input, raw_mode
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style

from .task_format import wants_colour

REFRESH = 1.0  # seconds between two looks at the clock of what is waited for
Options = Callable[[str], Awaitable[Sequence[tuple[str, str]]]]


class Keys(NamedTuple):
    """The actions of keys."""

    background: Callable[[], None]
    interrupt: Callable[[], bool]
    is_calling: Callable[[], bool]


class Screen:
    """A prompt, whose typed line stays while rows are put above it.

    With `keys`, every key is the screen's; without it, Ctrl+C and Ctrl+Z stay signals. `erase` removes the
    prompt and its line when the line is finished or the screen is left; otherwise they stay in the
    scrollback. `pressed` is called after each key. `options` are completions for lines that begin with a
    slash.
    """

    def __init__(
        self,
        prompt: str,
        *,
        toolbar: Callable[[], str] | None = None,
        options: Options | None = None,
        keys: Keys | None = None,
        pressed: Callable[[], None] | None = None,
        erase: bool = False,
    ) -> None:
        style = {
            "bottom-toolbar": "noreverse fg:ansibrightblack" if wants_colour() else "noreverse",
            "bottom-toolbar.text": "",
        }
        self._typed = InMemoryHistory()
        self._left = False
        self._takes_signals = keys is not None
        self._session: PromptSession[str] = PromptSession(
            ANSI(prompt),
            history=self._typed,
            completer=_Completer(options) if options else None,
            complete_while_typing=Condition(lambda: self._session.default_buffer.text.startswith("/")),
            reserve_space_for_menu=6,
            bottom_toolbar=(lambda: ANSI(toolbar())) if toolbar else None,
            key_bindings=_bindings(keys, self) if keys else None,
            style=Style.from_dict(style),
            refresh_interval=REFRESH if toolbar else 0,
            prompt_continuation="  ",
            erase_when_done=erase,
            input=None if keys else _SignallingInput(sys.stdin),
            output=None if toolbar or options else _unasking_output(),
        )
        if pressed:
            self._session.app.key_processor.after_key_press.add_handler(_calling(pressed))

    async def lines(self) -> AsyncGenerator[str]:
        """The typed lines, until somebody leaves. Keys are ours also between two prompts: one that is pressed
        then is for the next."""
        with self.raw_mode():
            while not self._left:
                try:
                    yield await self._session.prompt_async(handle_sigint=self._takes_signals)
                except EOFError:
                    return
                except (OSError, termios.error):
                    _let_go()
                    return
                except KeyboardInterrupt:
                    continue

    def put(self, rows: Sequence[str]) -> None:
        """Above the prompt. A terminal that is gone shows nothing; whoever reads from it finds that out."""
        text = "".join(f"{row}\r\n" for row in rows)
        app = self._session.app
        try:
            if app.is_running:
                app.renderer.erase()
            app.output.write_raw(text)
            app.output.flush()
            if app.is_running:
                self._draw_again()
        except OSError:
            _let_go()

    def raw_mode(self) -> AbstractContextManager[None]:
        """Keys come one by one, and the terminal shows none by itself."""
        return self._session.app.input.raw_mode()

    def resume(self) -> None:
        """After Ctrl+Z and `fg`: the shell has set the terminal to what it likes, and written to it."""
        self.raw_mode().__enter__()  # whoever entered it first leaves it
        if self._session.app.is_running:
            self._draw_again()

    def _draw_again(self) -> None:
        """The prompt, where the cursor is now. One that is finished is drawn a last time by itself."""
        app = self._session.app
        app.renderer.reset()
        if not app.is_done:
            app.renderer.request_absolute_cursor_position()
            app.invalidate()

    def remember(self, lines: Iterable[str]) -> None:
        """Lines that were typed in an earlier session, for the arrow keys."""
        for line in lines:
            self._typed.append_string(line)

    def changed(self) -> None:
        app, shown = self._session.app, self._session.default_buffer.complete_state
        if not app.is_running:
            return
        if shown is not None and shown.completions and shown.complete_index is None:  # none is chosen yet
            self._session.default_buffer.cancel_completion()
            with set_app(app):
                self._session.default_buffer.start_completion()
        app.invalidate()

    def leave(self) -> None:
        """From outside: the prompt ends as if somebody had left; between two prompts, no other comes."""
        self._left = True
        app = get_app_or_none()  # on a terminal that can only write, the prompt is not the session's own
        if app is not None and app.is_running and not app.is_done:
            app.exit(exception=EOFError)

    @property
    def is_empty(self) -> bool:
        return not self._session.default_buffer.text

    def clear_line(self) -> None:
        self._session.default_buffer.reset()


def _let_go() -> None:
    """The terminal is gone: what is still to be written goes nowhere, and raises nothing any more."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _calling(pressed: Callable[[], None]) -> Callable[[object], None]:
    return lambda _: pressed()


class _SignallingMode(raw_mode):
    """Enter stays what it is: after Ctrl+Z, a shell that leaves the mode alone (dash) must still know it."""

    @classmethod
    def _patch_lflag(cls, attrs: int) -> int:
        return super()._patch_lflag(attrs) | (attrs & termios.ISIG)

    @classmethod
    def _patch_iflag(cls, attrs: int) -> int:
        return attrs


class _SignallingInput(Vt100Input):
    """Keys, but for those that the terminal turns into signals."""

    def raw_mode(self) -> AbstractContextManager[None]:
        return _SignallingMode(self.fileno())


def _unasking_output() -> Vt100_Output:
    """Never asks the terminal where its cursor is: without a menu or a toolbar below the prompt, nobody needs
    to know, and an answer that comes late would be typed into the shell."""
    output = Vt100_Output.from_pty(sys.stdout, os.environ.get("TERM"))
    output.enable_cpr = False
    return output


class _Completer(Completer):
    def __init__(self, options: Options) -> None:
        self._options = options

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        return ()  # only those below are asked for

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        line = document.text_before_cursor
        if not line.startswith("/"):
            return
        word = line.rpartition(" ")[2]
        for text, meaning in await self._options(line):
            yield Completion(text, start_position=-len(word), display_meta=meaning)


def _bindings(keys: Keys, screen: Screen) -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("c-b", filter=Condition(lambda: keys.is_calling()))
    def _(event: KeyPressEvent) -> None:
        keys.background()

    @bindings.add("c-c")
    def _(event: KeyPressEvent) -> None:
        if keys.interrupt():
            return
        if screen.is_empty:
            screen.put(["Ctrl+D leaves; what runs goes on."])
        screen.clear_line()

    return bindings
