"""One pin rule, compiled: what it recognises and what it says about a turn."""

from __future__ import annotations

from fnmatch import fnmatchcase

import msgspec

from proxy.pins.model import Kind, Scope
from proxy.pins.phrases import Phrases
from proxy.pins.regexps import Matcher, Subject, any_matches, first_match

BINDING = ("goal", "correction", "constraint", "preference", "decision", "commitment", "fact")
PASSING = ("approval", "question", "complaint", "chatter", "step")  # labels of history
ACTS = ("retract", "close", "undo", "change", "replace")  # labels that act on older pins and decide nothing alone
SCOPES = ("once", "session", "project")


class Example(msgspec.Struct, frozen=True):
    """A text that a rule file says something about, and where it stands."""

    text: str
    place: str


class Rule(msgspec.Struct, frozen=True):
    """One compiled rule; with `kind` None a turn that it decides is history, or it only adds its label."""

    name: str
    kind: Kind | None
    label: str
    scope: Scope
    priority: int
    matchers: tuple[Matcher, ...]
    exceptions: tuple[Matcher, ...]
    roles: tuple[str, ...]  # "user", "tool" (human words in a tool result); () = both
    clients: tuple[str, ...]  # globs over profile names; () = all
    match: tuple[Example, ...]  # what this rule must decide
    no_match: tuple[Example, ...]  # what it must leave alone
    place: str  # file:line:column, or the key path of an inline rule
    phrases: Phrases | None = None  # what the whole turn may consist of

    @property
    def decides(self) -> bool:
        """Whether the rule can decide a turn, or only adds its label."""
        return self.kind is not None or self.label in PASSING

    def applies(self, subject: Subject, role: str, client: str) -> bool:
        """Tells whether the rule speaks about this text."""
        if self.roles and role not in self.roles:
            return False
        if self.clients and not any(fnmatchcase(client, glob) for glob in self.clients):
            return False
        found = any_matches(self.matchers, subject) or self.made_up(subject)
        return found and not any_matches(self.exceptions, subject)

    def made_up(self, subject: Subject) -> bool:
        """Tells whether the text consists of the rule's phrases."""
        return self.phrases is not None and self.phrases.make_up(subject.said)

    def words_in(self, subject: Subject) -> str:
        """Gives the words on which the rule speaks."""
        return first_match(self.matchers, subject) or (subject.text if self.made_up(subject) else "")
