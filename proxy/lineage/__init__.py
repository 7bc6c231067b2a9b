"""Lineage: which conversation a request belongs to, and which human words it has lost."""

from proxy.lineage.engine import Engine
from proxy.lineage.keys import KeyReader, Reader, Request
from proxy.lineage.link import Link
from proxy.lineage.records import BranchRecord, BranchState, Changes, EmissionRecord, Hint, Mark, Snapshot, StoredBranch

__all__ = [
    "BranchRecord",
    "BranchState",
    "Changes",
    "EmissionRecord",
    "Engine",
    "Hint",
    "KeyReader",
    "Link",
    "Mark",
    "Reader",
    "Request",
    "Snapshot",
    "StoredBranch",
]
