"""What OpenAI's APIs have in common: the form of their errors."""

from __future__ import annotations

from typing import Any

import msgspec

from proxy.errors import GoalkeeperError, NothingFits


def error_fields(error: GoalkeeperError) -> dict[str, Any]:
    """Gives our own error as the object that stands under `error`."""
    kind = "invalid_request_error" if isinstance(error, NothingFits) else "goalkeeper_error"
    return {"message": str(error), "type": kind, "param": None, "code": error.code}


def error_body(error: GoalkeeperError) -> bytes:
    """Gives our own error as a JSON body."""
    return msgspec.json.encode({"error": error_fields(error)})
