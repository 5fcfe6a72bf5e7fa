"""A person, a coding agent on a terminal, and Meantime beside it; judged by what the model was asked."""

from __future__ import annotations

import contextlib
import itertools
import re
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import Any

from tests.waiting import LIMIT, until

from cli.person import Person
from gates import Gate

from .installed import MEANTIME
from .model import IDS, Asked, Model
from .terminals import Host, Step
from .window import Window

TOLD = {"text": "I was told."}
STILL = 0.5  # seconds without a change on the screen
QUIET = 2.0  # seconds without a question, after which no further one is expected


class Scene:
    def __init__(self, host: Host, person: Person, model: Model) -> None:
        self.host, self.person, self.model = host, person, model
        self.agent = host.kind(person, model)
        self._number = itertools.count(1)

    def install(self) -> None:
        self.agent.install(self.host.name)

    def opened(self, *more: str) -> contextlib.AbstractContextManager[Window]:
        return self.host.opened(self.agent, *more)

    def resumed(self) -> contextlib.AbstractContextManager[Window]:
        """The last session again, on another terminal."""
        return self.opened(*self.host.again)

    def once(self, prompt: str) -> float:
        """One turn without a terminal; the seconds from the model's last word to the end of the program."""
        words = [self.host.program, *self.host.once, prompt]
        with self.agent.started(*words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as one:
            assert one.wait(2 * LIMIT) == 0
        last = self.asked(prompt)[-1]
        return time.monotonic() - last.at - last.answer.get("delay", 0.0)

    # -- what is said

    def script(self, *steps: Step) -> str:
        """What a prompt says, so that the model does this."""
        name = f"script-{next(self._number)}"
        self.model.scripts[name] = list(steps)
        return f"%%{name}%%"

    def says(self, window: Window, *steps: Step, told: Step = TOLD) -> str:
        """Types a prompt and waits until the agent has done these steps, and is idle; the prompt. `told` is
        the model's answer if the agent is told of something after that: of our task, and of a subagent that
        some run in the background."""
        prompt = self.script(*steps, told, told)
        window.type(prompt)
        window.until(lambda shown: self._done(prompt, len(steps)) and steps[-1]["text"] in shown)
        self.idle(window)
        return prompt

    def _done(self, prompt: str, count: int) -> bool:
        return len(self.asked(prompt)) >= count

    def idle(self, window: Window) -> None:
        """Waits until the agent has nothing to do: its screen stays as it is, and none of our hooks runs."""
        last, since = "", 0.0

        def still(shown: str) -> bool:
            nonlocal last, since
            works = re.search(self.host.works, shown) or self.model.thinking or _hooks(self.person.home)
            if shown != last or works:
                last, since = shown, time.monotonic()
            return time.monotonic() - since > STILL

        window.until(still)

    def run(self, gate: Gate, name: str = "slow") -> Step:
        """The model hands off a command that waits at the gate, through the agent's shell."""
        return self.host.runs(f"{MEANTIME} run -q -n {name} -c '{gate.wait}; echo forty-two'")

    def gate(self, name: str = "gate") -> Gate:
        return Gate(self.person.folder / name)

    # -- what came of it

    def asked(self, prompt: str, count: int = 0) -> list[Asked]:
        """The questions of the conversation with this prompt, once there are so many."""

        def found() -> list[Asked]:
            return [asked for asked in self.model.turns if _says(asked, prompt)]

        until(
            lambda: len(found()) >= count,
            f"the model is asked {count} times",
            lambda: [asked.answer for asked in self.model.asked],
        )
        return found()

    @property
    def seen(self) -> set[str]:
        """The ids of all notices that the model has seen."""
        return {id for asked in self.model.turns for id in IDS.findall(asked.text)}

    def greets(self, window: Window) -> str:
        """Talks until the agent offers our MCP tools to its model: servers take their time to start."""
        tool = self.host.start.get("namespace", self.host.start["tool"])
        prompt = self.says(window, {"text": "Hello."})

        def is_offered() -> bool:
            asked = self.asked(prompt)[-1]
            if tool in asked.tools or tool in asked.text:
                return True
            self.says(window, {"text": "Hello again."})
            return False

        until(is_offered, f"the model is offered {tool}", lambda: self.asked(prompt)[-1].tools)
        return prompt

    def told(self, prompt: str) -> list[str]:
        """The ids of the notices in the last question of this conversation, as often as they are there."""
        return IDS.findall(self.asked(prompt)[-1].text)

    def settled(self) -> None:
        """Waits until nothing runs, nothing is untold or in doubt, and the model is asked nothing more."""
        with contextlib.closing(self.person.daemon()) as daemon:
            look = partial(daemon.get, "/v1/threads")
            until(lambda: _settled(look()), "all is told", look)
        count, since = -1, 0.0

        def quiet() -> bool:
            nonlocal count, since
            if len(self.model.asked) != count or self.model.thinking:
                count, since = len(self.model.asked), time.monotonic()
            return time.monotonic() - since > QUIET

        until(quiet, "the model is asked nothing more", lambda: len(self.model.asked))

    def woken(self, prompt: str, count: int = 1) -> None:
        """Waits until all tasks have ended, and an agent that can be woken has heard of so many."""
        self.ended()
        if self.host.wakes:
            until(
                lambda: len(set(self.told(prompt))) >= count,
                f"the agent is told of {count}",
                lambda: self.told(prompt),
            )
            self.settled()

    @property
    def cost(self) -> int:
        """The questions that an idle agent asks only because it is told."""
        return 1 if self.host.wakes or self.host.told_at_the_end else 0

    def told_by_a_prompt(self, window: Window, answer: Step) -> None:
        """Types one, unless the agent is woken: the model gives this answer to what it is told."""
        if not self.host.wakes:
            before = [{"text": "One moment."}] if self.host.told_at_the_end else []
            window.type(self.script(*before, answer))

    @property
    def notices(self) -> list[str]:
        """The ids of the notices that all tasks together have: one each."""
        return [f"{task}.1" for task in self.tasks]

    @property
    def threads(self) -> list[dict[str, Any]]:
        """All conversations, with what each has to be told."""
        with contextlib.closing(self.person.daemon()) as daemon:
            return daemon.get("/v1/threads")["threads"]

    @property
    def tasks(self) -> list[str]:
        """Ids of all tasks, the oldest first."""
        return [task["id"] for task in reversed(self.person.json("ps", "-a")["tasks"])]

    def ended(self) -> None:
        """Waits for the end of all tasks."""
        for task in self.tasks:
            assert self.person("wait", "-q", task).code == 0


def _hooks(home: Path) -> bool:
    """Whether a hook of ours is at work; one that waits for the end of something is not. Codex waits for the
    hook that leaves such a process behind, in a session of its own."""
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (path / "cmdline").read_bytes().replace(b"\0", b" ")
            ours = re.search(rb"[ -]hook (?!wait)", words) or _leaves_a_wait(path, words)
            if ours and str(home).encode() in (path / "environ").read_bytes():
                return True
    return False


def _leaves_a_wait(path: Path, words: bytes) -> bool:
    return b"hook wait --host codex" in words and (path / "stat").read_text().split()[5] != path.name


def _says(asked: Asked, prompt: str) -> bool:
    return any(part.role == "user" and prompt in part.text for part in asked.said)


def _settled(found: Any) -> bool:
    return not any(one["active"] or one["unread"] or one["leased"] for one in found["threads"])
