"""The story: what the user says and when, what the scripted model answers, and what the tools give back.

Everything in it is made up and always the same; nothing in it knows of Goalkeeper.
"""

from __future__ import annotations

from collections.abc import Iterator
from zlib import crc32

import msgspec

MODEL = "scripted-stand-in"
ADMISSION = "I am a script, not a model: I answer the same whatever I read."
SYSTEM = "You are a coding agent in the repository of a billing service. Use the tools, and report when a part is done."
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": what,
            "parameters": {"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]},
        },
    }
    for name, what, argument in (
        ("read_file", "Read a file", "path"),
        ("apply_patch", "Change a file", "path"),
        ("run", "Run a command", "command"),
    )
]
ASK_FOR_SUMMARY = (
    "Summarize this conversation so that the work can go on without the earlier messages. Reply with the summary only."
)
SUMMARY_OPENING = "Here is a summary of the conversation to date:\n\n"
# what summaries do: the task without its conditions, the corrections gone, a wish turned into something finished
LOSSY_SUMMARY = (
    "The user wants the export of the billing service modernised. Sixteen modules were read, changed and checked, "
    "most of them with success; fixtures were compared and a few rounding differences were looked into. "
    "Style was agreed on. Next: go on with the remaining modules, then tidy up what is old."
)
_MODULES = (
    "invoices", "credits", "refunds", "taxes", "discounts", "currencies", "customers", "dunning",
    "payments", "ledger", "periods", "rates", "reports", "statements", "transfers", "vouchers",
    "accounts", "balances", "charges", "deposits", "exports", "fees", "plans", "tiers",
)  # fmt: skip
STEPS = 3  # tool turns a module: read, change, check
TOOL_TURNS = len(_MODULES) * STEPS


class Words(msgspec.Struct, frozen=True):
    """What the user says before a module is worked on; `kind` is empty when it binds nothing."""

    module: int
    kind: str
    text: str


STORY = (
    Words(
        0,
        "goal",
        "Move the export of this service from CSV to JSON Lines, one module after the other.\n"
        "It is finished when `make export-check` passes on all 48 fixtures and no module writes CSV any more.",
    ),
    Words(2, "", "go on"),
    Words(
        4,
        "preference",
        "I prefer small commits: one for each module, with the ticket BILL-2071 in the subject line.",
    ),
    Words(
        7,
        "correction",
        'No, don\'t round the amounts. Keep every digit of the ledger, as a string: "12.3400", never 12.34.',
    ),
    Words(9, "", "ok, continue"),
    Words(
        12,
        "correction",
        "Stop, never change anything under legacy/. Another team reads those files until March; copy what you need.",
    ),
    Words(16, "", "yes, go on"),
    Words(20, "", "Which modules are still missing?"),
    Words(22, "", "ok, continue"),
)
AGENT_COMPACTS_BEFORE = 16  # the module before which the agent summarises by itself
STREAMED_EACH = 9  # every so many answers are streamed


class Reply(msgspec.Struct, frozen=True):
    """One answer of the scripted model; without a tool it closes a part of the work."""

    text: str
    tool: str = ""
    argument: str = ""


def parts() -> Iterator[tuple[Words, tuple[Reply, ...]]]:
    """Gives what the user says, each time with the answers that follow until the model closes."""
    ends = [words.module for words in STORY[1:]] + [len(_MODULES)]
    for words, end in zip(STORY, ends, strict=True):
        steps = tuple(reply for module in range(words.module, end) for reply in _steps(module))
        yield words, (*steps, Reply(f"Modules up to {_MODULES[end - 1]} are moved and checked. Shall I go on?"))


def result(tool: str, argument: str) -> str:
    """Gives what a tool call gives back."""
    name = argument.rpartition("/")[2].partition(".")[0] if tool != "run" else argument.rpartition("=")[2]
    return {"read_file": _source, "apply_patch": _patched, "run": _check}[tool](name)


def _steps(module: int) -> Iterator[Reply]:
    name = _MODULES[module]
    path = f"billing/export/{name}.py"
    opening = f"{ADMISSION} " if module == 0 else ""
    yield Reply(f"{opening}I read {path} first.", "read_file", path)
    yield Reply(f"{path} writes CSV in write_{name}(); I replace it.", "apply_patch", path)
    yield Reply(f"Now the check for {name}.", "run", f"make export-check MODULE={name}")


def _source(name: str) -> str:
    lines = [f"# billing/export/{name}.py", "import csv", "from decimal import Decimal", ""]
    for number in range(1, 21):
        rate = crc32(f"{name}{number}".encode()) % 9_000
        lines += [
            f"def {name}_row_{number}(entry, rate=Decimal('0.{rate:04}')):",
            f"    total = entry.amount * rate + Decimal('{number}.{rate % 100:02}')",
            f"    return [entry.id, '{name}-{rate:04x}', str(total)]",
            "",
        ]
    return "\n".join([*lines, f"def write_{name}(rows, out):", "    csv.writer(out).writerows(rows)"])


def _patched(name: str) -> str:
    rows = [f"-    row {number}: csv.writer(out).writerow({name}_row_{number}(entry))" for number in range(1, 15)]
    rows += [f"+    row {number}: out.write(json.dumps({name}_row_{number}(entry)) + '\\n')" for number in range(1, 15)]
    return f"patched billing/export/{name}.py: 14 rows\n" + "\n".join(rows)


def _check(name: str) -> str:
    lines = []
    for number in range(1, 25):
        mark = crc32(f"{name}:{number}".encode())
        rows, took = mark % 900 + 40, mark % 70
        lines.append(f"PASS fixtures/{name}_{mark % 48:02}.jsonl {rows} rows, sha {mark:08x}, {took} ms")
    if crc32(name.encode()) % 3 == 0:
        lines.append(f"FAIL fixtures/{name}_47.jsonl: AssertionError: amount '7.5000' != 7.5 in row 318")
        return "\n".join([*lines, "exit code 2"])
    return "\n".join([*lines, "24 passed", "exit code 0"])
