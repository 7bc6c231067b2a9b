"""Transcripts that a client wrote into one user text, to have them summarised."""

from __future__ import annotations

import re
from collections.abc import Sequence

from proxy.lineage.branch import Branch
from proxy.lineage.keys import fingerprint, text_key
from proxy.lineage.search import Search, one, results_of
from proxy.transcript import Message

_LABEL = re.compile(r"^\[(User|Assistant|Assistant tool calls?|Tool result|Assistant thinking)\]: ?", re.MULTILINE)
_HEADING = re.compile(r"^# (USER|ASSISTANT)[ \t]*$", re.MULTILINE)
_TAG = "<conversation>"
_CALL = b"call"
_EXCHANGE = 2  # a person's words and the answer to them
_QUOTES = re.compile(r'^"(.*)"$', re.DOTALL)


def flat_text(message: Message) -> str:
    """Gives the text of a message that holds a flattened transcript."""
    texts = [part.text for part in message.parts if part.kind == "text"]
    return next((text for text in texts if _TAG in text), "\n".join(texts))


def flat_parts(text: str) -> list[tuple[str, str]]:
    """Gives label and text of each entry of a flattened transcript."""
    start = text.find(_TAG)
    if start < 0:
        headed = _HEADING.split(text)
        return [(label.capitalize(), words) for label, words in zip(headed[1::2], headed[2::2], strict=False)]
    end = text.rfind("</conversation>")
    inner = text[start + len(_TAG) : end if end > start else len(text)]
    pieces = _LABEL.split(inner)
    return list(zip(pieces[1::2], pieces[2::2], strict=False))


def flat_branches(search: Search, parts: Sequence[tuple[str, str]], *, keeps_tail: bool) -> list[Branch]:
    """Gives the branches whose path this flattened transcript tells, in whole or in part."""
    told = _told(parts)
    known = {branch for key in told if key != _CALL for branch in search.index.texts.get(key) if search.fits(branch)}
    candidates = sorted(known | set(search.by_summary()), key=lambda branch: branch.used)
    covering = [branch for branch in candidates if told and _covers(_path(branch), told)]
    branches = covering or _since(search.by_summary(), candidates, parts)
    if branches and not one(branches):
        branches = _agreeing(branches, parts)
    if branches and not one(branches) and not keeps_tail:
        branches = [branch for branch in branches if _path(branch) == told] or branches
    return branches


def _since(branches: list[Branch], candidates: Sequence[Branch], parts: Sequence[tuple[str, str]]) -> list[Branch]:
    """Gives the branches that know the newest exchange: of a summary's session, or where all that was said was heard.

    A client may hand out once more what it had summarised before, and a summary that went on since.
    """
    told, said = _told(parts), set(_told([part for part in parts if part[0] == "User"]))
    if len(told) < _EXCHANGE:
        return branches
    sessions = {branch.session for branch in branches}
    knowing = [branch for branch in candidates if _covers(_path(branch), told[-_EXCHANGE:])]
    if sessions:
        return [branch for branch in knowing if branch.session in sessions] or branches
    return [branch for branch in knowing if said and said <= {turn.key for turn in branch.visible()}]


def _told(parts: Sequence[tuple[str, str]]) -> list[bytes]:
    told = []
    for label, text in parts:
        if label.startswith("Assistant tool"):
            told.append(_CALL)
        elif label in ("User", "Assistant") and text.strip():
            bare = _QUOTES.sub(r"\1", text.strip()) if label == "User" else text
            told.append(text_key("u" if label == "User" else "a", bare))
    return told


def _path(branch: Branch) -> list[bytes]:
    return [_CALL if key.kind == "c" else key.hash for key in branch.keys]


def _covers(path: Sequence[bytes], told: Sequence[bytes]) -> bool:
    if list(path[: len(told)]) == list(told):
        return True
    return len(told) > 1 and any(
        list(path[start : start + len(told)]) == list(told) for start in range(1, len(path) - len(told) + 1)
    )


def _agreeing(branches: list[Branch], parts: Sequence[tuple[str, str]]) -> list[Branch]:
    told = {fingerprint(text) for label, text in parts if label == "Tool result" and len(text) > 60}
    known = {branch: {mark for marks in results_of(branch.path).values() for mark in marks} for branch in branches}
    for mark in told:
        branches = [branch for branch in branches if mark in known[branch]] or branches
    return branches
