"""A client's profile: what its requests look like, as far as it matters to us."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from proxy.clients.peel import outside, trimmed, wrapper_pattern
from proxy.clients.sides import Marks, side_of
from proxy.transcript import ClientId, Human, Message, Part, Transcript

_PICKS = 256  # combinations of header names, user agent and system text whose profile is remembered
CACHED = 20_000  # messages whose peeled spans are kept per profile


@dataclass(frozen=True, slots=True)
class Match:
    """How a client is recognised: all kinds that are given must fit, one entry of each is enough."""

    user_agent: tuple[re.Pattern[str], ...] = ()
    headers: tuple[str, ...] = ()
    system: tuple[re.Pattern[str], ...] = ()

    def fits(self, headers: Mapping[str, str], system: str) -> bool:
        """Whether a request with these headers and this system text comes from the client."""
        agent = headers.get("user-agent", "")
        kinds = [
            any(pattern.search(agent) for pattern in self.user_agent) if self.user_agent else None,
            any(name in headers for name in self.headers) if self.headers else None,
            any(pattern.search(system) for pattern in self.system) if self.system else None,
        ]
        given = [kind for kind in kinds if kind is not None]
        return bool(given) and all(given)


@dataclass(frozen=True, slots=True)
class Session:
    """Where a client writes the id of its conversation; earlier names win."""

    headers: tuple[str, ...] = ()
    body: tuple[str, ...] = ()
    agent: tuple[str, ...] = ()
    parent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Profile:
    """Reads one client's messages; made by `load_profiles`."""

    name: str
    match: Match = Match()
    session: Session = Session()
    tags: tuple[str, ...] = ()  # wrappers of machine text
    machine: tuple[str, ...] = ()  # openings of texts that machines write in the role user
    synthetic: tuple[str, ...] = ()  # whole texts that the client itself says in the user's name
    nudges: tuple[str, ...] = ()  # the same, only as the first user text of a body that begins with the assistant
    summaries: tuple[str, ...] = ()  # openings of the client's own compaction summary
    cuts: tuple[str, ...] = ()  # openings of the note that it leaves where it cut its history without a summary
    marks: Marks = field(default_factory=Marks)
    quotes: bool = False  # the client wraps an argument in double quotes
    answer_tools: tuple[str, ...] = ()  # tools whose result is the user's answer
    denials: tuple[re.Pattern[str], ...] = ()  # openings of a refusal; what follows are the user's words
    midturn: tuple[re.Pattern[str], ...] = ()  # human words inside a trailing wrapper of a result: group 1
    templates: tuple[re.Pattern[str], ...] = ()  # whole texts that the client writes around human words: group 1
    _wrappers: re.Pattern[str] | None = field(default=None, repr=False, compare=False)
    _peeled: dict[tuple[str, tuple[str, ...]], tuple[Human, ...]] = field(
        default_factory=dict, repr=False, compare=False
    )

    @property
    def body_fields(self) -> tuple[str, ...]:
        """Names of body fields that `session_id` wants to see."""
        return self.session.body

    def session_id(self, headers: Mapping[str, str], body: Mapping[str, str]) -> ClientId | None:
        """Gives the client's own ids; header names are lower case. None when it sends none."""
        agent = next((headers[name] for name in self.session.agent if headers.get(name)), "")
        parent = next((headers[name] for name in self.session.parent if headers.get(name)), "")
        for source, names, values in (("header", self.session.headers, headers), ("body", self.session.body, body)):
            for name in names:
                if values.get(name):
                    return ClientId(values[name], agent, parent, source)
        return None

    def is_summary(self, text: str) -> bool:
        """Whether this text is the client's own summary of what it dropped."""
        return text.lstrip().startswith(self.summaries) if self.summaries else False

    def is_cut(self, text: str) -> bool:
        """Whether the client says with this text that it has cut its history."""
        return text.lstrip().startswith(self.cuts) if self.cuts else False

    def is_nudge(self, text: str) -> bool:
        """Whether the client says this by itself after a body that begins with the assistant's summary."""
        return text.strip() in self.nudges

    def side(self, transcript: Transcript) -> str:
        """Gives "title", "summary", "flat" or "other" for a request that doesn't carry the conversation on, else ""."""
        return side_of(transcript, self.marks)

    def peel(self, message: Message, tool_names: Mapping[str, str] | None = None) -> tuple[Human, ...]:
        """Gives the person's words in a message, verbatim; `tool_names` gives the tool of each call id.

        Text of system, assistants and tools is never human, except a result of an answer tool, the reason of a denied
        call, and words that the client put behind a result.
        """
        if message.role not in ("user", "tool", "function"):
            return ()
        names = tuple((tool_names or {}).get(part.call_id, "") for part in message.parts if part.kind == "result")
        known = self._peeled.get((message.digest, names))
        if known is None:
            if len(self._peeled) >= CACHED:
                self._peeled.clear()
            known = self._peeled[(message.digest, names)] = tuple(self._humans(message, iter(names).__next__))
        return known

    def _humans(self, message: Message, next_name: Callable[[], str]) -> list[Human]:
        found: list[Human] = []
        for index, part in enumerate(message.parts):
            if part.kind == "text" and message.role == "user":
                found += self._in_text(part.text, index)
            elif part.kind == "result":
                found += self._in_result(part, index, next_name() or part.name)
        return found

    def _in_text(self, text: str, index: int) -> list[Human]:
        if self.is_summary(text):
            return []
        for template in self.templates:
            if (filled := template.search(text)) is not None:
                return _spans(text, [filled.span(1)], index, "")
        spans = outside(text, self._wrappers) if self._wrappers is not None and "<" in text else iter([(0, len(text))])
        found = []
        for span in spans:
            tight = trimmed(text, span, quotes=self.quotes)
            if tight is None:
                continue
            words = text[tight[0] : tight[1]]
            if words in self.synthetic or words.startswith(self.machine) or self.is_summary(words):
                continue
            found.append(Human(words, index, tight[0]))
        return found

    def _in_result(self, part: Part, index: int, tool: str) -> list[Human]:
        via = tool or "tool"
        if tool and tool in self.answer_tools:
            return _spans(part.text, [(0, len(part.text))], index, via)
        for denial in self.denials:
            if (opening := denial.match(part.text.lstrip())) is not None:
                skipped = len(part.text) - len(part.text.lstrip())
                return _spans(part.text, [(skipped + opening.end(), len(part.text))], index, via)
        if self.midturn and self._wrappers is not None:
            return _spans(part.text, self._behind(part.text, self._wrappers), index, via)
        return []

    def _behind(self, text: str, wrappers: re.Pattern[str]) -> list[tuple[int, int]]:
        # Only wrappers that end the result are the client's; the same words further up are the tool's output.
        human = [span for span in outside(text, wrappers) if text[span[0] : span[1]].strip()]
        tail = human[-1][1] if human else 0
        return [found.span(1) for pattern in self.midturn for found in pattern.finditer(text, tail)]


def _spans(text: str, spans: Sequence[tuple[int, int]], index: int, via: str) -> list[Human]:
    tight = (trimmed(text, span, quotes=False) for span in spans)
    return [Human(text[span[0] : span[1]], index, span[0], via) for span in tight if span is not None]


def sealed(profile: Profile) -> Profile:
    """Gives the profile ready to peel: wrappers compiled, nothing cached."""
    return replace(profile, _wrappers=wrapper_pattern(profile.tags) if profile.tags else None, _peeled={})


@dataclass(frozen=True, slots=True)
class Profiles:
    """All known clients; the first that fits is taken, else the generic profile."""

    generic: Profile
    clients: tuple[Profile, ...] = ()
    _picked: dict[tuple[str, str, tuple[str, ...]], Profile] = field(default_factory=dict, repr=False, compare=False)

    def pick(self, headers: Mapping[str, str], transcript: Transcript) -> Profile:
        """Gives the profile of the client that sent this request; header names are lower case."""
        system = transcript.system_text[:20_000]
        known = (headers.get("user-agent", ""), system, tuple(headers))
        profile = self._picked.get(known)
        if profile is None:
            profile = next((client for client in self.clients if client.match.fits(headers, system)), self.generic)
            if len(self._picked) >= _PICKS:
                self._picked.clear()
            self._picked[known] = profile
        return profile

    def named(self, name: str) -> Profile:
        """Gives the profile of this name, the generic one when there is none."""
        return next((client for client in self.clients if client.name == name), self.generic)

    def with_settings(
        self,
        *,
        ignore_tags: Sequence[str] = (),
        answer_tools: Sequence[str] = (),
        denial_patterns: Sequence[re.Pattern[str] | str] = (),
    ) -> Profiles:
        """Gives the profiles with a person's own additions, which hold for every client."""
        denials = tuple(re.compile(pattern) if isinstance(pattern, str) else pattern for pattern in denial_patterns)

        def widened(profile: Profile) -> Profile:
            return sealed(
                replace(
                    profile,
                    tags=tuple(dict.fromkeys((*profile.tags, *ignore_tags))),
                    answer_tools=tuple(dict.fromkeys((*profile.answer_tools, *answer_tools))),
                    denials=(*profile.denials, *denials),
                )
            )

        return Profiles(widened(self.generic), tuple(widened(client) for client in self.clients))
