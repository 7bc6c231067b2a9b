"""The shapes of secret values: vendors' formats, key blocks, credentials in URLs, headers, commands, assignments.

Each shape has an anchor that is looked for at memory speed; a pattern is tried only where an anchor stands, and every
repetition in a pattern is bounded, so that no text takes more than linear time.
"""

from __future__ import annotations

from proxy.secret_shapes.probe import Probe, Secret

__all__ = ["Secret", "people_in", "shapes_in"]


def shapes_in(text: str) -> list[Secret]:
    """Gives every value with the shape of a secret, in no order; they may overlap."""
    from proxy.secret_shapes.searches import secrets_in  # noqa: PLC0415 (its patterns take 40 ms, not needed at the start)

    return list(secrets_in(Probe.of(text)))


def people_in(text: str) -> list[Secret]:
    """Gives e-mail addresses and phone numbers, in no order; they may overlap."""
    from proxy.secret_shapes.people import addresses_and_numbers  # noqa: PLC0415 (only where settings ask for it)

    return list(addresses_and_numbers(Probe.of(text)))
