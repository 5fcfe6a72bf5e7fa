"""Debian's Firefox ESR over WebDriver BiDi, the protocol that it speaks by itself.

Playwright drives only a Firefox of its own make, which is not the one that people have.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT, until
from websockets.sync.client import ClientConnection, connect

PROGRAM = shutil.which("firefox-esr") or "/usr/bin/firefox-esr"
# Nothing but this machine: everything else goes to a proxy that is not there.
PREFERENCES = """
user_pref("network.proxy.type", 1);
user_pref("network.proxy.http", "127.0.0.1");
user_pref("network.proxy.http_port", 9);
user_pref("network.proxy.ssl", "127.0.0.1");
user_pref("network.proxy.ssl_port", 9);
user_pref("network.proxy.no_proxies_on", "127.0.0.1, localhost");
user_pref("app.normandy.enabled", false);
user_pref("app.update.enabled", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("toolkit.telemetry.enabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
"""

needs_firefox = pytest.mark.skipif(
    not Path(PROGRAM).exists() and os.environ.get("CI") != "true",
    reason="`make browsers` installs Firefox ESR",
)


class Firefox:
    """One window. `complaints` are errors of its console."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self.complaints: list[str] = []
        self._call("session.new", capabilities={})
        self._call("session.subscribe", events=["log.entryAdded"])
        tree = self._call("browsingContext.getTree")
        self._context: str = tree["contexts"][0]["context"]

    def go(self, url: str) -> None:
        self._call("browsingContext.navigate", context=self._context, url=url, wait="complete")

    def resize(self, width: int, height: int) -> None:
        self._call(
            "browsingContext.setViewport", context=self._context, viewport={"width": width, "height": height}
        )

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, as JSON has it."""
        text = f"Promise.resolve({expression}).then(value => JSON.stringify(value))"
        answer = self._call(
            "script.evaluate", expression=text, target={"context": self._context}, awaitPromise=True
        )
        if answer["type"] == "exception":
            raise AssertionError(answer["exceptionDetails"]["text"])
        value = answer["result"].get("value")
        return None if value is None else json.loads(value)

    def until(self, expression: str) -> Any:
        """The value of an expression, once it is true."""
        return until(lambda: self.evaluate(expression), f"this is true in Firefox: {expression}")

    def press(self, *keys: str) -> None:
        """Keys of the keyboard, one after the other. Special ones have code points in WebDriver."""
        actions = [{"type": step, "value": key} for key in keys for step in ("keyDown", "keyUp")]
        source = {"type": "key", "id": "keyboard", "actions": actions}
        self._call("input.performActions", context=self._context, actions=[source])

    def _call(self, method: str, **parameters: Any) -> Any:
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=LIMIT))
            if message.get("method") == "log.entryAdded":
                self._log(message["params"])
            elif message.get("id") == number:
                if message["type"] == "error":
                    raise AssertionError(f"{method}: {message['message']}")
                return message["result"]

    def _log(self, entry: dict[str, Any]) -> None:
        if entry["level"] in ("error", "warn"):
            self.complaints.append(str(entry.get("text")))


@contextmanager
def firefox() -> Iterator[Firefox]:
    with tempfile.TemporaryDirectory(prefix="mtff") as folder:
        (Path(folder) / "user.js").write_text(PREFERENCES)
        log = Path(folder) / "stderr"
        with log.open("wb") as errors:
            program = subprocess.Popen(
                [PROGRAM, "--headless", "--no-remote", "--profile", folder, "--remote-debugging-port", "0"],
                stdout=errors, stderr=errors, env={**os.environ, "HOME": folder},
            )  # fmt: skip
        try:
            with connect(f"{_address(program, log)}/session", max_size=2**26, open_timeout=LIMIT) as socket:
                yield Firefox(socket)
        finally:
            program.terminate()
            try:
                program.wait(LIMIT)
            except subprocess.TimeoutExpired:
                program.kill()
                program.wait(LIMIT)


def _address(program: subprocess.Popen[bytes], log: Path) -> str:
    def said() -> str:
        return log.read_text(errors="replace")

    def address() -> str:
        found = re.search(r"ws://\S+", said())
        assert found or program.poll() is None, f"Firefox has ended: {said()}"
        return found[0] if found else ""

    return until(address, "Firefox listens", there=said)
