"""Asks a running proxy which rules and client profiles it uses."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

from proxy.cli.output import line, print_json
from proxy.errors import BadRequest, NotFound
from proxy.settings.model import Settings

_SECONDS = 5.0
_OK = 200
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "[::]": "::1"}  # noqa: S104 (an address that is listened on)


def report(settings: Settings, url: str | None, *, as_json: bool) -> int:
    """Prints what the proxy uses and what it refused; 0 when all that was saved is in force, else 1."""
    server = settings.server
    place = url or f"http://{_EVERYWHERE.get(server.host, server.host)}:{server.port}"
    found = _asked(place, server.token)
    if as_json:
        print_json({"url": place, **found})
        return 1 if found["problems"] else 0
    for problem in found["problems"]:
        print(line(f"not in force: {problem}"))
    counts = f"{len(found['rules'])} rules, {len(found['clients'])} client profiles"
    print(line(f"{place} uses {counts}, in force since {found['since']}"))
    for place in (*found["files"], *found["folders"]):
        print(line(f"  {place}"))
    return 1 if found["problems"] else 0


def _asked(url: str, token: str | None) -> dict[str, Any]:
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname:
        raise BadRequest(f"--url {url!r}: must be like http://127.0.0.1:8787")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    connection = http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=_SECONDS)
    try:
        connection.request("GET", "/admin/rules", headers=headers)
        answer = connection.getresponse()
        body = answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise NotFound(f"no proxy answers at {url}: {error}") from error
    finally:
        connection.close()
    if answer.status != _OK:
        raise NotFound(f"{url}/admin/rules answered {answer.status}: {body[:300].decode(errors='replace')}")
    try:
        found = json.loads(body)
    except ValueError as error:
        raise NotFound(f"{url} is no Goalkeeper: its answer isn't JSON") from error
    if not isinstance(found, dict) or not found.keys() >= {"rules", "clients", "since", "problems", "files", "folders"}:
        raise NotFound(f"{url} is no Goalkeeper that tells its rules")
    return found
