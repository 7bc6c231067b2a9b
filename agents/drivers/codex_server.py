"""codex as a server: words start a turn, or steer the one that runs. The argument is the path of codex."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
from queue import Queue
from typing import Any

Line = dict[str, Any]


class Server:
    """`codex app-server`: one JSON object a line, both ways."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._numbers = itertools.count(1)
        self._answers: Queue[Line] = Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def ask(self, method: str, **fields: Any) -> Line:  # noqa: ANN401 (the protocol's own values)
        """Asks, and gives the result."""
        number = next(self._numbers)
        self._write({"id": number, "method": method, "params": fields})
        while (answer := self._answers.get(timeout=60)).get("id") != number:
            pass
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        result: Line = answer["result"]
        return result

    def tell(self, method: str) -> None:
        """Tells something that has no answer."""
        self._write({"method": method})

    def _write(self, line: Line) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(line) + "\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for text in self._process.stdout:
            line = json.loads(text)
            if line.get("method") == "item/completed":
                print(line["params"]["item"].get("text", ""), flush=True)
            if line.get("method") == "turn/completed":
                print(json.dumps({"type": "turn_end"}), flush=True)
            if "method" not in line:
                self._answers.put(line)


def main() -> None:
    """Reads the user's words from stdin, one JSON line each."""
    server = Server([sys.argv[1], "app-server"])
    server.ask("initialize", clientInfo={"name": "agents", "title": None, "version": "1"})
    server.tell("initialized")
    thread, turn = server.ask("thread/start")["thread"]["id"], ""
    for line in sys.stdin:
        told = json.loads(line)
        words = [{"type": "text", "text": told["say"]}]
        if told["interrupts"]:
            server.ask("turn/steer", threadId=thread, input=words, expectedTurnId=turn)
        else:
            turn = server.ask("turn/start", threadId=thread, input=words)["turn"]["id"]


main()
