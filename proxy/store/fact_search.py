"""Full-text search in facts: all words, by their beginnings, best first; what is found and shown is masked."""

from __future__ import annotations

import json
import re
import sqlite3
from typing import Any

from proxy.errors import BadRequest
from proxy.facts import Fact

_SPACELESS = re.compile(r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff])")
_PHRASE = re.compile(r'"([^"]*)"|(\S+)')
_WORD = re.compile(r"\w", re.UNICODE)


def indexed(fact: Fact) -> str:
    """Gives the words by which a fact is found."""
    texts = (fact.text, "" if fact.quote == fact.text else fact.quote, fact.title, fact.reason, *fact.rejected)
    return spaced("\n".join(filter(None, (*texts, fact.consequence, fact.asked))))


def spaced(text: str) -> str:
    """Gives text with each character of a script without blanks as a word of its own."""
    return _SPACELESS.sub(r" \1 ", text)


def expression(query: str) -> str:
    """Gives what FTS5 looks for: each word by its beginning, what stands in quotes as it is. Raises BadRequest."""
    wanted = []
    for phrase, word in _PHRASE.findall(query):
        text = spaced(phrase or word).replace('"', " ").replace("\0", " ").strip()
        if not _WORD.search(text):
            continue
        wanted.append(f'"{text}"' if phrase else f'"{text}" *')
    if not wanted:
        raise BadRequest(f"{query!r} holds no word to look for")
    return " AND ".join(wanted)


def search(db: sqlite3.Connection, query: str, *, project: str = "", limit: int = 50) -> list[dict[str, Any]]:
    """Gives the facts that hold all words of the query, the best first. Raises BadRequest for a query without words."""
    rows = db.execute(
        "SELECT f.record FROM facts_text t JOIN facts f ON f.id = t.fact"
        " WHERE facts_text MATCH ? AND (? = '' OR f.project = ?) ORDER BY bm25(facts_text), f.id DESC LIMIT ?",
        (expression(query), project, project, limit),
    )
    return [json.loads(record) for (record,) in rows]
