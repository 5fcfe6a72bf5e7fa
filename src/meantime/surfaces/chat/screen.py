"""The terminal: a prompt at the bottom, and everything else above it, in the terminal's own scrollback."""

from __future__ import annotations

import os
import sys
import termios
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app_or_none
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.styles import Style

from meantime.surfaces.terminal.task_format import coloured, wants_colour

from .chat_format import BOLD

REFRESH = 1.0  # seconds between two looks at the clock of what is waited for
Options = Callable[[str], Iterable[tuple[str, str]]]


class Keys:
    """The actions of keys; set by their owner."""

    def __init__(self) -> None:
        self.background: Callable[[], None] = lambda: None
        self.interrupt: Callable[[], bool] = lambda: False
        self.is_calling: Callable[[], bool] = lambda: False


class Screen:
    def __init__(self, toolbar: Callable[[], str], options: Options, keys: Keys) -> None:
        style = {
            "bottom-toolbar": "noreverse fg:ansibrightblack" if wants_colour() else "noreverse",
            "bottom-toolbar.text": "",
        }
        self._typed = InMemoryHistory()
        self._left = False
        self._session: PromptSession[str] = PromptSession(
            ANSI(f"{coloured('>', BOLD)} "),
            history=self._typed,
            completer=_Completer(options),
            complete_while_typing=Condition(lambda: self._session.default_buffer.text.startswith("/")),
            reserve_space_for_menu=6,
            bottom_toolbar=lambda: ANSI(toolbar()),
            key_bindings=_bindings(keys, self),
            style=Style.from_dict(style),
            refresh_interval=REFRESH,
            prompt_continuation="  ",
        )

    async def lines(self) -> AsyncGenerator[str]:
        """The typed lines, until somebody leaves. Keys are ours also between two prompts: one that is pressed
        then is for the next."""
        with self._session.app.input.raw_mode():
            while not self._left:
                try:
                    yield await self._session.prompt_async()
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
            if not app.is_running or app.is_done:
                app.output.write_raw(text)
                app.output.flush()
                return
            app.renderer.erase()
            app.output.write_raw(text)
            app.output.flush()
            app.renderer.reset()
            app.renderer.request_absolute_cursor_position()
            app.invalidate()
        except OSError:
            _let_go()

    def remember(self, lines: Iterable[str]) -> None:
        """Lines that were typed in an earlier session, for the arrow keys."""
        for line in lines:
            self._typed.append_string(line)

    def changed(self) -> None:
        if self._session.app.is_running:
            self._session.app.invalidate()

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


class _Completer(Completer):
    def __init__(self, options: Options) -> None:
        self._options = options

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        line = document.text_before_cursor
        if not line.startswith("/"):
            return
        word = line.rpartition(" ")[2]
        for text, meaning in self._options(line):
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
