"""What people change of the facts: each change is an event of its own, and the views follow at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from proxy.errors import BadRequest, NotFound
from proxy.facts import Fact
from proxy.redaction import Sealer
from proxy.store.fact_rows import BY_HAND, Event, FactRows
from proxy.store.ids import new_ulid
from proxy.store.queries import tell
from proxy.store.rows import now
from proxy.store.schema import transaction
from proxy.store.sealing import Sealing
from proxy.store.views import append, rewrite, write_page

_TEXTS = ("text", "quote", "title", "reason", "consequence", "revisit", "project", "who", "fallen", "asked")


class Desk:
    """One transaction of changes; made by `changing`."""

    def __init__(self, db: sqlite3.Connection, seal: Sealer) -> None:
        self._db = db
        self._sealing = Sealing(db, seal)
        self._rows = FactRows(db, self._sealing.json)
        self.events: list[Event] = []
        self.moved: set[str] = set()  # projects that lost a fact to another one
        self.at = now()

    def add(self, tenant: str, fact: Fact, what: str = "added") -> Fact:
        """Writes a new fact, by its own id or a new one, and gives it as it is stored. Raises BadRequest."""
        fact = self._masked(tenant, fact, id=fact.id or new_ulid(), observed_at=fact.observed_at or self.at)
        if not fact.pin:
            fact = msgspec.structs.replace(fact, pin=by_hand_pin(fact.id))
        try:
            self.events.append(self._rows.put(tenant, self._namespace(fact), fact, what, self.at))
        except sqlite3.IntegrityError as error:
            raise BadRequest(f"fact {fact.id}: {error}") from error
        return fact

    def change(self, fact: Fact, fields: Mapping[str, Any], what: str) -> Fact:
        """Gives fields of a fact other values; what the session says later leaves them as they are now."""
        tenant, namespace = self._owner(fact.id)
        sealed = {name: self._plain(tenant, value) for name, value in fields.items()}
        if all(getattr(fact, name) == value for name, value in sealed.items()):
            return fact
        edited = tuple(dict.fromkeys((*fact.edited, *(name for name in sealed if name != "promoted"))))
        changed = msgspec.structs.replace(fact, **sealed, edited=edited)
        self.events.append(self._rows.put(tenant, namespace, changed, what, self.at))
        if changed.project != fact.project:
            self.moved.add(fact.project)
        return changed

    def end_pin(self, fact: Fact) -> bool:
        """Retracts the pin that a fact was made from, where its session is still known."""
        row = self._db.execute("SELECT tenant FROM sessions WHERE id = ?", (fact.session,)).fetchone()
        if row is None:
            return False
        self._db.execute(
            "INSERT INTO pin_edits (tenant, session, action, pin, kind, text, at)"
            " VALUES (?, ?, 'retract', ?, ?, '', ?)",
            (row[0], fact.session, fact.pin, fact.kind, self.at),
        )
        return True

    def fact(self, identity: str) -> Fact:
        """Gives a stored fact. Raises NotFound."""
        found = self._rows.known(identity)
        if found is None:
            raise NotFound(f"there is no fact {identity!r}")
        return found

    def knows(self, fact: Fact) -> bool:
        """Whether a fact of this id, or of this session and pin, is stored."""
        sql = "SELECT 1 FROM facts WHERE id = ? OR (session = ? AND pin = ?)"
        return self._db.execute(sql, (fact.id, fact.session, fact.pin)).fetchone() is not None

    def _owner(self, identity: str) -> tuple[str, str]:
        tenant, namespace = self._db.execute("SELECT tenant, namespace FROM facts WHERE id = ?", (identity,)).fetchone()
        return str(tenant), str(namespace)

    def _namespace(self, fact: Fact) -> str:
        row = self._db.execute("SELECT namespace FROM sessions WHERE id = ?", (fact.session,)).fetchone()
        return str(row[0]) if row else BY_HAND

    def _masked(self, tenant: str, fact: Fact, **more: Any) -> Fact:  # noqa: ANN401  the fields of a fact
        texts = {name: self._plain(tenant, getattr(fact, name)) for name in _TEXTS}
        rejected = self._plain(tenant, fact.rejected)
        source = {name: self._plain(tenant, value) for name, value in fact.source.items()}
        return msgspec.structs.replace(fact, **{**texts, "rejected": rejected, "source": source, **more})

    def _plain(self, tenant: str, value: Any) -> Any:  # noqa: ANN401  a text, several, or what is none
        if isinstance(value, tuple):
            return tuple(self._plain(tenant, one) for one in value)
        if not isinstance(value, str):
            return value
        return self._sealing.plain(tenant, value)


@contextmanager
def changing(db: sqlite3.Connection, seal: Sealer) -> Iterator[Desk]:
    """Opens a transaction; once it is committed the views are written and a running proxy is told."""
    desk = Desk(db, seal)
    with transaction(db):
        yield desk
    if not desk.events:
        return
    folder = folder_of(db)
    append(folder, db, desk.events)
    projects = {event.project for event in desk.events}
    if desk.moved:
        rewrite(folder, db, projects | desk.moved)
    else:
        for project in projects:
            write_page(folder, db, project)
    tell(db)


def by_hand_pin(seed: str) -> str:
    """Gives the pin id of a fact that comes from no pin."""
    return "h" + blake2b(seed.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()[:11]


def folder_of(db: sqlite3.Connection) -> Path:
    """Gives the data folder that a connection is open on."""
    return Path(db.execute("PRAGMA database_list").fetchone()[2]).parent


def tenant_of(db: sqlite3.Connection, named: str, session: str = "") -> str:
    """Gives whose a new fact is: named, its session's, or the only one there is. Raises BadRequest when it is open."""
    if session:
        row = db.execute("SELECT tenant FROM sessions WHERE id = ?", (session,)).fetchone()
        return str(row[0])
    known = [row[0] for row in db.execute("SELECT tenant FROM sessions UNION SELECT tenant FROM facts ORDER BY 1")]
    if named:
        if known and named not in known:
            raise BadRequest(f"--tenant: there is no tenant {named!r}; known are {', '.join(known)}")
        return named
    if len(known) > 1:
        raise BadRequest(f"several tenants use this folder: say whose it is with --tenant ({', '.join(known)})")
    return str(known[0]) if known else "-"
