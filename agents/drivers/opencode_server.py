"""opencode as a server: words are posted to its API, also while it works. The argument is the path of opencode."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import urllib.request
from typing import Any

_SECONDS = 120


def post(url: str, body: dict[str, Any]) -> dict[str, Any]:
    """Posts JSON and gives the answer."""
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


class Talk:
    """One session; a turn has ended when all that was posted is answered."""

    def __init__(self, url: str) -> None:
        self._url = f"{url}/session/{post(f'{url}/session', {})['id']}/message"
        self._lock = threading.Lock()
        self._open = 0

    def say(self, words: str) -> None:
        """Posts words of the user without waiting for the answer."""
        with self._lock:
            self._open += 1
        threading.Thread(target=self._post, args=(words,), daemon=True).start()

    def _post(self, words: str) -> None:
        answer = post(self._url, {"parts": [{"type": "text", "text": words}]})
        print(" ".join(part.get("text", "") for part in answer.get("parts", [])), flush=True)
        with self._lock:
            self._open -= 1
            if not self._open:
                print(json.dumps({"type": "turn_end"}), flush=True)


def main() -> None:
    """Reads the user's words from stdin, one JSON line each."""
    command = [sys.argv[1], "serve", "--hostname", "127.0.0.1", "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    assert server.stdout is not None
    url = next(found[0] for line in server.stdout if (found := re.search(r"http://127\.0\.0\.1:\d+", line)))
    threading.Thread(target=server.stdout.read, daemon=True).start()
    talk = Talk(url)
    for line in sys.stdin:
        talk.say(json.loads(line)["say"])


main()
