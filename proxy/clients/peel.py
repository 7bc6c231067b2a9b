"""Peeling: what is left of a text when the machine's wrappers are gone, as verbatim spans."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

Span = tuple[int, int]


def wrapper_pattern(tags: Sequence[str]) -> re.Pattern[str]:
    """Gives a pattern for the opening and closing marks of these tags; an opening has group 1, a closing group 2."""
    names = "|".join(re.escape(tag) for tag in sorted(tags, key=len, reverse=True))
    return re.compile(rf"<(?:({names})(?:\s[^<>]*)?|/({names}))>")


def outside(text: str, tags: re.Pattern[str]) -> Iterator[Span]:
    """Yields the spans outside of wrappers.

    A wrapper begins where its opening mark stands first on a line (or right behind another wrapper), so that a mark
    quoted in a sentence stays human; it ends at the closing mark that balances it. One that never closes is a wrapper
    only when the text begins with it.
    """
    at = 0
    position = 0
    while (mark := tags.search(text, position)) is not None:
        position = mark.end()
        if mark.group(1) is None or not _leads(text, at, mark.start()):
            continue
        end = _closing(text, tags, mark)
        if end is None:
            if text[: mark.start()].strip():
                continue
            end = len(text)
        yield at, mark.start()
        at = position = end
    yield at, len(text)


def _leads(text: str, after: int, start: int) -> bool:
    before = text[max(after, text.rfind("\n", after, start) + 1) : start]
    return not before.strip()


def _closing(text: str, tags: re.Pattern[str], opening: re.Match[str]) -> int | None:
    name, depth = opening.group(1), 1
    for mark in tags.finditer(text, opening.end()):
        if mark.group(1) == name:
            depth += 1
        elif mark.group(2) == name:
            depth -= 1
            if depth == 0:
                return mark.end()
    # More openings than closings: the wrapped text mentions its own tag, so the last closing mark ends it.
    return _last_closing(text, name, opening.end())


def _last_closing(text: str, name: str, after: int) -> int | None:
    mark = f"</{name}>"
    found = text.rfind(mark, after)
    return None if found < 0 else found + len(mark)


def trimmed(text: str, span: Span, *, quotes: bool) -> Span | None:
    """Gives the span without blanks at its ends and, if asked, without one pair of double quotes; None when empty."""
    start, end = span
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    whole = start == 0 or not text[:start].strip()
    if (
        quotes
        and whole
        and end - start > 2
        and text[start] == text[end - 1] == '"'
        and '"' not in text[start + 1 : end - 1]
    ):
        return start + 1, end - 1
    return (start, end) if start < end else None
