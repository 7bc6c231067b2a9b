"""Judges one human turn: what it is that the user said, and whether it binds.

First come the signs of what binds nothing (pasted output, a plain answer, a question, a go-ahead, small talk, a step);
what remains is pinned. The words of all languages stand in the rule files, the structure stands here.
"""

from __future__ import annotations

import re
from functools import lru_cache

from proxy.pins.model import Kind, Verdict
from proxy.pins.quoted import ends_of, strip_quoted
from proxy.pins.regexps import Subject
from proxy.pins.rule import BINDING, Rule
from proxy.pins.rules import RuleSet

WEAK = 50  # rules below this priority give way to structure
WHOLE = 94  # history rules from this priority on speak about the whole turn: no other rule is asked
REMARK = 60  # characters
BRIEF = 4  # words

_CURLY = str.maketrans({"’": "'", "‘": "'", "´": "'", "\u00a0": " ", "\u202f": " "})  # noqa: RUF001
_ASKS = re.compile(
    r"[?？؟]|\b(?:which|choose|pick|options?|variants?|alternatives?|opci[oó]n(?:es)?|varianten?|optionen|op[cç][oõ]es)\b"
    r"|(?:^|[\s(])[aA1][.):]?\s.{1,120}[\s,;(][bB2][.):]?\s|вариант|选择|方案|どれ|どちら|다음 중|اختر",
    re.IGNORECASE | re.DOTALL,
)
_PICK = re.compile(
    r"^\W*(?:option|opci[oó]n|op[cç][aã]o|variante?|nummer|number|вариант|choice|plan|q)?\s*"
    r"(?:[a-h]|\d{1,2}|(?:the )?(?:first|second|third|last|former|latter)(?: one)?|第?[一二三四五123-9][个個号番]?)"
    r"(?:\s*(?:,|and|&|\+)\s*(?:q?\d{1,2}\s*:\s*)?[a-h\d])*(?:\s*,?\s*(?:please|pls|bitte|por favor))?\W*$",
    re.IGNORECASE,
)
_FILLER = re.compile(r"^\W*(?:log line|step|line|turn|msg|message|item)?\s*[a-z]?\d{1,5}\b[\s:.-]*(\w)?\1*\W*$", re.IGNORECASE)



def judge(text: str, *, first: bool, asked: str, rules: RuleSet, via: str = "", client: str = "") -> Verdict:
    """Gives what the rules say about a turn; `first`: no goal was said yet, `asked`: the assistant's closing words."""
    if len(text) > 8000:  # such a text isn't worth its place in the cache
        return _judge(text, first, _ASKS.search(asked) is not None, rules, via, client)
    return _cached(text, first, _ASKS.search(asked) is not None, rules, via, client)


def _judge(text: str, first: bool, asks: bool, rules: RuleSet, via: str, client: str) -> Verdict:
    control = _control(text, rules.marker)
    if control:
        return control
    bounded = ends_of(text).translate(_CURLY)
    own = strip_quoted(bounded)
    pasted = len(own) < len(bounded) // 2
    if not re.search(r"\w", own.replace("“…”", "")):
        return _without_words(text, own, first)
    subject = Subject.of(own)
    role = "tool" if via else "user"
    found = _applying(rules, subject, role, client)
    labels = tuple(dict.fromkeys(rule.label for rule in found))
    winner = next((rule for rule in found if rule.decides), None)
    if first and not _small(winner, own):
        return Verdict("goal", winner.name if winner and winner.kind == "goal" else "first turn", "session", ("goal",))
    if _FILLER.match(own) and not (asks and _PICK.match(own)):
        return Verdict(None, "filler", labels=("step", *labels))
    if _PICK.match(own):
        return _picked(asks)
    if winner is None or (winner.kind and winner.priority < WEAK):
        if pasted and len(own) < REMARK:  # a few words above pasted output say that something fails
            return Verdict(None, "pasted material", labels=("complaint", *labels))
    if winner is None:
        return _remaining(own, asks, labels)
    deciding = (winner.label, *(label for label in labels if label != winner.label))
    return Verdict(winner.kind, winner.name, winner.scope, deciding)


def _applying(rules: RuleSet, subject: Subject, role: str, client: str) -> list[Rule]:
    """Gives the rules that speak about the text; a go-ahead or greeting and nothing else ends the search."""
    found: list[Rule] = []
    for rule in rules.rules:
        if rule.applies(subject, role, client):
            found.append(rule)
            if rule.kind is None and rule.priority >= WHOLE:
                break
    return found


_cached = lru_cache(maxsize=4096)(_judge)


def _small(winner: Rule | None, own: str) -> bool:
    """Tells whether an opening turn is a greeting or a go-ahead, which states no goal."""
    if winner is None:
        return _PICK.match(own) is not None
    return winner.kind is None and winner.label in ("chatter", "approval")


def _without_words(text: str, own: str, first: bool) -> Verdict:
    if first and text.strip():
        return Verdict("goal", "first turn", labels=("goal",))
    if own:  # a quotation alone is material to work on
        return Verdict(None, "quotation", labels=("step",))
    if text.strip() and not re.search(r"\w", text):
        return Verdict(None, "no words", labels=("chatter",))
    return Verdict(None, "pasted material", labels=("complaint",))


def _picked(asks: bool) -> Verdict:
    if asks:
        return Verdict("decision", "option picked", labels=("decision",))
    return Verdict(None, "menu", labels=("approval",))


def _remaining(own: str, asks: bool, labels: tuple[str, ...]) -> Verdict:
    act = next((label for label in labels if label in ("retract", "close")), "")
    if act and len(own.split()) <= BRIEF:  # "forget it", "that is done": an act and no words to keep
        return Verdict(None, act, labels=(act, *(label for label in labels if label != act)))
    kind: Kind = "decision" if asks else "constraint"
    return Verdict(kind, "nothing says otherwise", labels=(kind, *labels))


def _control(text: str, marker: str) -> Verdict | None:
    """Reads `!pin TEXT`, `!pin:goal TEXT` and `!unpin TEXT` at the start of a line; TEXT runs to the end of the turn."""
    for word in ("pin", "unpin"):
        found = re.search(rf"^[ \t]*{re.escape(marker)}{word}(?::(\w+))?[ \t]+(?=\S)", text, re.MULTILINE | re.IGNORECASE)
        if not found:
            continue
        kind = (found[1] or "constraint").lower()
        span = (found.end(), len(text.rstrip()))
        if word == "unpin":
            return Verdict(None, "unpin", labels=("retract", "control"), span=span)
        bound: Kind = kind if kind in BINDING else "constraint"  # type: ignore[assignment]
        alone = not text[: found.start()].strip()
        return Verdict(bound, "pin", labels=(bound, "control"), span=span if alone else None)
    return None
