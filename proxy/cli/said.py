"""The human turns of what a person points at: a stored session, a transcript file, or words on the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from proxy.cli.data import Data
from proxy.cli.labelled import json_lines, read_sessions, spoken
from proxy.clients import Profile, Profiles
from proxy.dialects.stored import read_stored
from proxy.errors import BadRequest, NotFound, UnreadableBody
from proxy.lineage.branch import later, numbered, turns_of, union
from proxy.lineage.keys import KeyReader
from proxy.lineage.records import BranchRecord
from proxy.store import queries
from proxy.transcript import HumanTurn, Message


class Talk(msgspec.Struct, frozen=True):
    """Human turns of one conversation, and which client they came through."""

    name: str
    turns: tuple[HumanTurn, ...]
    client: str = ""


def of_words(texts: Sequence[str], asked: str) -> Talk:
    """Gives texts as if they were said one after the other; `asked` stands before the last one."""
    last = len(texts) - 1
    turns = [
        HumanTurn(_key(text), text, number + 1, "", asked=asked if number == last else "")
        for number, text in enumerate(texts)
    ]
    return Talk("", tuple(turns))


def of_file(path: Path, profiles: Profiles, client: str) -> Iterator[Talk]:
    """Yields the talks of a file: sessions as JSONL, messages as JSONL, or one request body. Raises BadRequest."""
    body = _body(path)
    if body is not None:
        yield _of_messages(str(path), body, profiles, client)
        return
    lines = list(json_lines(path))
    if not lines:
        raise BadRequest(f"{path}: is empty; it holds one session or one message a line, or one request body")
    if isinstance(lines[0][1], Mapping) and "turns" in lines[0][1]:
        for session in read_sessions(path, labelled=False):
            profile = profiles.named(client or session.client)
            pairs = [(turn.role, turn.content) for turn in session.turns]
            yield Talk(session.id, tuple(turn for turn, _ in spoken(pairs, profile)), profile.name)
        return
    yield _of_messages(str(path), lines, profiles, client)


def of_session(data: Data, profiles: Profiles, prefix: str) -> Talk:
    """Gives what was said in a stored session, with what was cut off before its newest branch. Raises NotFound."""
    session = queries.resolve(data.db, "sessions", prefix)
    branches = data.db.execute(
        "SELECT branches.id, branches.tenant, length, client FROM branches JOIN sessions ON sessions.id = session"
        " WHERE session = ? AND length > 0 AND kind = 'main' ORDER BY epoch, branches.updated_at, branches.rowid",
        (session,),
    ).fetchall()
    if not branches:
        raise NotFound(f"session {session} holds no conversation yet")
    branch, tenant, _, client = branches[-1]
    record = _record(data, tenant, branch)
    profile = profiles.named(client)
    if record is not None:
        said = _of_branch(data, branches[-1], profile, record)
        return Talk(session, later(record.base, said), client)
    # Without the key what was cut off can't be read from the newest branch; older ones still show it.
    turns: tuple[HumanTurn, ...] = ()
    for row in branches:
        turns = union(turns, _of_branch(data, row, profile, BranchRecord(row[0], "")))
    return Talk(session, turns, client)


def _record(data: Data, tenant: str, branch: str) -> BranchRecord | None:
    """What a branch is, None when the key that its sealed parts need isn't here."""
    try:
        loaded = data.reads.load_branch(tenant, branch)
    except msgspec.ValidationError:
        return None
    return loaded.stored.record if loaded else None


def _of_branch(
    data: Data, row: tuple[str, str, int, str], profile: Profile, record: BranchRecord
) -> tuple[HumanTurn, ...]:
    branch, tenant, length, _ = row
    path = data.reads.path(branch, length)
    bodies = data.reads.load_messages(tenant, path)
    messages = tuple(read_stored(bodies[digest]) for digest in path if digest in bodies)
    keys = KeyReader().path(messages, profile).keys
    return turns_of(keys, numbered(keys, record.numbers[: len(keys)], record.offset), messages)


def _body(path: Path) -> list[tuple[str, Any]] | None:
    """The messages of a file that is one JSON value: a request body, or a list of messages."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadRequest(f"{path}: can't be read: {error.strerror}") from None
    except ValueError:
        return None
    if isinstance(value, Mapping) and "turns" not in value and "role" not in value:
        value = value.get("messages", value.get("input"))
        if not isinstance(value, list):
            raise BadRequest(f"{path}:1: a request body holds `messages` or `input`, a session `turns`")
    if not isinstance(value, list):
        return None
    return [(f"{path}: message {number}", message) for number, message in enumerate(value)]


def _of_messages(name: str, items: Sequence[tuple[str, Any]], profiles: Profiles, client: str) -> Talk:
    messages = tuple(_message(place, item) for place, item in items)
    profile = profiles.named(client)
    keys = KeyReader().path(messages, profile).keys
    return Talk(name, turns_of(keys, numbered(keys, (), 0), messages), profile.name)


def _message(place: str, item: object) -> Message:
    if not isinstance(item, Mapping):
        raise BadRequest(f'{place}: a message is an object, such as {{"role": "user", "content": "…"}}')
    if "role" not in item and "type" not in item:
        raise BadRequest(f"{place}: role: is missing")
    try:
        return read_stored(json.dumps(item, ensure_ascii=False).encode("utf-8", "replace"))
    except UnreadableBody as error:
        raise BadRequest(f"{place}: {error}") from None


def _key(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()
