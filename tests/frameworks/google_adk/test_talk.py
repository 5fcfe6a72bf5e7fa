"""An agent of the ADK passes every check of the public suite."""

from __future__ import annotations

from pathlib import Path

import pytest
from say_table import check_row

from meantime.testing.talk import TALK_CHECKS, Check, TalkFixture

from .adk_site import AdkSite

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("check", TALK_CHECKS, ids=lambda check: check.__name__)
async def test_an_agent_of_googles_adk(check: Check, tmp_path: Path):
    await check(TalkFixture(AdkSite(tmp_path)))


async def test_the_guide_says_what_comes_out_of_say(tmp_path: Path):
    await check_row("Google's ADK", AdkSite(tmp_path))
