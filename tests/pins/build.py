"""Builds turns, pins and the packaged rules for the tests of pins."""

from functools import cache
from hashlib import blake2b

from proxy.pins.lifecycle import fold
from proxy.pins.match import judge
from proxy.pins.model import Entry, Ledger, Pin, Verdict
from proxy.pins.rules import RuleSet, load_rules
from proxy.settings.loading import packaged_folder
from proxy.transcript import HumanTurn


@cache
def rules() -> RuleSet:
    return load_rules([packaged_folder() / "pins.yaml"])


def turn(number: int, text: str, asked: str = "", via: str = "") -> HumanTurn:
    key = blake2b(text.encode(), digest_size=16).digest()
    return HumanTurn(key, text, number, f"{number:032x}", via, asked)


def said(*texts: str | tuple[str, str]) -> Ledger:
    """Folds texts, or pairs of text and the assistant's question before it."""
    pairs = [(text, "") if isinstance(text, str) else text for text in texts]
    return fold([turn(number, text, asked) for number, (text, asked) in enumerate(pairs, 1)], rules())


def verdict(text: str, asked: str = "", *, first: bool = False) -> Verdict:
    return judge(text, first=first, asked=asked, rules=rules())


def pin(number: int, kind: str, text: str, **fields: object) -> Pin:
    return Pin(f"p{number:011x}", kind, text, b"k", number, f"{number:032x}", "test", **fields)


def entry(number: int, text: str) -> Entry:
    return Entry(b"k", text, number, f"{number:032x}", "step")
