"""Translates the neutral configuration words of case files into Goalkeeper's own keys, in one table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tests.cases.faults import Malformed

# neutral key → own key; None: the word needs no setting of ours
KEYS: Mapping[str, str | None] = {
    "compaction.window_tokens": "window",
    "compaction.trigger": "trigger",
    "compaction.mode": "summarizer.when",
    "compaction.on_overflow": "overflow.retry",
    "pin.max_tokens": "pins.max_tokens",
    "pin.ignore_wrapped": "clients.ignore_tags",
    "pin.user_answer_tools": "clients.answer_tools",
    "pin.denial_patterns": "clients.denial_patterns",
    "pin.rules": "pins.rules",
    "inject.strict_roles": "strict_roles",
    "inject.placement": None,  # strict_roles alone puts pins into the first user message
    "redact.enabled": "redaction.enabled",
    "receipts.store_tool_output": "receipts.tool_output",
    "facts.scope": "facts.scope",
    "facts.inject_from_disk": "facts.recall",
    "stream.keepalive_seconds": "stream.keepalive_seconds",
    "stream.early_open": "stream.early_open",
    "repair.orphan_tool_results": "repair.orphan_tool_results",
    "compress.dedupe_tool_results": None,  # equal results are never merged
}

# keys whose neutral values are words of their own
VALUES: Mapping[str, Mapping[str, Any]] = {
    "compaction.mode": {"summarize": "inline"},
    "compaction.on_overflow": {"compact_and_retry_once": True},
    "inject.placement": {"merge_first_user": None},
}

RULE_KEYS: Mapping[str, str] = {"match": "patterns"}


def settings_of(neutral: Mapping[str, Any], *, strict: bool = True) -> dict[str, Any]:
    """Gives our settings as nested mappings.

    Raises Malformed for a key or value without a counterpart; with `strict` off such a key goes through as it stands,
    which is how a case shows that a wrong configuration is refused.
    """
    settings: dict[str, Any] = {}
    for key, value in _leaves(neutral):
        if key not in KEYS:
            if strict:
                raise Malformed(f"unsupported: the neutral config key {key!r} has no counterpart")
            _put(settings, key, value)
            continue
        own = KEYS[key]
        translated = _value(key, value)
        if own is not None:
            _put(settings, own, translated)
    return settings


def own_key(neutral: str) -> str:
    """Gives the name under which our errors speak of a neutral key or of the end of one (`rules[0].match`)."""
    index = re.search(r"^(.*?)(\[\d+\])(?:\.(\w+))?$", neutral)
    if index is None:
        return _own_name(neutral)
    base, number, field = index.groups()
    last = f".{RULE_KEYS.get(field, field)}" if field else ""
    return f"{_own_name(base)}{number}{last}"


def _own_name(neutral: str) -> str:
    for key, own in KEYS.items():
        if own is not None and (key == neutral or key.endswith(f".{neutral}")):
            return own
    return neutral


def _leaves(neutral: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    leaves: list[tuple[str, Any]] = []
    for name, value in neutral.items():
        key = f"{prefix}{name}"
        if isinstance(value, Mapping) and value and key not in KEYS:
            leaves.extend(_leaves(value, f"{key}."))
        else:
            leaves.append((key, value))
    return leaves


def _value(key: str, value: Any) -> Any:
    if key == "pin.rules":
        return [_rule(rule) for rule in value] if isinstance(value, list) else value
    words = VALUES.get(key)
    if words is None:
        return value
    if not isinstance(value, str) or value not in words:
        raise Malformed(f"unsupported: {key} can't be {value!r} (known: {', '.join(words)})")
    return words[value]


def _rule(rule: Any) -> Any:
    """Renames the fields of a neutral rule; one bare pattern becomes a list of one, as our rule files want it."""
    if not isinstance(rule, Mapping):
        return rule
    renamed = {RULE_KEYS.get(name, name): value for name, value in rule.items()}
    if isinstance(renamed.get("patterns"), str):
        renamed["patterns"] = [renamed["patterns"]]
    return {"name": "case-rule", "kind": "correction"} | renamed


def _put(settings: dict[str, Any], key: str, value: Any) -> None:
    *parents, last = key.split(".")
    place = settings
    for parent in parents:
        place = place.setdefault(parent, {})
    place[last] = value
