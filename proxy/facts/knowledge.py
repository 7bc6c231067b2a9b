"""Facts as entries in the Keep the Why format (0.9.0), and their place in a topic file or an index.

An entry is ours by its marker, which also holds a hash of what was written: an entry that a person has edited since is
never overwritten.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any, Literal

import msgspec

from proxy.facts.markdown import visible
from proxy.secret_shapes import shapes_in

SCHEMA = (0, 9)
TYPES = {
    "correction": "constraint",
    "constraint": "constraint",
    "fact": "constraint",
    "preference": "decision",
    "commitment": "decision",
    "decision": "decision",
}
_MOST = 2000  # characters of a statement; more is a story
_CHANCE = 60  # characters from which on equal words aren't chance
_TITLE = 72
_WORDS = ("title", "text", "reason", "consequence", "revisit")
_FENCE = re.compile(r"^\s{0,3}(`{3,}|~{3,})")
_STRUCTURE = re.compile(r"^(\s{0,3})(#|>|\*\*|---|===|`{3}|~{3})")
README = """\
# Why it is so

Decisions and constraints of this project with their reasons, one file a topic, in the format Keep the Why
(https://github.com/oliver-zehentleitner/keep-the-why). `Evidence` and `Verification` say how sure an entry is.

It is knowledge, not instructions. [index.md](index.md) says what lies where.
"""

Outcome = Literal["added", "updated", "unchanged", "edited by hand", "title taken"]
Fact = Mapping[str, Any]


class Entry(msgspec.Struct, frozen=True):
    """One entry: its heading, and what stands below it."""

    id: str
    title: str
    body: str

    @property
    def mark(self) -> str:
        """The line by which the entry is found again."""
        return f"<!-- goalkeeper: {self.id} {hashed(self.title, self.body)} -->"

    @property
    def text(self) -> str:
        """The whole entry."""
        return f"## {self.title}\n{self.mark}\n\n{self.body}\n"


def objection(fact: Fact, *, written: bool) -> str:
    """Gives why a fact can't become knowledge of the project, "" when it can. `written`: into files of a repository."""
    if fact["kind"] not in TYPES:
        return "a goal is of its session: only what holds on can be promoted"
    if fact["scope"] == "once":
        return "it was for once; `facts edit --scope project` when it holds on"
    texts = [*(fact.get(name) or "" for name in _WORDS), *fact.get("rejected", ())]
    if any("[secret:" in text or shapes_in(text) for text in texts):
        return "it holds a secret value: give it other words with --text"
    if len(fact["text"]) > _MOST:
        return f"{len(fact['text'])} characters are no statement (at most {_MOST}): give it shorter words with --text"
    if written and _verbatim(fact["text"], fact["quote"]):
        return "these are the person's own words: no transcript goes into a repository; say what holds with --text"
    return ""


def hashed(*texts: str) -> str:
    """Gives the 8 hex digits by which an entry that was edited is known."""
    return blake2b("\n".join(text.strip() for text in texts).encode("utf-8", "replace"), digest_size=4).hexdigest()


def entry_of(fact: Fact, *, source: bool = True, receipt: str = "") -> Entry:
    """Gives a fact as an entry; nobody is named, and no reason is made up."""
    header = [
        f"**Type:** {TYPES[fact['kind']]}",
        f"**Status:** {'active' if fact['status'] == 'active' else 'superseded'}",
        f"**Evidence:** {'confirmed' if fact['evidence'] == 'user' else 'inferred'}",
    ]
    if source:
        told = [f"goalkeeper fact {fact['id']}", f"receipt {receipt}" if receipt else "", fact["source"].get("url", "")]
        header.append(f"**Source:** {', '.join(_line(one) for one in told if one)}")
    header.append("**Verification:** uncorroborated")
    if fact.get("revisit"):
        header.append(f"**Revisit when:** {_line(fact['revisit'])}")
    parts = ["\n".join(header), *_ended(fact), _prose(fact["text"])]
    parts += [f"**Reason:** {_line(fact['reason'])}"] if fact.get("reason") else []
    parts += [f"**Rejected alternative:** {_line(one)}" for one in fact.get("rejected", ())]
    parts += [f"**Consequence:** {_line(fact['consequence'])}"] if fact.get("consequence") else []
    return Entry(fact["id"], title_of(fact), "\n\n".join(parts))


def title_of(fact: Fact) -> str:
    """Gives the heading: the one that a person gave, else the beginning of the statement."""
    title = _line(fact.get("title") or fact["text"]).lstrip("# ")
    return title if len(title) <= _TITLE else title[: _TITLE - 1].rsplit(" ", 1)[0] + "…"


def placed(topic: str, heading: str, entry: Entry) -> tuple[str, Outcome]:
    """Gives the topic file with the entry in its place, and what that meant."""
    if not topic.strip():
        return f"# {heading}\n\n{entry.text}", "added"
    for start, end, section in _sections(topic):
        mark = re.search(rf"^<!-- goalkeeper: {entry.id} ([0-9a-f]{{8}}) -->\n", section, re.MULTILINE)
        if mark is None:
            if section.partition("\n")[0].strip() == f"## {entry.title}":
                return topic, "title taken"
            continue
        title, _, rest = section.partition("\n")
        now = hashed(title.removeprefix("## "), rest.replace(mark[0], "", 1))
        if mark[1] == hashed(entry.title, entry.body):
            return topic, "unchanged"  # what we would write now was written before
        if now != mark[1]:
            return topic, "edited by hand"
        behind = topic[end:]
        return topic[:start] + entry.text + ("\n" + behind if behind else ""), "updated"
    return topic.rstrip("\n") + "\n\n" + entry.text, "added"


def holds(text: str, identity: str) -> bool:
    """Whether a file has an entry of this fact."""
    return f"<!-- goalkeeper: {identity} " in text


def indexed(index: str, name: str, heading: str) -> str:
    """Gives the index with a line for a topic file."""
    if f"]({name})" in index:
        return index
    line = f"- [{name}]({name}): {heading.lower()} that were promoted from sessions\n"
    return (index.rstrip("\n") + "\n" if index.strip() else "# Index\n\n") + line


def _ended(fact: Fact) -> list[str]:
    if fact["status"] == "active":
        return []
    month = str(fact["history"][-1]["at"])[:7] if fact.get("history") else ""
    by = f" by fact {fact['superseded_by']}" if fact["superseded_by"] else ""
    return [f"> {str(fact['status']).capitalize()} in {month}{by}."]


def _verbatim(text: str, quote: str) -> bool:
    said, told = _plain(quote), _plain(text)
    if not said:
        return False
    shorter, longer = sorted((said, told), key=len)
    return said == told or (len(shorter) >= _CHANCE and shorter in longer)


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _line(text: str) -> str:
    return " ".join(visible(text).split()).replace("<!--", "&lt;!--").replace("-->", "--&gt;")


def _prose(text: str) -> str:
    """Gives text as paragraphs that can't be taken for a heading, a field or a mark of ours."""
    safe = visible(text).strip().replace("<!--", "&lt;!--").replace("-->", "--&gt;")
    return "\n".join(_STRUCTURE.sub(r"\1\\\2", row.rstrip()) for row in safe.split("\n"))


def _sections(text: str) -> Iterator[tuple[int, int, str]]:
    """Gives each entry of a topic file: where it begins and ends, and its text; fences hide headings."""
    starts, at, fence = [], 0, ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence):
            fence = ""
        elif line.startswith("## ") and not fence:
            starts.append(at)
        at += len(line) + 1
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        yield start, end, text[start:end]
