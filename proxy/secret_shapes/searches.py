"""All searches for secrets, one after the other."""

from __future__ import annotations

from collections.abc import Iterator

from proxy.secret_shapes.assigned import ANCHORS, assignments
from proxy.secret_shapes.commands import flags
from proxy.secret_shapes.headers import headers
from proxy.secret_shapes.keys import key_blocks, seed_phrases
from proxy.secret_shapes.probe import Probe, Secret
from proxy.secret_shapes.urls import urls
from proxy.secret_shapes.vendors import vendor_keys

# each search with the anchors without which it finds nothing: most texts have none, and most texts are short
_SEARCHES = (
    (vendor_keys, ()),
    (urls, (b"://", b":\\/\\/", b"sig=", b"signature=")),
    (key_blocks, (b"-----begin ",)),
    (seed_phrases, (b"phrase", b"mnemonic")),
    (headers, (b"bearer", b"authorization", b"cookie")),
    (flags, (b" -",)),
    (assignments, ANCHORS),
)


def secrets_in(probe: Probe) -> Iterator[Secret]:
    """Gives every value with the shape of a secret, in no order; they may overlap."""
    stands = probe.low.__contains__
    for search, anchors in _SEARCHES:
        if not anchors or any(map(stands, anchors)) or (search is assignments and probe.foreign):
            yield from search(probe)
