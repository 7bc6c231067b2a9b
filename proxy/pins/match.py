"""Judges one human turn: what it is that the user said, and whether it binds.

First come the signs of what binds nothing (pasted output, a plain answer, a question, a go-ahead, small talk, a step);
what remains is pinned. The words of all languages stand in the rule files, the structure stands here.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import cast

import msgspec

from proxy.pins.model import Kind, Verdict
from proxy.pins.quoted import ends_of, strip_quoted
from proxy.pins.regexps import Subject
from proxy.pins.rule import BINDING, Rule
from proxy.pins.rules import RuleSet

WEAK = 50  # binding rules below this priority give way to structure
WHOLE = 94  # history rules from this priority on speak about the whole turn: no other rule is asked
QUESTION = 200  # closing characters of the assistant that hold what it asks
REMARK = 60  # characters of own words above pasted output that are only a remark about it
ANSWER = 80  # characters of a turn that can be nothing but an answer
LONG = 500  # characters of own words above which a turn isn't just a question, a complaint, a step
LISTED = 3  # points of a list
BRIEF = 4  # words of a turn that withdraws or closes and says nothing else
CACHEABLE = 8000  # characters; a longer text isn't worth its place in the cache

_PLAIN_MARKS = str.maketrans({"’": "'", "‘": "'", "´": "'", "\u00a0": " ", "\u202f": " "})
_LETTER = re.compile(r"\w")
_ASKS = re.compile(
    r"[?？؟]|\b(?:which|choose|pick|options?|variants?|alternatives?|opci[oó]n(?:es)?|varianten?|optionen|op[cç][oõ]es)\b"
    r"|(?:^|[\s(])[aA1][.):]?\s.{1,120}[\s,;(][bB2][.):]?\s|вариант|选择|方案|どれ|どちら|다음 중|اختر",
    re.IGNORECASE | re.DOTALL,
)
_INQUIRES = re.compile(  # it asks how things are, and not how they shall be
    r"\b(?:did|do you (?:have|know|use)|have you|has|was|were|is|are|who|when|can you|does|hast|haben|ist|war"
    r"|gibt|wer|wann|avez|as-tu"
    r"|est|était|qui|tienes?|tiene|es|está|era|hay|quién|tem|você|há|quem|hai|ha|è|chi|есть|был[аио]?"
    r"|кто|когда)\b"
    r"|у (?:вас|тебя)|是什么|是不是|有没有|吗"
    r"|ですか|ありますか|でしたか|있나요|인가요|뭐예요|هل|ما هو|ما هي",
    re.IGNORECASE,
)
_SHALL = re.compile(
    r"\b(?:should|shall|would|want|prefer|or|soll\w*|oder|darf|möcht\w+|dois|faut|veux|voulez|ou|debo|debe|quieres?|o|deve\w*|devo"
    r"|quer|vuoi|oppure|или|нужно|хот\w+)\b|还是|要不要|需要|しますか|ましょう|할까|아니면| أم ",
    re.IGNORECASE,
)
_PICK = re.compile(
    r"^\W*(?:option|opci[oó]n|op[cç][aã]o|variante?|nummer|number|вариант|choice|plan|phase|step|stage|schritt|étape|paso|passo|шаг|q)?\s*"
    r"(?:\d{1,2}\s*[:.=-]\s*)?(?:[a-hабвг]|[أبجد]|\d{1,2}"
    r"|(?:the )?(?:first|second|third|last|former|latter)(?: one)?|第?[一二三四五123-9][个個号番]?)"
    r"(?:\s*(?:,|and|&|\+)\s*(?:q?\d{1,2}\s*[:.=-]\s*)?[a-h\d]){0,9}(?:\s*,?\s*(?:please|pls|bitte|por favor))?\W*$",
    re.IGNORECASE,
)
_OFFERS = re.compile(  # it names what can be chosen
    r"\b(?:or|which|oder|welche\w*|ou|quel\w*|lequel|cuál\w*|qual|quais|oppure|quale|quali)\b|или|как(?:ой|ая|ие)|还是|哪"
    r"|それとも|どちら|どれ|아니면|어느|어떤| أم |أي |[aA1][.)] ",
    re.IGNORECASE,
)
_EVERY = re.compile(  # an answer that picks all or nothing of what was offered
    r"^\W*(?:both|both of them|both please|neither|none|none of them|all of them|all three|the same|either|beide"
    r"|alle drei|keins?|keines von beiden|les deux|aucun|ni l'un ni l'autre|tous|ambos|ambas|los dos|ninguno"
    r"|os dois|nenhum|todos|entrambi|tutti e due|nessuno|оба|ни один|все|都要|两个都要|全部|都不要|両方|両方とも"
    r"|どちらも|둘 다|전부|كلاهما|لا شيء منها)\W*$",
    re.IGNORECASE,
)
_POINT = re.compile(r"^\s{0,8}(?:[-*•–]|\d{1,2}[.)])\s+\S", re.MULTILINE)
_FILLER = re.compile(
    r"^\W*(?:log line|step|line|turn|msg|message|item)?\s*[a-z]?\d{1,5}\b[\s:.-]*(\w)?\1*\W*$", re.IGNORECASE
)


class _Said(msgspec.Struct, frozen=True):
    """What a verdict depends on."""

    text: str
    first: bool
    asks: bool  # whether the assistant had asked something
    offers: bool  # whether it named what can be chosen
    inquires: bool  # whether it asked how things are, and not how they shall be
    rules: RuleSet
    via: str
    client: str


def judge(text: str, *, first: bool, asked: str, rules: RuleSet, via: str = "", client: str = "") -> Verdict:
    """Gives what the rules say about a turn; `first`: no goal stands, `asked`: the assistant's closing words."""
    asks = _ASKS.search(asked) is not None
    offers = asks and _OFFERS.search(asked[-QUESTION:]) is not None
    said = _Said(text, first, asks, offers, asks and _inquiry(asked[-QUESTION:]), rules, via, client)
    return _cached(said) if len(text) <= CACHEABLE else _judge(said)


def _judge(said: _Said) -> Verdict:
    control = _control(said.text, said.rules.marker)
    if control:
        return control
    bounded = _bounded(said.text)
    own = strip_quoted(bounded)
    if not _LETTER.search(own.replace("“…”", "")):
        return _without_words(said, own)
    found = _applying(said, Subject.of(own))
    winner = next((rule for rule in found if rule.decides), None)
    if said.first and not _small(winner, own):
        stated = winner is not None and winner.kind == "goal"
        return Verdict("goal", winner.name if winner and stated else "first turn", labels=("goal",))
    labels = tuple(dict.fromkeys(rule.label for rule in found))
    pasted = len(own) < REMARK and len(own) < len(bounded) // 2
    found_by = _by_shape(said, own, labels) or _by_rule(_heeds(winner, own), labels, pasted=pasted)
    return found_by or _by_default(said, labels, own)


_cached = lru_cache(maxsize=4096)(_judge)


def own_words(text: str) -> str:
    """Gives what rules see of a turn: its ends, quoted material left out, one form of each apostrophe."""
    return strip_quoted(_bounded(text))


def applying(rules: RuleSet, subject: Subject, via: str, client: str) -> tuple[Rule, ...]:
    """Gives every rule that speaks about the text, the highest priority first."""
    role = "tool" if via else "user"
    return tuple(rule for rule in rules.rules if rule.applies(subject, role, client))


def _inquiry(question: str) -> bool:
    marked = any(mark in question for mark in "?？؟")
    return marked and _INQUIRES.search(question) is not None and _SHALL.search(question) is None


def _bounded(text: str) -> str:
    return ends_of(text).translate(_PLAIN_MARKS)


def _applying(said: _Said, subject: Subject) -> list[Rule]:
    """Gives the rule that decides, and those that name what the turn does to older pins.

    A long turn isn't just passing talk: signs of that aren't looked for in it.
    """
    found: list[Rule] = []
    decided = False
    role = "tool" if said.via else "user"
    long = len(subject.text) > LONG
    for rule in said.rules.rules:
        if rule.decides and (decided or (long and rule.kind is None and rule.priority < WHOLE)):
            continue
        if rule.applies(subject, role, said.client):
            found.append(rule)
            decided = decided or rule.decides
    return found


def _small(winner: Rule | None, own: str) -> bool:
    """Tells whether an opening turn is a greeting, a go-ahead or a client's command, which state no goal."""
    if winner is None:
        return _PICK.match(own) is not None
    return winner.kind is None and (winner.label in ("chatter", "approval") or winner.priority >= WHOLE)


def _without_words(said: _Said, own: str) -> Verdict:
    if said.first and said.text.strip():
        return Verdict("goal", "first turn", labels=("goal",))
    if own:  # a quotation alone is material to work on
        return Verdict(None, "quotation" if "“…”" in own else "no words", labels=("step",))
    return Verdict(None, "pasted material", labels=("complaint",))


def _by_shape(said: _Said, own: str, labels: tuple[str, ...]) -> Verdict | None:
    """Judges the letter of an option and a numbered filler line, which no word list can hold."""
    picked = _PICK.match(own) is not None
    if (picked and said.asks) or (said.offers and _EVERY.match(own)):
        return Verdict("decision", "option picked", labels=("decision",))
    if _FILLER.match(own):
        return Verdict(None, "filler", labels=("step", *labels))
    return Verdict(None, "menu", labels=("approval",)) if picked else None


def _heeds(winner: Rule | None, own: str) -> Rule | None:
    """Leaves out a sign of passing talk in a turn that is a list: who lists three points wants something to hold."""
    listed = (
        winner is not None and winner.kind is None and winner.priority < WHOLE and len(_POINT.findall(own)) >= LISTED
    )
    return None if listed else winner


def _by_rule(winner: Rule | None, labels: tuple[str, ...], *, pasted: bool) -> Verdict | None:
    weak = winner is None or (winner.kind is not None and winner.priority < WEAK)
    if weak and pasted:  # a few words above pasted output say that something fails
        return Verdict(None, "pasted material", labels=("complaint", *labels))
    if winner is None:
        return None
    deciding = (winner.label, *(label for label in labels if label != winner.label))
    return Verdict(winner.kind, winner.name, winner.scope, deciding)


def _by_default(said: _Said, labels: tuple[str, ...], own: str) -> Verdict:
    act = next((label for label in labels if label in ("retract", "close")), "")
    if act and len(own.split()) <= BRIEF:  # "forget it", "that is done": an act and no words to keep
        return Verdict(None, act, labels=(act, *(label for label in labels if label != act)))
    kind: Kind = "constraint"
    if said.asks:
        kind = "fact" if said.inquires and len(own) <= ANSWER else "decision"
    return Verdict(kind, "nothing says otherwise", labels=(kind, *labels))


@lru_cache(maxsize=16)
def _control_pattern(marker: str) -> re.Pattern[str]:
    return re.compile(rf"^[ \t]*{re.escape(marker)}(un)?pin(?::(\w+))?[ \t]+(?=\S)", re.MULTILINE | re.IGNORECASE)


def _control(text: str, marker: str) -> Verdict | None:
    """Reads `!pin TEXT`, `!pin:goal TEXT` and `!unpin TEXT` at the start of a line; TEXT runs to the turn's end."""
    found = _control_pattern(marker).search(text) if marker in text else None
    if found is None:
        return None
    span = (found.end(), len(text.rstrip()))
    if found[1]:
        return Verdict(None, "unpin", labels=("retract", "control"), span=span)
    named = (found[2] or "constraint").lower()
    kind = cast("Kind", named if named in BINDING else "constraint")
    before = text[: found.start()].strip()  # words before the marker aren't to be lost: then the whole turn is pinned
    return Verdict(kind, "pin", labels=(kind, "control"), span=None if before else span)
