"""`goalkeeper why`: where a fact comes from, and what has become of it."""

from __future__ import annotations

import argparse

from proxy.cli.data import Data, open_data
from proxy.cli.main import printable
from proxy.cli.output import add_json_flag, line, print_json
from proxy.pins.rules import read_rules
from proxy.store.origin import Row, origin


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the fact."""
    parser.add_argument("fact", help="id of a fact, beginning of one, or last")
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    """Tells it."""
    data = open_data(args)
    found = origin(data.db, args.fact)
    found["rule"] = _rule(data, found["fact"]["rule"])
    if args.json:
        print_json(found)
    else:
        _tell(found)
    return 0


def _rule(data: Data, name: str) -> Row:
    """Gives the rule that recognised the words, as it stands now; structure and people decide without one."""
    own = data.settings.pins
    rules, _ = read_rules(own.files, own.rules, marker=own.marker)
    rule = next((one for one in rules.rules if one.name == name), None)
    if rule is None:
        return {"name": name, "place": "", "says": "no rule: the structure of the turn, or a person, decided"}
    says = f"{rule.kind or rule.label}, priority {rule.priority}"
    return {"name": name, "place": rule.place, "says": says}


def _tell(found: Row) -> None:
    fact, around = found["fact"], found["surroundings"]
    print(f"{fact['id']} {fact['kind']}, {fact['status']}, {fact['scope']}, {fact['who']}, {fact['observed_at']}")
    print(_indented(fact["text"]))
    if around:
        for name in ("before", "said", "after"):
            if around[name]:
                print(f"{name}, {line(around[name]['role'])}:")
                print(_indented(_marked(fact, around[name]["text"]) if name == "said" else around[name]["text"]))
    else:
        print(_indented(fact["quote"]) if fact["quote"] != fact["text"] else "the archive has no message of it")
    for name, value in fact["source"].items():
        print(f"{line(name)}: {line(value)}")
    rule = found["rule"]
    print(f"rule: {line(rule['name'])} ({line(rule['says'])}) {line(rule['place'])}".rstrip())
    receipts = found["receipts"]
    if receipts["count"]:
        print(f"stood in {receipts['count']} requests, receipts {receipts['first']} to {receipts['last']}")
    if found["blocks"]:
        print(f"in blocks: {', '.join(found['blocks'])}")
    _chain(found)


def _chain(found: Row) -> None:
    for label, name in (("replaced", "replaced"), ("replaced by", "replaced_by")):
        for one in found[name]:
            print(f"{label}: {one['id']} {one['status']} {line(one['text'])[:200]}".rstrip())
    for event in found["fact"]["history"]:
        print(f"{event['at']} {line(event['what'])}")


def _marked(fact: Row, text: str) -> str:
    """Gives the message with the fact's words between angle marks, where they stand in it."""
    quote = fact["quote"]
    return text.replace(quote, f"»{quote}«", 1) if quote and quote != text.strip() else text


def _indented(text: str) -> str:
    return "\n".join(f"  {row}" for row in printable(text).split("\n"))
