"""An agent that is a Python object, with its settings; and how one is found by its name."""

from __future__ import annotations

import importlib
import inspect
from typing import Any, NamedTuple

from meantime.execution.containment import contained, words
from meantime.kernel.budgets import NO_LIMIT
from meantime.kernel.errors import InvalidInput
from meantime.ports.agent_settings import AgentSettings, settled


class PythonAgent:
    """`agents={"explore": PythonAgent(agent, tools=("read",), budget=Budget(turns=20))}`

    deps: what a framework's agent is run with (Pydantic AI's deps, OpenAI's context); a function is called
        with the Brief of each run.
    settings: the fields of AgentSettings.
    """

    def __init__(self, agent: Any, *, deps: Any = None, **settings: Any) -> None:
        if not is_agent(agent):
            raise InvalidInput(
                f"{type(agent).__name__} is not an agent.",
                hint=f"Give {KINDS}.",
            )
        self.agent = agent
        self.deps = deps
        if "runner" in settings:
            raise InvalidInput("A PythonAgent has no runner but its own.", hint="Leave runner out.")
        self.settings = settled({"runner": "python", **settings}, there=True)


class Framework(NamedTuple):
    """A framework whose agents can be tasks."""

    name: str  # for people
    package: str  # the package that its agents' class comes from
    agent: str  # the class, or the one it derives from
    extra: str  # of ours, which installs it
    turns: str  # how its agents take turns: module and class
    suffix: str  # of the file that keeps a session
    fixed: tuple[str, ...] = ()  # settings that its agents have from the beginning, and cannot be given
    has_cost: bool = False  # it says what a request costs


FRAMEWORKS = (
    Framework(
        "Pydantic AI",
        "pydantic_ai",
        "AbstractAgent",
        "pydantic-ai",
        "meantime.integrations.pydantic_ai.pydantic_turns:PydanticTurns",
        ".messages",
        has_cost=True,
    ),
    Framework(
        "the OpenAI Agents SDK",
        "agents",
        "Agent",
        "openai-agents",
        "meantime.integrations.openai_agents.openai_turns:OpenAITurns",
        ".items",
    ),
    Framework(
        "LangChain",
        "langgraph",
        "Pregel",
        "langchain",
        "meantime.integrations.langchain.langchain_turns:LangChainTurns",
        ".checkpoints",
        fixed=("model", "tools"),
    ),
    Framework(
        "Google's ADK",
        "google",
        "BaseAgent",
        "google-adk",
        "meantime.integrations.google_adk.adk_turns:AdkTurns",
        ".events",
    ),
    Framework(
        "Microsoft's agent-framework",
        "agent_framework",
        "RawAgent",
        "agent-framework",
        "meantime.integrations.agent_framework.agent_framework_turns:AgentFrameworkTurns",
        ".history",
    ),
    Framework(
        "the Claude Agent SDK (its ClaudeAgentOptions)",
        "claude_agent_sdk",
        "ClaudeAgentOptions",
        "claude-agent-sdk",
        "meantime.integrations.claude_agent_sdk.claude_turns:ClaudeTurns",
        ".claude",
        has_cost=True,
    ),
)


KINDS = f"an agent of {', '.join(one.name for one in FRAMEWORKS)}, or an async function"


def is_agent(given: object) -> bool:
    return framework_of(given) is not None or is_loop(given)


def is_loop(given: object) -> bool:
    call = given if inspect.isroutine(given) else getattr(type(given), "__call__", None)  # noqa: B004  its kind is asked
    return inspect.iscoroutinefunction(call) or inspect.isasyncgenfunction(call)


def framework_of(given: object) -> Framework | None:
    """Without loading it: who has one of its agents has loaded it."""
    kinds = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(given).__mro__}
    return next((one for one in FRAMEWORKS if (one.package, one.agent) in kinds), None)


def check_fixed(name: str, agent: object, settings: AgentSettings) -> None:
    framework = framework_of(agent)
    if framework is None:
        return
    if settings.budget.cost != NO_LIMIT and not framework.has_cost:
        raise InvalidInput(
            f"budget.cost of the agent {name} would never hold: {framework.name} does not report a cost.",
            hint="Give it tokens or turns.",
        )
    for setting in framework.fixed:
        if getattr(settings, setting) not in ("", None):
            raise InvalidInput(
                f"{setting}= cannot be given for the agent {name}: it is fixed when the agent is made.",
                hint=f"Leave {setting} out, and make the agent with it.",
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
        missing = (problem.name or "").partition(".")[0]
        extra = next((one.extra for one in FRAMEWORKS if one.package == missing), "")
        hint = "Is it installed where Meantime runs, or in its PYTHONPATH?"
        if extra:
            hint = f"pip install 'meantime[{extra}]'"
        raise InvalidInput(f"The agent {name} cannot be imported: {problem}.", hint=hint) from problem
    except AttributeError as problem:
        raise InvalidInput(f"The agent {name} is not in {module}: {problem}.") from problem
    except Exception as problem:  # somebody's module, which does what it likes when it is imported
        said = words(problem)
        raise InvalidInput(f"The agent {name} cannot be imported: {module} raises {said}.") from problem
    if not is_agent(thing):
        raise InvalidInput(
            f"{path} of the agent {name} is {type(thing).__name__}.",
            hint=f"It has to be {KINDS}.",
        )
    return thing
