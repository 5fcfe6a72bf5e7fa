"""An agent that is a Python object, with its settings; and how one is found by its name."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from meantime.execution.containment import contained, words
from meantime.kernel.errors import InvalidInput
from meantime.ports.agent_settings import settled


class PythonAgent:
    """`agents={"explore": PythonAgent(agent, tools=("read",), budget=Budget(turns=20))}`

    deps: what a Pydantic AI agent is run with; a function is called with the Brief of each run.
    settings: the fields of AgentSettings.
    """

    def __init__(self, agent: Any, *, deps: Any = None, **settings: Any) -> None:
        if not is_agent(agent):
            raise InvalidInput(
                f"{type(agent).__name__} is not an agent.",
                hint="Give a Pydantic AI agent, or an async function.",
            )
        self.agent = agent
        self.deps = deps
        if "runner" in settings:
            raise InvalidInput("A PythonAgent has no runner but its own.", hint="Leave runner out.")
        self.settings = settled({"runner": "python", **settings}, there=True)


def is_agent(given: object) -> bool:
    return is_pydantic(given) or is_loop(given)


def is_loop(given: object) -> bool:
    call = given if inspect.isroutine(given) else getattr(type(given), "__call__", None)  # noqa: B004  its kind is asked
    return inspect.iscoroutinefunction(call) or inspect.isasyncgenfunction(call)


def is_pydantic(given: object) -> bool:
    """Without loading it: who has one has loaded it."""
    return hasattr(given, "iter") and any(
        kind.__module__.partition(".")[0] == "pydantic_ai" for kind in type(given).__mro__
    )


def found(name: str, path: str) -> Any:
    """The object at "module:object". Raises InvalidInput, saying what is wrong."""
    module, _, inside = path.partition(":")
    if not module or not inside:
        raise InvalidInput(
            f"agent={path!r} of the agent {name} names no object.", hint='Write agent = "module:object".'
        )
    try:
        with contained():
            thing: Any = importlib.import_module(module)
            for part in inside.split("."):
                thing = getattr(thing, part)
    except ModuleNotFoundError as problem:
        extra = (
            "pip install 'meantime[pydantic-ai]'" if (problem.name or "").startswith("pydantic_ai") else ""
        )
        hint = extra or "Is it installed where Meantime runs, or in its PYTHONPATH?"
        raise InvalidInput(f"The agent {name} cannot be imported: {problem}.", hint=hint) from problem
    except AttributeError as problem:
        raise InvalidInput(f"The agent {name} is not in {module}: {problem}.") from problem
    except Exception as problem:  # somebody's module, which does what it likes when it is imported
        said = words(problem)
        raise InvalidInput(f"The agent {name} cannot be imported: {module} raises {said}.") from problem
    if not is_agent(thing):
        raise InvalidInput(
            f"{path} of the agent {name} is {type(thing).__name__}.",
            hint="It has to be a Pydantic AI agent, or an async function.",
        )
    return thing
