"""Every error that Goalkeeper raises on purpose, and what the caller gets to read.

GoalkeeperError
 ├── ConfigError          a setting, rule or profile file is wrong (names file, line, key)
 ├── BadRequest           the client's body can't be used by one of our own doors
 ├── TooLarge             the client's body is larger than server.max_body_bytes
 ├── NoWebSocket          the client asked for a WebSocket
 ├── Unauthorized         one of our own doors was asked without its token
 ├── ForbiddenHost        one of our own doors was asked under a foreign name
 ├── UnreadableBody       a model request that we can't parse: forwarded untouched
 ├── InvalidRewrite       an invariant refused a body that we built: the safer body goes out
 ├── NothingFits          no body that keeps the promises fits the window
 ├── UpstreamUnreachable  no connection to the model
 ├── UpstreamTimeout      the model didn't answer in time
 ├── UpstreamBroken       the model's answer broke off in the middle
 ├── UpstreamRefused      the model said no after we had opened the client's stream
 ├── ClientGone           the client left before its answer was complete
 ├── NotFound             an id that stands for nothing
 └── StoreError           the data folder can't be read or written
"""

from __future__ import annotations


class GoalkeeperError(Exception):
    """The base of all errors raised on purpose; `status` is the HTTP status a caller gets."""

    status = 500
    code = "goalkeeper_error"


class ConfigError(GoalkeeperError):
    """A setting, rule or profile is wrong; the message names file, line or key and the remedy."""

    code = "config_error"


class BadRequest(GoalkeeperError):
    """One of our own doors got input that it can't use."""

    status = 400
    code = "bad_request"


class TooLarge(GoalkeeperError):
    """The client's body is larger than the setting server.max_body_bytes allows."""

    status = 413
    code = "request_too_large"


class NoWebSocket(GoalkeeperError):
    """The client asked for a WebSocket; clients that are told so fall back to HTTP."""

    status = 426
    code = "websocket_not_supported"


class Unauthorized(GoalkeeperError):
    """One of our own doors was asked without its token."""

    status = 401
    code = "token_needed"


class ForbiddenHost(GoalkeeperError):
    """One of our own doors was asked under a name that isn't this machine's: a web page may be behind it."""

    status = 403
    code = "forbidden_host"


class UnreadableBody(GoalkeeperError):
    """A model request can't be parsed; its bytes are forwarded untouched."""

    code = "unreadable_body"


class InvalidRewrite(GoalkeeperError):
    """A rewritten body breaks an invariant of its dialect."""

    code = "invalid_rewrite"


class NothingFits(GoalkeeperError):
    """No body that keeps the promises fits the model's window (form: clients.md, what most agents recognise)."""

    status = 400
    code = "context_length_exceeded"


class UpstreamUnreachable(GoalkeeperError):
    """The upstream refused the connection or broke it before a status line."""

    status = 502
    code = "upstream_unreachable"


class UpstreamTimeout(GoalkeeperError):
    """The upstream sent no status line in time."""

    status = 504
    code = "upstream_timeout"


class UpstreamBroken(GoalkeeperError):
    """The upstream's answer broke off after its status line."""

    status = 502
    code = "upstream_broken"


class UpstreamRefused(GoalkeeperError):
    """The upstream answered without a stream after the client's stream had been opened early; `body` is its answer."""

    status = 502
    code = "upstream_refused"

    def __init__(self, message: str, status: int, body: bytes) -> None:
        super().__init__(message)
        self.status = status
        self.body = body


class ClientGone(GoalkeeperError):
    """The client left before its answer was complete; nobody reads this error."""

    status = 499
    code = "client_gone"


class NotFound(GoalkeeperError):
    """An id or prefix stands for nothing that is stored."""

    status = 404
    code = "not_found"


class StoreError(GoalkeeperError):
    """The data folder can't be read or written."""

    code = "store_error"
