"""Remembers where each conversation's client works, so that its texts are searched once."""

from __future__ import annotations

from proxy.facts import Place, place_of
from proxy.transcript import Message, Transcript

_OPENING = 6  # messages before the first answer that may hold an environment block
_REMEMBERED = 512


class Surroundings:
    """Places by the messages that tell them."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], Place] = {}

    def of(self, transcript: Transcript) -> Place:
        """Gives where the client of this request works."""
        opening = _opening(transcript.messages)
        key = (transcript.system, *(message.digest for message in opening))
        place = self._known.get(key)
        if place is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            texts = [message.text for message in opening if message.role == "user"]
            place = self._known[key] = place_of(transcript.system_text, texts)
        return place


def _opening(messages: tuple[Message, ...]) -> list[Message]:
    found = []
    for message in messages[:_OPENING]:
        if message.role == "assistant":
            break
        found.append(message)
    return found
