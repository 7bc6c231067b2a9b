"""`goalkeeper receipts diff|replay`: bodies, built again from the store and compared."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

import msgspec

from proxy.cli.data import Data
from proxy.cli.main import printable
from proxy.cli.output import line, print_json, print_one
from proxy.compaction.receipt import Receipt
from proxy.dialects.known import all_dialects
from proxy.errors import NotFound
from proxy.reloading import read_profiles
from proxy.store import queries
from proxy.store.replay import Replay, Replayed
from proxy.transcript import Message, Transcript, digest_of

_WIDEST = 100  # characters of a message's first line


class Rebuilt(msgspec.Struct, frozen=True):
    """One receipt's request: as it came, and as it was sent."""

    replayed: Replayed
    body: bytes | None  # None when the store doesn't hold what it is made of
    transcript: Transcript | None  # of that body

    @property
    def sent(self) -> Sequence[Message]:
        """The messages that were sent, or that the upstream holds for it."""
        if not self.replayed.receipt.changed:
            return self.replayed.client
        return self.transcript.messages if self.transcript else self.replayed.mended or self.replayed.forwarded


def _rebuilt(data: Data, prefix: str) -> Rebuilt:
    """Rebuilds one receipt's request. Raises NotFound for one that keeps no messages."""
    name = queries.resolve(data.db, "receipts", prefix)
    tenant, record = data.db.execute("SELECT tenant, record FROM receipts WHERE id = ?", (name,)).fetchone()
    receipt = msgspec.json.decode(data.reads.unsealed(tenant, record), type=Receipt)
    dialects = all_dialects()
    replay = Replay(data.reads, read_profiles(data.settings), dialects)
    replayed = replay.rebuild(tenant, receipt)
    if replayed is None:
        raise NotFound(f"{name}: its messages aren't kept (a side call, one that couldn't be read, or forgotten)")
    if replayed.missing:
        raise NotFound(f"{name}: no longer in the store: {', '.join(replayed.missing[:5])}")
    body = replay.body(tenant, replayed)
    return Rebuilt(replayed, body, dialects[receipt.dialect].parse(body) if body is not None else None)


def replay(data: Data, args: argparse.Namespace) -> int:
    """Rebuilds the body that was forwarded and compares its hash; 0 when it is the same, else 1."""
    rebuilt = _rebuilt(data, args.id)
    receipt, body = rebuilt.replayed.receipt, rebuilt.body
    if body is None:
        raise NotFound(f"{receipt.id}: what stood around its messages isn't kept, or can't be read without the key")
    same = digest_of(body) == receipt.sent
    if args.body:
        _print_body(body)
        return 0 if same else 1
    found = {
        "receipt": receipt.id,
        "same": same,
        "sent": receipt.sent,
        "rebuilt": digest_of(body),
        "bytes": len(body),
        "messages": len(rebuilt.sent),
        "own": not receipt.changed,
        "insertions": list(receipt.insertions),
    }
    print_one(found, as_json=args.json)
    return 0 if same else 1


def _print_body(body: bytes) -> None:
    """Prints bytes as they are into a file or pipe; a terminal gets no control character."""
    if sys.stdout.isatty():
        print(printable(body.decode(errors="replace")))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(body)


def diff(data: Data, args: argparse.Namespace) -> int:
    """Prints which messages and keys differ, between two bodies or between what came and what was sent."""
    one = _rebuilt(data, args.id)
    two = _rebuilt(data, args.other) if args.other else one
    before: Sequence[Message] = one.sent if args.other else one.replayed.client
    changes = [change | {"text": data.seal.mask(change["text"])} for change in _changes(before, two.sent)]
    kept = len(before) - sum(change["what"] == "removed" for change in changes)
    keys = _keys(one.transcript, two.transcript)
    names = [one.replayed.receipt.id, two.replayed.receipt.id]
    if args.json:
        print_json({"receipts": names, "same_messages": kept, "keys": keys, "changes": changes})
        return 0
    print(f"{names[0]} as {'sent' if args.other else 'it came'} → {names[1]} as sent: {kept} messages are the same")
    for key in keys:
        print(line(f"! {key} differs"))
    for change in changes:
        sign = "-" if change["what"] == "removed" else "+"
        print(f"{sign} {change['place']:>4}  {line(change['role']):9}  {change['digest'][:12]}  {_told(change, args)}")
    return 0


def _told(change: queries.Row, args: argparse.Namespace) -> str:
    if args.full:
        return "\n" + printable(change["text"])
    first = line(change["text"])
    return first if len(first) <= _WIDEST else first[: _WIDEST - 1] + "…"


def _changes(before: Sequence[Message], after: Sequence[Message]) -> Iterator[queries.Row]:
    """Gives the messages that only one of two bodies has, each with its place there (from 0)."""
    matcher = SequenceMatcher(None, [m.digest for m in before], [m.digest for m in after], autojunk=False)
    for tag, start, end, new_start, new_end in matcher.get_opcodes():
        if tag != "equal":
            yield from (_row("removed", place, before[place]) for place in range(start, end))
            yield from (_row("added", place, after[place]) for place in range(new_start, new_end))


def _row(what: str, place: int, message: Message) -> queries.Row:
    calls = [f"{part.name} {part.text}" for part in message.parts if part.kind == "call"]
    text = "\n".join([message.text, *calls] if message.text else calls)
    return {"what": what, "place": place, "role": message.role, "digest": message.digest, "text": text}


def _keys(one: Transcript | None, two: Transcript | None) -> list[str]:
    """Gives the top-level keys besides the messages in which two bodies differ."""
    if one is None or two is None:
        return []
    ours, theirs = ({**body.options, "tools": body.tools_raw} for body in (one, two))
    return sorted(key for key in ours.keys() | theirs.keys() if ours.get(key, b"") != theirs.get(key, b""))
