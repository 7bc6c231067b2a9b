"""Facts as a delimited section of an AGENTS.md; what stands outside it is never touched."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from proxy.errors import BadRequest
from proxy.facts.knowledge import Outcome, hashed
from proxy.facts.markdown import visible

BEGIN, END = "<!-- goalkeeper:facts -->", "<!-- /goalkeeper:facts -->"
_HEAD = """\
## What this project has settled

Knowledge that people promoted from sessions; `goalkeeper why ID` says where each comes from."""
_ITEM = re.compile(r"^- (.*) <!-- goalkeeper: (\w{26}) ([0-9a-f]{8}) -->$")
_CONFIG = re.compile(r"<!-- keep-the-why:config -->(.*?)<!-- /keep-the-why:config -->", re.DOTALL)


def settings_in(text: str) -> dict[str, str]:
    """Gives a project's settings for Keep the Why from its AGENTS.md, {} where there are none."""
    found = _CONFIG.search(text)
    rows = (row.strip(" \t-*`").partition(":") for row in found[1].split("\n")) if found else ()
    return {key.strip(" *`").lower().replace(" ", "-"): value.strip(" *`") for key, colon, value in rows if colon}


def with_fact(text: str, fact: Mapping[str, Any]) -> tuple[str, Outcome]:
    """Gives the file with a fact in its section; one that holds no longer leaves it. Raises BadRequest."""
    before, section, behind = _parts(text)
    lines = [line for line in section.split("\n") if line.startswith("- ")]
    said = " ".join(visible(fact["text"]).split()).replace("<!--", "&lt;!--").replace("-->", "--&gt;")
    words = f"{said} ({fact['kind']}, since {fact['observed_at'][:10]})"
    own = next((place for place, line in enumerate(lines) if (one := _ITEM.match(line)) and one[2] == fact["id"]), None)
    active = fact["status"] == "active"
    item = f"- {words} <!-- goalkeeper: {fact['id']} {hashed(words)} -->"
    if own is None:
        if not active:
            return text, "unchanged"
        return _whole(before, [*lines, item], behind), "added"
    stands = _ITEM.match(lines[own])
    if active and stands and stands[3] == hashed(words):
        return text, "unchanged"
    if stands and stands[3] != hashed(stands[1]):
        return text, "edited by hand"
    lines[own : own + 1] = [item] if active else []
    return _whole(before, lines, behind), "updated"


def _parts(text: str) -> tuple[str, str, str]:
    if text.count(BEGIN) > 1 or text.count(BEGIN) != text.count(END) or text.find(END) < text.find(BEGIN):
        raise BadRequest(
            f"the section is broken: {BEGIN} and {END} must stand there once, in this order, or not at all"
        )
    if BEGIN not in text:
        return (text.rstrip("\n") + "\n\n" if text.strip() else ""), "", ""
    before, _, rest = text.partition(BEGIN)
    section, _, behind = rest.partition(END)
    return before, section, behind


def _whole(before: str, lines: list[str], behind: str) -> str:
    body = f"{_HEAD}\n\n" + "\n".join(lines) if lines else _HEAD
    return f"{before}{BEGIN}\n{body}\n{END}{behind or chr(10)}"
