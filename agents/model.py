"""The scripted model: speaks three APIs on loopback, reports what usage it likes, and keeps every body."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Any, Literal

from aiohttp import web

from agents import replies, wire
from agents.loopback import listening
from agents.replies import Said
from agents.script import NOTES, TASK, Scenario, Step

Kind = Literal["main", "sub", "summary", "title", "aux", "count", "other"]
NUMBER = "x-agents-request"  # how a body at the model is told to belong to one at the agent

_SUMMARY = re.compile(
    r"context checkpoint compaction|create a detailed summary of the conversation|<summary> block|state_snapshot>"
    r"|new anchored summary|structured context checkpoint|is the prefix of a turn|context extraction assistant"
    r"|concise summary of our conversation|summarize the events using the rules|summarize this partial conversation"
    r"|summary of the conversation|messages to summarize",
    re.IGNORECASE,
)
_SUMMARY_SYSTEM = re.compile(
    r"context summarization|component that summarizes a conversation|context-aware state summary"
    r"|summarize this partial conversation|summarizing conversations",
    re.IGNORECASE,
)
_TITLE = re.compile(r"title generator|generate a[^.]{0,40} title|naming a coding session|commit message", re.IGNORECASE)
_FORK = re.compile(
    r"managed memory has", re.IGNORECASE
)  # the same words under another system text: not the conversation
_SHELLS = (
    *("bash", "Bash", "exec_command", "shell_command", "shell", "run_shell_command", "execute_command", "run_commands"),
    *("Shell", "terminal", "run_terminal_command", "runTerminalCommand", "execute", "run_shell", "execute_bash"),
)
_FINALS = ("final_answer", "complete")
_DELEGATES = ("task", "Agent", "Task", "agent", "spawn_agent")
_COMMANDS = ("command", "cmd", "script", "commands")


@dataclass(frozen=True, slots=True)
class Manner:
    """How the model has to talk to one agent so that the scenario comes about."""

    full: int = 125_000  # tokens that count as a full window
    notes: str = NOTES  # its answer to a request for a summary
    notes_tokens: int = 6000  # usage of that answer


@dataclass(frozen=True, slots=True)
class Got:
    """A request as the model got it, and what came of it."""

    number: int  # of the agent's request, 0 when it has none
    kind: Kind
    api: str
    raw: bytes
    refused: bool

    @property
    def body(self) -> wire.Body:
        """The body."""
        found: wire.Body = json.loads(self.raw)
        return found


class Model:
    """Answers by the scenario; `begin` tells it that the user spoke, `waiting` is set while a slow command runs."""

    def __init__(self, scenario: Scenario, manner: Manner) -> None:
        self.got: list[Got] = []
        self.waiting = asyncio.Event()
        self._scenario, self._manner = scenario, manner
        self._steps: list[Step] = []
        self._task: list[Step] = []
        self._closing = ""
        self._first = 0  # bytes of the first main request
        self._refused = 0  # number of the newest request that was refused by the script

    def begin(self, turn: int) -> None:
        """Starts the steps of a turn, counted from 0."""
        self._steps = list(self._scenario.turns[turn])
        self._closing = self._steps[-1].text.partition("\n")[0]

    def serve(self) -> AbstractAsyncContextManager[str]:
        """Listens on a free loopback port and gives the URL."""
        return listening(self._answer)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        api = wire.APIS.get(request.path, "")
        if request.method != "POST" or not api:
            return _elsewhere(request, len(raw))
        number = int(request.headers.get(NUMBER, "0"))
        body: wire.Body = json.loads(raw)
        kind = kind_of(api, body)
        step = Step(refuse=True) if number and number == self._refused else self._step(kind, len(raw))
        if step.refuse and not self._scenario.room:
            self._refused = number
        self.got.append(Got(number, kind, api, raw, step.refuse))
        if api == "compact":
            return _json(200, replies.compacted(str(body.get("model"))))
        if step.refuse:
            return _json(*replies.refusal(api, len(raw) // 4))
        if step.waits:
            self.waiting.set()
        said = self._said(kind, step, body, len(raw))
        if not body.get("stream"):
            return _json(200, replies.whole(api, said, str(body.get("model"))))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for chunk in replies.stream(api, said, str(body.get("model"))):
            await response.write(chunk)
        return response

    def _step(self, kind: Kind, size: int) -> Step:
        if kind == "sub":
            return self._next_of_task()
        if kind != "main":
            return Step()
        self._first = self._first or size
        if self._scenario.room and size > self._first + self._scenario.room:
            return Step(refuse=True)
        step = (
            self._steps.pop(0) if self._steps else Step(text=self._closing)
        )  # agents go on by themselves now and then
        if step.delegate:
            self._task = list(self._scenario.task)
        return step

    def _next_of_task(self) -> Step:
        return self._task.pop(0) if self._task else Step(text="SUBTASK DONE.")

    def _said(self, kind: Kind, step: Step, body: wire.Body, size: int) -> Said:
        if kind == "summary":
            sealed = wire.turns(body)[-1].role == "compaction_trigger"
            return Said(self._manner.notes, prompt_tokens=self._manner.notes_tokens, compaction=sealed)
        if kind in ("title", "aux"):
            return Said("Streaming parser", prompt_tokens=size // 4)
        tokens = self._manner.full if step.full else size // 4
        if step.delegate:
            asked = _delegating(wire.tools(body), tokens)
            return replace(asked, namespace=wire.namespace(body, asked.tool))
        if not step.command:
            return _closing(step.text, wire.tools(body), tokens)
        return _running(step, wire.tools(body), tokens)


def kind_of(api: str, body: wire.Body) -> Kind:
    """Tells what a request is for."""
    turns, users = wire.turns(body), wire.users(body)
    last = turns[-1] if turns else wire.Turn("", "")
    newest = users[-1] if users else ""
    if api == "compact" or last.role == "compaction_trigger":
        return "summary"
    if last.role == "user" and _FORK.search(newest):
        return "aux"
    if last.role == "user" and _SUMMARY.search(newest[:2000] + newest[-4000:]):
        return "summary"
    if not body.get("tools"):
        return _kind_without_tools(body, users)
    return "sub" if any(text.strip().startswith(TASK) for text in users) else "main"


def _kind_without_tools(body: wire.Body, users: list[str]) -> Kind:
    system = wire.system(body)
    if _SUMMARY_SYSTEM.search(system):
        return "summary"
    if _TITLE.search(system) or any(_TITLE.search(text[:300]) for text in users):
        return "title"
    return "main"


def _closing(text: str, tools: dict[str, Any], tokens: int) -> Said:
    """The end of a turn; some agents want it said by a tool."""
    name = next((name for name in _FINALS if name in tools), "")
    if not name:
        return Said(text, prompt_tokens=tokens)
    return Said(text, name, {"answer": text} if "answer" in _names(tools[name]) else {}, tokens)


def _running(step: Step, tools: dict[str, Any], tokens: int) -> Said:
    name = next((name for name in _SHELLS if name in tools), "")
    if not name:
        return Said(f"There is no shell among {', '.join(tools)}.", prompt_tokens=tokens)
    return Said(step.text or f"I run {step.command}.", name, _filled(tools[name], step.command), tokens)


def _filled(schema: dict[str, Any], command: str) -> dict[str, Any]:
    """Arguments for a shell tool: the command, and something lawful for whatever else is required."""
    required, arguments = schema.get("required") or [], {}
    for name, kind in (schema.get("properties") or {}).items():
        if name in _COMMANDS:
            arguments[name] = [command] if name == "commands" or kind.get("type") == "array" else command
        elif name in required:
            plain = {"boolean": False, "integer": 60_000, "number": 60_000}.get(kind.get("type"), "run a command")
            arguments[name] = (kind.get("enum") or [plain])[0]
    return arguments


def _delegating(tools: dict[str, Any], tokens: int) -> Said:
    name = next((name for name in _DELEGATES if name in tools), "")
    if not name:
        return Said("There is nobody to ask.", prompt_tokens=tokens)
    asked = _names(tools[name])
    # opencode's agents are called otherwise than those of others, and deep agents have only a description.
    worker = "general" if name == "task" and "prompt" in asked else "general-purpose"
    task = "look at a file" if "prompt" in asked else TASK
    arguments = {"description": task, "prompt": TASK, "subagent_type": worker, "run_in_background": False}
    arguments |= {"message": TASK}
    return Said("I ask a sub-agent.", name, {key: value for key, value in arguments.items() if key in asked}, tokens)


def _names(schema: dict[str, Any]) -> set[str]:
    return set(schema.get("properties") or {})


def _json(status: int, body: bytes) -> web.Response:
    return web.Response(status=status, body=body, content_type="application/json")


def _elsewhere(request: web.Request, size: int) -> web.Response:
    if request.path.endswith(("/count_tokens", "/input_tokens")):
        return _json(200, json.dumps({"input_tokens": size // 4}).encode())
    if request.path.endswith("/models") and request.method == "GET":
        return _json(
            200, b'{"object":"list","data":[{"id":"scripted","object":"model","created":1,"owned_by":"nobody"}]}'
        )
    if request.method == "HEAD":
        return web.Response()
    return _json(404, b'{"error":{"message":"not found","type":"invalid_request_error"}}')
