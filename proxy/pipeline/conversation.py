"""Follows conversations: links a request to its branch, and carries what the branch needs from request to request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from hashlib import blake2b
from typing import Any

from msgspec.structs import replace

from proxy.clients import Profile, Profiles
from proxy.compaction.insertion import Insertion
from proxy.compaction.quotes import unverified
from proxy.compaction.receipt import Receipt, ToolCall
from proxy.compaction.validity import ITEMISED
from proxy.compaction.view import View
from proxy.dialects.base import Dialect
from proxy.exchange import Call
from proxy.facts import FactChange, Known, changes
from proxy.lineage import Link
from proxy.lineage.keys import KeyReader, Request, text_of
from proxy.lineage.records import Changes
from proxy.pins.lifecycle import Edit, add, amend, fold
from proxy.pins.rules import RuleSet
from proxy.pipeline.branches import Branches, alternating
from proxy.pipeline.case import BranchState, Case, Quiet, Scope, Track
from proxy.pipeline.measuring import Measure
from proxy.pipeline.recording import Recorder, batch_of, session_of, source_of
from proxy.pipeline.replies import Held, Replies, id_of
from proxy.pipeline.surroundings import Surroundings
from proxy.store.frames import Sent
from proxy.store.recollections import promoted
from proxy.store.rows import Batch, Reply, now
from proxy.store.sqlite import Store
from proxy.tokens import Counter
from proxy.transcript import Answer, HumanTurn, Message, Transcript

UNTRACKED = ("side", "summary")


class Conversations:
    """All conversations of one proxy."""

    def __init__(
        self,
        *,
        store: Store,
        profiles: Profiles,
        rules: RuleSet,
        counter: Counter,
        dialect: Dialect,
        tenancy: str,
        key: bytes,
    ) -> None:
        self.rules = rules
        self.profiles = profiles
        self._store = store
        self._counter = counter
        self._dialect = dialect
        self._tenancy = tenancy
        self._key = blake2b(key, digest_size=32).digest()
        self._reader = KeyReader()
        self._branches = Branches(store, dialect, self._reader)
        self._recorder = Recorder(store)
        self.measure = Measure(counter, store)
        self._replies = Replies(store, dialect.message)
        self._surroundings = Surroundings()

    def use(self, rules: RuleSet, profiles: Profiles) -> None:
        """Takes other rules and profiles, for what people say from now on: turns judged before stay as they are."""
        if profiles is not self.profiles:
            self._reader.renew()
        self.rules, self.profiles = rules, profiles

    async def follow(self, call: Call, transcript: Transcript, receipt: str, limit: float) -> Case:
        """Links a request to its branch, and queues what is new for the store.

        `limit` (tokens of our count, 0 = none): a body that may be above it is counted, any other is guessed.
        """
        case, state = self._linked(call, transcript, receipt)
        if state is None:
            return case
        tokens = await self.measure.measured(transcript, case.scope, state, case.new_from, limit)
        return self._tracked(case, state, tokens)

    def noted(self, call: Call, transcript: Transcript, receipt: str, quiet: Quiet) -> Case:
        """Follows a request that goes on from a quiet one, far below any limit: at once, and by what is known of it."""
        self._let_go()
        known, link = quiet.case, None
        if quiet.messages == transcript.messages:
            again = replace(known.link, relation="resend", detail="the same bytes", changes=Changes())
            end = len(transcript.messages)
            return replace(known, call=call, link=again, receipt=receipt, new_from=end, recorded=False, stored=None)
        if known.link.match != "new":  # the first of a session isn't known by what its successors will be
            request = self._reader.request(transcript, known.profile)
            link = self._branches.engine(known.scope).extended(known.branch, request, known.link.match)
        if link is None:
            case, state = self._linked(call, transcript, receipt)
        else:
            state = self._branches.state(link)
            new_from = _first_difference(state.stored, transcript.messages)
            scope, project = known.scope, known.project
            case = Case(
                call, transcript, known.profile, scope, link, receipt, project, new_from=new_from, place=known.place
            )
        return (
            case
            if state is None
            else self._tracked(case, state, self.measure.guessed(transcript, state, case.new_from))
        )

    def unmoved(self, quiet: Quiet, *, again: bool) -> bool:
        """Whether a quiet request is its branch's newest, nobody changed its pins, and no other branch is like it.

        `again`: it has come once more as it was.
        """
        branch, state, messages = quiet.case.branch, quiet.track.state, quiet.messages
        newest = self._branches.get(branch) is state and state.stored == messages
        edited = state.edit_mark != self._store.edits.value
        return newest and not edited and self._branches.engine(quiet.case.scope).alone(branch, messages, again=again)

    def _linked(self, call: Call, transcript: Transcript, receipt: str) -> tuple[Case, BranchState | None]:
        """Links a request to its branch; no state where it belongs to no branch's path."""
        self._let_go()
        headers = {name.lower(): value for name, value in call.headers}
        scope = self._scope(headers)
        profile = self.profiles.pick(headers, transcript)
        request = self._request(headers, transcript, profile)
        self._branches.recall(scope, request, self.profiles)
        link = self._branches.engine(scope).identify(request)
        place = self._surroundings.of(transcript)
        project = headers.get("x-goalkeeper-project", "").strip() or place.cwd
        if link.relation in UNTRACKED or link.branch is None:
            return Case(call, transcript, profile, scope, link, receipt, project), None
        state = self._branches.state(link)
        new_from = _first_difference(state.stored, transcript.messages)
        case = Case(call, transcript, profile, scope, link, receipt, project, new_from=new_from, place=place)
        return case, state

    def _tracked(self, case: Case, state: BranchState, tokens: tuple[int, ...]) -> Case:
        """Takes what a request brings into its branch."""
        view = self._view(case.link, case.transcript, case.profile, state, tokens)
        quotes, exact = _unverified(case.link, case.transcript), state.counted == len(tokens)
        case = replace(case, track=Track(state, view), unverified=quotes, exact=exact)
        return self._record(case, state, view)

    def held(self, call: Call, name: str) -> Held | None:
        """Gives the history that the upstream keeps under an id, None when it didn't pass through here."""
        self._let_go()
        return self._replies.find(self._scope({key.lower(): value for key, value in call.headers}), name)

    def resolved(self, call: Call, transcript: Transcript) -> tuple[Transcript, tuple[str, ...]]:
        """Puts known items where references to them stand; gives the ids, too, that only the upstream knows."""
        if self._dialect.name not in ITEMISED:
            return transcript, ()
        return self._replies.resolved(self._scope({key.lower(): value for key, value in call.headers}), transcript)

    def heard(self, case: Case, answer: Answer) -> Changes:
        """Tells lineage what the model answered: before the client's next request comes."""
        parts = [part for item in answer.items for part in item.parts]
        return self._branches.engine(case.scope).answer(case.link, answer.text, answer.calls, answer.complete, parts)

    def close(
        self,
        case: Case,
        receipt: Receipt,
        answer: Answer | None,
        insertions: tuple[str, ...] = (),
        calls: Callable[[], Iterable[ToolCall]] | None = None,
        sent: bytes | None = None,
        heard: Changes | None = None,
    ) -> None:
        """Queues answer and receipt for the store; lineage is told of the answer, unless it was (`heard`).

        `insertions` are the ids of those that stood in what the model saw; `calls` gives those of the receipt, `sent`
        is the body that the model got.
        """
        told = () if case.recorded else (case.link.changes,)
        if answer is not None:
            told = (*told, heard or self.heard(case, answer))
        session = None if case.recorded else session_of(case)
        body = None
        if sent is not None and case.track is not None:
            body = Sent(sent, case.transcript, sent is case.call.body)
        batch = batch_of(case, lineage=told, session=session, receipt=receipt, calls=calls, sent=body)
        if answer is not None:
            batch = self._with_answer(case, batch, answer, insertions)
        self._recorder.later(batch)

    def _with_answer(self, case: Case, batch: Batch, answer: Answer, insertions: tuple[str, ...]) -> Batch:
        """Adds the answer, and where the upstream keeps it what a later request may go on from."""
        said = replace(batch, answer=replace(answer, items=()))
        kept = case.transcript.options.get("store") != b"false"
        if not (answer.id and answer.items and answer.complete and kept and case.track is not None):
            return said
        path = case.transcript.messages
        self._replies.keep(case.scope, answer.id, Held((*path, *answer.items), insertions), answer.items)
        names = tuple(map(id_of, answer.items))
        reply = Reply(answer.id, len(path), tuple(item.digest for item in answer.items), insertions, names)
        return replace(said, reply=reply, messages=tuple((item, 0) for item in answer.items))

    def _let_go(self) -> None:
        if self._branches.forget():
            self._replies.clear()

    def state_of(self, branch: str) -> BranchState | None:
        """Gives the state of a branch that is in memory."""
        return self._branches.get(branch)

    def _scope(self, headers: Mapping[str, str]) -> Scope:
        if self._tenancy == "none":
            who = ""
        elif self._tenancy.startswith("header:"):
            who = headers.get(self._tenancy[7:].lower(), "")
        else:
            who = headers.get("authorization", "") or headers.get("x-api-key", "")
        tenant = (
            blake2b(who.encode("utf-8", "surrogateescape"), key=self._key, digest_size=8).hexdigest() if who else "-"
        )
        return Scope(tenant, headers.get("x-goalkeeper-session", ""))

    def _request(self, headers: Mapping[str, str], transcript: Transcript, profile: Profile) -> Request:
        body = transcript.strings(profile.body_fields)
        return self._reader.request(
            transcript,
            profile,
            client=profile.session_id(headers, body),
            # A library asks the server to compact through another of its clients than the one that it talks with.
            product="" if transcript.compacts else headers.get("user-agent", "").partition("/")[0],
            side=profile.side(transcript),
            retry=headers.get("x-stainless-retry-count", "0") not in ("", "0"),
        )

    def _view(
        self, link: Link, transcript: Transcript, profile: Profile, state: BranchState, tokens: tuple[int, ...]
    ) -> View:
        self._learn_turns(state, spoken(link), profile.name)
        self._read_edits(state, link.session)
        ledger = amend(state.ledger, state.edits) if state.edits else state.ledger
        fixed = (transcript.tools_raw.decode(errors="replace"), transcript.system)
        overhead = sum(self._counter.once(text) for text in fixed if text)
        return View(transcript, link.keys, link.chain, link.numbers, tokens, overhead, ledger, link.base, link.humans)

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
        mark = self._store.edits.value
        if state.edit_mark == mark:
            return
        state.edit_mark = mark
        for edit in self._store.pin_edits(session, state.edit_seq):
            kind: Any = edit.kind
            change = Edit(edit.action, edit.pin, edit.text, kind, edit.rule, edit.turn, edit.span)
            state.edits = (*state.edits, change)
            state.edit_seq = edit.seq

    def _record(self, case: Case, state: BranchState, view: View) -> Case:
        """Queues what is new: messages, path, facts, lineage's rows. When nothing is, the receipt's batch suffices."""
        messages, old = case.transcript.messages, state.stored
        places = [place for place in range(case.new_from, len(messages)) if not _same(messages[place], old, place)]
        found: tuple[FactChange, ...] = ()
        if view.ledger is not state.facts:
            found = changes(state.facts, view.ledger, source_of(case), now())
        if not places and not found and len(messages) == len(old):
            return case
        batch = batch_of(
            case,
            messages=tuple((messages[place], view.tokens[place] if case.exact else 0) for place in places),
            path=tuple((place, messages[place].digest) for place in places),
            length=len(messages),
            facts=found,
            insertions=() if old else state.memory.insertions,
            session=session_of(case),
            lineage=(case.link.changes,),
        )
        spoken_to = view.ledger is not state.facts
        state.stored, state.facts = messages, view.ledger
        if not (spoken_to or found or not old):
            # Nothing that a person said: the client sends it again, and no block that stands for it is used before it
            # is written, since the store keeps the order.
            self._recorder.later(batch)
            return replace(case, recorded=True)
        return replace(case, recorded=True, stored=asyncio.wrap_future(self._store.submit(batch)))

    async def recollections(self, case: Case, *, everywhere: bool) -> tuple[Known, ...]:
        """Gives what was promoted in the request's project; a project without a name has none. Raises StoreError."""
        if not case.project:
            return ()
        tenant, namespace = case.scope.tenant, None if everywhere else case.scope.namespace
        job = partial(promoted, tenant=tenant, project=case.project, namespace=namespace)
        return await asyncio.wrap_future(self._store.run(job))

    def keep_insertions(self, case: Case, fresh: tuple[Insertion, ...]) -> asyncio.Future[None]:
        """Queues insertions; await the result before they are used."""
        batch = Batch(tenant=case.scope.tenant, namespace=case.scope.namespace, insertions=fresh)
        return asyncio.wrap_future(self._store.submit(batch))

    def refuse(self, case: Case, ids: frozenset[str]) -> None:
        """Puts insertions under quarantine: an upstream refused a body with them."""
        if case.track is None or not ids:
            return
        state = case.track.state
        memory = state.memory
        state.good = tuple(one for one in state.good if one not in ids)
        strict = memory.strict or alternating(memory.insertions, ids, state.good)
        state.memory = replace(memory, refused=memory.refused | ids, strict=strict)
        rows = tuple((case.branch, identity) for identity in sorted(ids))
        self._store.submit(Batch(tenant=case.scope.tenant, namespace=case.scope.namespace, quarantine=rows))


def spoken(link: Link) -> tuple[HumanTurn, ...]:
    """Gives all human turns as they were said: what was cut out may be younger than what still stands."""
    return tuple(sorted((*link.base, *link.humans), key=lambda turn: turn.number))


def _unverified(link: Link, transcript: Transcript) -> tuple[str, ...]:
    if not link.summary_keys:
        return ()
    summaries = [
        text_of(transcript.messages[link.keys[place].message], link.keys[place]) for place in link.summary_keys
    ]
    return unverified(summaries, [turn.text for turn in (*link.base, *link.humans)])


def _first_difference(old: tuple[Message, ...], new: tuple[Message, ...]) -> int:
    """Gives the first place at which two paths differ."""
    if new[: len(old)] == old:  # by identity: fast, and nearly always so
        return len(old)
    shared = min(len(old), len(new))
    return next((place for place in range(shared) if old[place].digest != new[place].digest), shared)


def _same(message: Message, path: tuple[Message, ...], place: int) -> bool:
    return place < len(path) and path[place].digest == message.digest
