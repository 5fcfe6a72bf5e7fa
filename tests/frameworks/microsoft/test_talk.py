"""An agent of agent-framework passes every check of the public suite."""

from __future__ import annotations

from pathlib import Path

import pytest

from meantime.testing.talk import TALK_CHECKS, Check, TalkFixture

from .scripted_client import AgentFrameworkSite

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore:.*experimental.*"),
]


@pytest.mark.parametrize("check", TALK_CHECKS, ids=lambda check: check.__name__)
async def test_an_agent_of_agent_framework_that_talks(check: Check, tmp_path: Path):
    await check(TalkFixture(AgentFrameworkSite(tmp_path)))
