"""The settings of an agent are looked at where they are given: in the configuration, at Meantime.open, at
PythonAgent. What is said names the setting and what it may be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from meantime import Meantime
from meantime.app.agent_hosts import SESSION_HOSTS
from meantime.app.config_sources import BadConfig, load
from meantime.daemon.home import Home
from meantime.integrations.python_agent import PythonAgent
from meantime.kernel.budgets import Budget
from meantime.kernel.errors import InvalidInput
from meantime.ports.agent_settings import BUDGET, KINDS, RUNNERS, settled
from meantime.ports.session import AgentSettings

pytestmark = pytest.mark.anyio

NUMBER = "a whole number from 0 up, or -1 for no limit"
WRONG = [
    ({"otherwise": "maybe"}, 'must be "ask" or "allow" or "deny", not \'maybe\'.'),
    ({"on_stall": "explode"}, 'must be "warn" or "stop", not \'explode\'.'),
    ({"depth": -5}, "must be a whole number from 0 up, or -1 for any, not -5."),
    ({"depth": "x"}, "must be a whole number from 0 up, or -1 for any, not 'x'."),
    ({"depth": True}, "must be a whole number from 0 up, or -1 for any, not true."),
    ({"budget": {"turns": -2}}, f"budget.turns of {{who}} must be {NUMBER}, not -2."),
    ({"tree": {"cost": "x"}}, "tree.cost of {who} must be a number from 0 up, or -1 for no limit, not 'x'."),
    ({"budget": 3}, "must be a table of turns, tool_calls, tokens, cost, seconds, not 3."),
    ({"timeout": -3}, "must be a number of seconds above 0, or -1 for none, not -3."),
    ({"timeout": "soon"}, "must be a number of seconds above 0, or -1 for none, not 'soon'."),
    ({"timeout": float("nan")}, "must be a number of seconds above 0, or -1 for none, not nan."),
    ({"answer_within": -2}, "must be a number of seconds from 0 up, or -1 for ever, not -2."),
    ({"stall": -2}, "must be a number of seconds from 0 up, or -1 for never, not -2."),
    ({"repeats": 1.5}, "must be a whole number from 0 up, or -1 for never, not 1.5."),
    ({"url": "nonsense"}, "must be a URL that begins with http:// or https://, not 'nonsense'."),
    ({"url": "http://:x"}, "must be a URL that begins with http:// or https://, not 'http://:x'."),
    ({"tools": 5}, "must be a list of names; an empty one is none, not 5."),
    ({"tools": "look"}, "must be a list of names; an empty one is none, not 'look'."),
    ({"allow": "look"}, "must be a list of texts, not 'look'."),
    ({"env": {"A": 1}}, "must be a table of names, each with a text, not {'A': 1}."),
    ({"options": []}, "must be a table, not []."),
    ({"model": 5}, "must be a text, not 5."),
]


async def look(conversation: Any) -> str:
    return "seen"


def expected(given: dict[str, Any], says: str, who: str) -> str:
    return says.format(who=who) if "{who}" in says else f"{next(iter(given))} of {who} {says}"


@pytest.mark.parametrize(("given", "says"), WRONG)
def test_a_wrong_setting_of_a_python_agent(given: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        PythonAgent(look, **given)
    assert caught.value.message == expected(given, says, "an agent")


@pytest.mark.parametrize(("given", "says"), WRONG)
async def test_a_wrong_setting_at_open(given: dict[str, Any], says: str) -> None:
    one = AgentSettings(runner="acp", command=("goose", "acp"), **given)
    with pytest.raises(InvalidInput) as caught:
        async with Meantime.open(":memory:", agents={"explore": one}):
            pass
    assert caught.value.message == expected(given, says, "the agent explore")


@pytest.mark.parametrize(
    ("given", "says", "hint"),
    [
        ({}, "runner of an agent is missing.", '"acp", "opencode", "cli" or "python"'),
        ({"runner": "sdk"}, 'must be "acp", "opencode", "cli" or "python", not \'sdk\'', ""),
        ({"runner": "acp"}, 'command of an agent is missing: an agent of runner "acp" is a program', "goose"),
        ({"runner": "cli"}, 'command of an agent is missing: an agent of runner "cli" is a program', "codex"),
        ({"runner": "python"}, "agent of an agent is missing.", 'agent = "module:object"'),
        ({"runner": "python", "agent": "look"}, "must name an object, not 'look'.", "module:object"),
        ({"runner": "acp", "agnet": 1}, "agnet of an agent is not a setting.", "Did you mean agent?"),
        (
            {"runner": "acp", "zzz": 1},
            "zzz of an agent is not a setting.",
            "There are: runner, description, ",
        ),
        (
            {"runner": "acp", "budget": {"turn": 3}},
            "budget.turn of an agent is not a setting.",
            "Did you mean turns? There are: turns, tool_calls, tokens, cost, seconds.",
        ),
    ],
)
def test_what_an_agent_needs_and_what_nobody_knows(given: dict[str, Any], says: str, hint: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        settled(given)
    assert says in caught.value.message
    assert hint in caught.value.hint


def test_what_fits_is_kept_as_it_is_meant() -> None:
    """Lists and tables of Python and of TOML become what AgentSettings says."""
    given = {"tools": ["look"], "budget": {"turns": 3, "tokens": -1}, "tree": Budget(cost=0.5), "timeout": -1}
    found = PythonAgent(look, **given).settings
    assert found.tools == ("look",)
    assert (found.budget, found.tree) == (Budget(turns=3), Budget(cost=0.5))
    assert settled({"runner": "opencode"}) == AgentSettings(runner="opencode")
    assert settled({"runner": "opencode", "url": "http://[::1]:4096"}).url == "http://[::1]:4096"


def test_every_setting_has_a_kind_and_every_runner_a_host() -> None:
    assert tuple(KINDS) == AgentSettings.__struct_fields__
    assert tuple(BUDGET) == Budget.__struct_fields__
    assert set(RUNNERS) == set(SESSION_HOSTS)


def test_a_python_agent_has_its_own_runner() -> None:
    with pytest.raises(InvalidInput, match="Leave runner out"):
        PythonAgent(look, runner="acp")


# -- in the configuration


def refused(folder: Path, text: str, environ: dict[str, str] | None = None) -> BadConfig:
    path = folder / "config.toml"
    path.write_text(text)
    with pytest.raises(BadConfig) as caught:
        load(Home(folder / "home", path), environ or {})
    return caught.value


@pytest.mark.parametrize(
    ("text", "key", "line", "says", "hint"),
    [
        ('runner = "acp"\nagnet = "x"', "agnet", 3, "is not a setting.", "Did you mean agent?"),
        ('runner = "acp"\ncommand = ["x"]\ntimeout = "soon"', "timeout", 4, "must be a number of", ""),
        (
            'runner = "acp"\nbudget = { turn = 3 }',
            "budget.turn",
            3,
            "is not a setting.",
            "There are: turns, ",
        ),
        ('runner = "acp"\n[agents.explore.budget]\nturn = 3', "budget.turn", 4, "is not a setting.", "turns"),
        ('runner = "acp"', "command", 1, "is missing:", 'Write command = ["goose", "acp"].'),
        ('runner = "sdk"', "runner", 2, 'must be "acp", "opencode", "cli" or "python", not', ""),
        ('description = "x"', "runner", 1, "is missing.", 'It must be "acp"'),
    ],
)
def test_an_error_names_the_key_the_file_and_the_line(
    tmp_path: Path, text: str, key: str, line: int, says: str, hint: str
) -> None:
    no = refused(tmp_path, f"[agents.explore]\n{text}\n")
    assert no.message.startswith(f"agents.explore.{key} in {tmp_path / 'config.toml'}, line {line}, {says}")
    assert hint in no.hint


def test_the_long_spelling_and_the_environment_are_named_too(tmp_path: Path) -> None:
    no = refused(tmp_path, '[agents.named.explore]\nrunner = "acp"\nagnet = "x"\n')
    assert f"agents.explore.agnet in {tmp_path / 'config.toml'}, line 3," in no.message
    no = refused(tmp_path, "", {"MEANTIME_AGENTS_NAMED": '{ explore = { runner = "acp", agnet = 1 } }'})
    assert no.message == "agents.explore.agnet in the environment (MEANTIME_AGENTS_NAMED) is not a setting."


def test_an_agent_that_is_no_table(tmp_path: Path) -> None:
    no = refused(tmp_path, '[agents]\nexplore = "x"\n')
    place = f"{tmp_path / 'config.toml'}, line 2,"
    assert no.message == f"agents.explore in {place} must be a table of settings, not 'x'."
    assert no.hint.startswith("Write [agents.explore], and below it runner =")
    assert refused(tmp_path, "[agents]\ntask_max_asynk = 3\n").hint == "Did you mean agents.task_max_async?"
    no = refused(tmp_path, '[agents]\nnamed = "x"\n[agents.explore]\nrunner = "acp"\n')
    assert "agents.named" in no.message
    assert "must be a table of names" in no.message
    no = refused(tmp_path, "[agents.task_max_async]\nrunner = 1\n")
    assert "agents.task_max_async in" in no.message


def test_a_name_that_is_none(tmp_path: Path) -> None:
    no = refused(tmp_path, '[agents."an agent"]\nrunner = "opencode"\n')
    place = f"{tmp_path / 'config.toml'}, line 1,"
    assert no.message == f"agents.an agent in {place} has a name that an agent cannot have."
    assert no.hint == "Use letters, digits, . _ and -, at most 64."
