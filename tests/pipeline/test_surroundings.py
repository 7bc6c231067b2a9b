"""Where a request's client works, remembered by the messages that tell it."""

from __future__ import annotations

from proxy.facts import Place
from proxy.pipeline.surroundings import Surroundings
from tests.builders import read, says, user

SYSTEM = {"role": "system", "content": "Working directory: /srv/shop\nCurrent branch: main"}
BLOCK = "<environment_context>\n<cwd>/srv/app</cwd>\n</environment_context>"


def test_the_place_is_told_by_system_text_or_by_an_environment_block_before_the_first_answer() -> None:
    places = Surroundings()
    assert places.of(read(SYSTEM, user("Hi."))) == Place("/srv/shop", "main")
    assert places.of(read(user(BLOCK), user("Hi."))) == Place("/srv/app")
    assert places.of(read(user("Hi."), says("Yes?"), user(BLOCK))) == Place()
    assert places.of(read(user(BLOCK), user("Hi."), says("Yes?"))) == Place("/srv/app")
