"""A Claude agent passes every check of the public suite."""

from __future__ import annotations

from pathlib import Path

import pytest
from say_table import check_row

from meantime.testing.talk import TALK_CHECKS, Check, TalkFixture

from .claude_site import ClaudeSite
from .scripted_api import ScriptedAPI

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("check", TALK_CHECKS, ids=lambda check: check.__name__)
async def test_a_claude_agent_that_talks(check: Check, tmp_path: Path, api: ScriptedAPI):
    await check(TalkFixture(ClaudeSite(tmp_path, api)))


async def test_the_guide_says_what_comes_out_of_say(tmp_path: Path, api: ScriptedAPI):
    await check_row("Claude Agent SDK", ClaudeSite(tmp_path, api))
