"""Follows conversations: links a request to its branch, and carries what the branch needs from request to request."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b

import msgspec

from proxy.clients import Profile, Profiles
from proxy.compaction.draft import Memory
from proxy.compaction.insertion import Insertion
from proxy.compaction.quotes import unverified
from proxy.compaction.view import View
from proxy.dialects.base import Dialect
from proxy.exchange import Call
from proxy.facts import Source, changes, project_of
from proxy.lineage.engine import Engine, Link
from proxy.lineage.keys import KeyReader, Request, text_of
from proxy.pins.lifecycle import Edit, add, amend, fold
from proxy.pins.model import Ledger
from proxy.pins.rules import RuleSet
from proxy.store.ids import new_ulid
from proxy.store.rows import Batch, Loaded, SessionRow, now
from proxy.store.sqlite import Store
from proxy.tokens import Counter
from proxy.transcript import Answer, HumanTurn, Message, Transcript

_BRANCHES = 2_000  # branch states kept in memory; the store has them all
_HEAVY_BYTES = 64 << 10  # from so much new text on, counting happens in a thread
UNTRACKED = ("side", "summary")


@dataclass(slots=True)
class BranchState:
    """What one branch carries from request to request."""

    memory: Memory = Memory()
    turns: tuple[HumanTurn, ...] = ()
    ledger: Ledger = Ledger()  # of `turns`, before what people changed by hand
    edits: tuple[Edit, ...] = ()
    edit_seq: int = 0
    stored: tuple[Message, ...] = ()  # the path as the store has it
    good: tuple[str, ...] = ()  # ids of the insertions in the newest body that the upstream took
    facts: Ledger = Ledger()  # the ledger as the store has it
    summarizing: bool = False  # a summary for the next cut is being written


@dataclass(frozen=True, slots=True)
class Scope:
    """Who is asking, and under which name: nothing crosses from one scope to another."""

    tenant: str
    namespace: str


@dataclass(frozen=True, slots=True)
class Case:
    """One request with all that is known about it."""

    call: Call
    transcript: Transcript
    profile: Profile
    scope: Scope
    link: Link
    receipt: str
    project: str
    state: BranchState | None = None
    view: View | None = None
    unverified: tuple[str, ...] = ()  # quotes in the client's summary that no human turn holds
    new_from: int = 0  # index of the first message that the branch's stored path doesn't have
    stored: asyncio.Future[None] | None = field(default=None, repr=False)  # done when the new turns are committed

    @property
    def branch(self) -> str:
        """The branch id, "" for a side call that belongs to none."""
        return self.link.branch or ""


class Conversations:
    """All conversations of one proxy."""

    def __init__(
        self, *, store: Store, profiles: Profiles, rules: RuleSet, counter: Counter, dialect: Dialect, tenancy: str, key: bytes
    ) -> None:
        self.rules = rules
        self.profiles = profiles
        self._store = store
        self._counter = counter
        self._dialect = dialect
        self._tenancy = tenancy
        self._key = blake2b(key, digest_size=32).digest()
        self._engines: dict[Scope, Engine] = {}
        self._states: OrderedDict[str, BranchState] = OrderedDict()
        self._reader = KeyReader()

    async def follow(self, call: Call, transcript: Transcript, receipt: str) -> Case:
        """Links a request to its branch, and queues what is new for the store."""
        headers = {name.lower(): value for name, value in call.headers}
        scope = self._scope(headers)
        profile = self.profiles.pick(headers, transcript)
        request = self._request(headers, transcript, profile)
        engine = self._engine(scope)
        self._recall(engine, scope, request)
        link = engine.identify(request)
        project = project_of(transcript.system_text, headers.get("x-goalkeeper-project", ""))
        case = Case(call, transcript, profile, scope, link, receipt, project)
        if link.relation in UNTRACKED or link.branch is None:
            return replace(case, stored=self._keep(case, Batch()))
        state = self._state(link)
        tokens = await self._measured(transcript, scope)
        view = self._view(case, state, tokens)
        case = replace(
            case, new_from=_first_difference(state.stored, transcript.messages), unverified=_unverified(link, transcript)
        )
        return replace(case, state=state, view=view, stored=self._record(case, state, view))

    def answered(self, case: Case, answer: Answer) -> None:
        """Tells lineage what the model answered, and queues it for the store."""
        made = self._engines[case.scope].answer(case.link, answer.text, answer.calls, answer.complete)
        self._keep(case, Batch(lineage=(made,), answer=answer))

    def state_of(self, branch: str) -> BranchState | None:
        """Gives the state of a branch that is in memory."""
        return self._states.get(branch)

    def _engine(self, scope: Scope) -> Engine:
        engine = self._engines.get(scope)
        if engine is None:
            engine = self._engines[scope] = Engine(new_ulid, self._reader)
        return engine

    def _scope(self, headers: Mapping[str, str]) -> Scope:
        if self._tenancy == "none":
            who = ""
        elif self._tenancy.startswith("header:"):
            who = headers.get(self._tenancy[7:].lower(), "")
        else:
            who = headers.get("authorization", "") or headers.get("x-api-key", "")
        tenant = blake2b(who.encode("utf-8", "surrogateescape"), key=self._key, digest_size=8).hexdigest() if who else "-"
        return Scope(tenant, headers.get("x-goalkeeper-session", ""))

    def _request(self, headers: Mapping[str, str], transcript: Transcript, profile: Profile) -> Request:
        body = transcript.strings(profile.body_fields)
        return self._reader.request(
            transcript,
            profile,
            client=profile.session_id(headers, body),
            product=headers.get("user-agent", "").partition("/")[0],
            side=profile.side(transcript),
            retry=headers.get("x-stainless-retry-count", "0") not in ("", "0"),
        )

    def _recall(self, engine: Engine, scope: Scope, request: Request) -> None:
        """Takes older branches that may matter to this request from the store into the engine."""
        hashes = engine.lookups(request)
        for loaded in self._store.load_branches(scope.tenant, scope.namespace, hashes) if hashes else ():
            record = loaded.stored.record
            if engine.knows(record.id):
                continue
            messages = self._messages(scope, loaded)
            if messages is None:
                continue
            engine.restore(loaded.stored, messages, self.profiles.named(record.profile))
            refused = self._store.quarantined(record.id)
            memory = Memory(insertions=loaded.insertions, refused=refused)
            good = tuple(one.id for one in loaded.insertions if one.id not in refused)
            self._states[record.id] = BranchState(memory, stored=messages, good=good)

    def _messages(self, scope: Scope, loaded: Loaded) -> tuple[Message, ...] | None:
        raw = self._store.load_messages(scope.tenant, set(loaded.path))
        if any(digest not in raw for digest in loaded.path):
            return None  # retention has taken a part of it
        return tuple(self._dialect.message(raw[digest]) for digest in loaded.path)

    def _state(self, link: Link) -> BranchState:
        """Gives the branch's state; a new branch begins with what still stands of its parent's insertions."""
        branch = link.branch or ""
        state = self._states.get(branch)
        if state is None:
            parent = self._states.get(link.parent_branch or "")
            state = self._states[branch] = BranchState()
            if parent is not None and link.relation in ("rewound", "edited", "forked", "resend"):
                anchors = {node.hex() for node in link.chain} | {""}
                memory = parent.memory
                inherited = tuple(
                    msgspec.structs.replace(one, branch=branch)
                    for one in memory.insertions
                    if one.anchor in anchors and one.id not in memory.refused
                )
                state.memory = Memory(insertions=inherited, refused=memory.refused, strict=memory.strict)
                state.good = tuple(one.id for one in inherited if one.id in parent.good)
        self._states.move_to_end(branch)
        if len(self._states) > _BRANCHES:
            self._states.popitem(last=False)
        return state

    async def _measured(self, transcript: Transcript, scope: Scope) -> tuple[int, ...]:
        """Counts the tokens of each message; what was counted before the last start comes from the store."""
        counter = self._counter
        new = counter.unknown(transcript.messages)
        if len(new) > 8:
            counter.learn(self._store.tokens_of(scope.tenant, [message.digest for message in new]))
            new = counter.unknown(tuple(new))
        if sum(len(message.raw) for message in new) > _HEAVY_BYTES:
            await asyncio.to_thread(lambda: [counter.message(message) for message in new])
        return tuple([counter.message(message) for message in transcript.messages])

    def _view(self, case: Case, state: BranchState, tokens: tuple[int, ...]) -> View:
        link, transcript = case.link, case.transcript
        self._learn_turns(state, spoken(link), case.profile.name)
        self._read_edits(state, link.session)
        ledger = amend(state.ledger, state.edits) if state.edits else state.ledger
        tools = transcript.tools_raw.decode(errors="replace")
        overhead = self._counter.once(tools) if tools else 0
        return View(
            transcript, link.keys, link.chain, link.numbers, tokens, overhead, ledger, tuple(link.base), tuple(link.humans)
        )

    def _learn_turns(self, state: BranchState, turns: tuple[HumanTurn, ...], client: str) -> None:
        known = len(state.turns)
        if turns[:known] == state.turns:
            ledger = state.ledger
            for turn in turns[known:]:
                ledger = add(ledger, turn, self.rules, client=client)
            state.ledger = ledger
        else:
            state.ledger = fold(turns, self.rules, client=client)
        state.turns = turns

    def _read_edits(self, state: BranchState, session: str) -> None:
        for edit in self._store.pin_edits(session, state.edit_seq):
            state.edits = (*state.edits, Edit(edit.action, edit.pin, edit.text, edit.kind))  # type: ignore[arg-type]
            state.edit_seq = edit.seq

    def _record(self, case: Case, state: BranchState, view: View) -> asyncio.Future[None]:
        """Queues new messages, the path, new facts and lineage's own rows in one batch."""
        messages = case.transcript.messages
        first = case.new_from
        fresh = tuple(zip(messages[first:], view.tokens[first:], strict=True))
        path = tuple((first + place, message.digest) for place, (message, _) in enumerate(fresh))
        source = Source(
            session=case.link.session,
            branch=case.link.line,
            client=case.profile.name,
            model=case.transcript.model,
            project=case.project,
        )
        found = changes(state.facts, view.ledger, source, now()) if view.ledger is not state.facts else ()
        new_branch = not state.stored
        length = len(messages) if path or len(messages) != len(state.stored) else None
        state.stored, state.facts = messages, view.ledger
        return self._keep(
            case,
            Batch(
                messages=fresh,
                path=path,
                length=length,
                facts=found,
                insertions=state.memory.insertions if new_branch else (),
            ),
        )

    def _keep(self, case: Case, batch: Batch) -> asyncio.Future[None]:
        """Queues a batch under the request's scope; lineage's changes and the session ride with the first one."""
        first = not batch.lineage
        session = None
        if first and case.link.session:
            session = SessionRow(case.link.session, case.profile.name, case.transcript.model, case.project)
        filled = replace(
            batch,
            tenant=case.scope.tenant,
            namespace=case.scope.namespace,
            request=case.receipt,
            branch=case.branch,
            session=session,
            lineage=(case.link.changes,) if first else batch.lineage,
        )
        return asyncio.wrap_future(self._store.submit(filled))

    def keep_insertions(self, case: Case, fresh: tuple[Insertion, ...]) -> asyncio.Future[None]:
        """Queues insertions; await the result before they are used."""
        batch = Batch(tenant=case.scope.tenant, namespace=case.scope.namespace, insertions=fresh)
        return asyncio.wrap_future(self._store.submit(batch))

    def refuse(self, case: Case, ids: frozenset[str]) -> None:
        """Puts insertions under quarantine: an upstream refused a body with them."""
        state = case.state
        if state is None or not ids:
            return
        memory = state.memory
        own = {one.id for one in memory.insertions if one.placement == "message"}
        state.good = tuple(one for one in state.good if one not in ids)
        # An upstream that took one message of ours before doesn't mind its role: it was the text.
        strict = memory.strict or (bool(own & ids) and not own & set(state.good))
        state.memory = replace(memory, refused=memory.refused | ids, strict=strict)
        rows = tuple((case.branch, identity) for identity in sorted(ids))
        self._store.submit(Batch(tenant=case.scope.tenant, namespace=case.scope.namespace, quarantine=rows))


def spoken(link: Link) -> tuple[HumanTurn, ...]:
    """Gives all human turns in the order in which they were said: what was cut out may be younger than what still stands."""
    return tuple(sorted((*link.base, *link.humans), key=lambda turn: turn.number))


def _unverified(link: Link, transcript: Transcript) -> tuple[str, ...]:
    if not link.summary_keys:
        return ()
    summaries = [text_of(transcript.messages[link.keys[place].message], link.keys[place]) for place in link.summary_keys]
    return unverified(summaries, [turn.text for turn in (*link.base, *link.humans)])


def _first_difference(old: tuple[Message, ...], new: tuple[Message, ...]) -> int:
    """Gives the first place at which two paths differ."""
    if new[: len(old)] == old:
        return len(old)
    return next((place for place, (one, other) in enumerate(zip(old, new, strict=False)) if one is not other), min(len(old), len(new)))

