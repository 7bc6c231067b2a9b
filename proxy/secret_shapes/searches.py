"""All searches for secrets, one after the other."""

from __future__ import annotations

from collections.abc import Iterator

from proxy.secret_shapes.assigned import assignments
from proxy.secret_shapes.commands import flags
from proxy.secret_shapes.headers import headers
from proxy.secret_shapes.keys import key_blocks, seed_phrases
from proxy.secret_shapes.probe import Probe, Secret
from proxy.secret_shapes.urls import urls
from proxy.secret_shapes.vendors import vendor_keys

_SEARCHES = (vendor_keys, urls, key_blocks, seed_phrases, headers, flags, assignments)


def secrets_in(probe: Probe) -> Iterator[Secret]:
    """Gives every value with the shape of a secret, in no order; they may overlap."""
    for search in _SEARCHES:
        yield from search(probe)
