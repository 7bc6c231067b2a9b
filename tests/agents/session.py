"""Sessions of agents, written by hand after what real ones sent: roles, order, ids, wrappers, hardly any prompt."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field
from typing import Any, Literal

from agents.script import CORRECTION, GOAL, MORE, NOTES, TASK

Item = dict[str, Any]
Kind = Literal["main", "side", "sub"]

PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
OUTPUT = "row 0001 | sensor=37 value=12\n" * 20
SPOKEN = (GOAL, CORRECTION, MORE)


@dataclass(frozen=True)
class Request:
    """One request as the agent sends it, and how the model answers."""

    kind: Kind
    path: str
    headers: dict[str, str]
    body: bytes
    reply: bytes
    said: tuple[str, ...]  # binding words of the user until now


@dataclass
class Session:
    """An agent at work: `items` is what it will send next, `requests` is all that it sent."""

    name: str  # of the profile that has to be recognised
    api: str
    agent: str = ""  # user agent
    headers: dict[str, str] = field(default_factory=dict)
    fields: dict[str, Any] = field(default_factory=dict)
    shell: str = "bash"
    items: list[Item] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    said: tuple[str, ...] = ()
    number: int = 0

    # --- items of each API -------------------------------------------------------------------------------------------

    def text(self, words: str, role: str = "user") -> Item:
        """Gives a text of user or assistant as one item, in the API's usual form."""
        if self.api == "responses":
            kind = "output_text" if role == "assistant" else "input_text"
            return {"type": "message", "role": role, "content": [{"type": kind, "text": words}]}
        return {"role": role, "content": [{"type": "text", "text": words}] if self.api == "messages" else words}

    def parts(self, *words: str) -> Item:
        """Gives a user item of several texts."""
        kind = "input_text" if self.api == "responses" else "text"
        item: Item = {"role": "user", "content": [{"type": kind, "text": one} for one in words]}
        return {"type": "message", **item} if self.api == "responses" else item

    def called(self, command: str) -> list[Item]:
        """Gives the model's answer with a call, as the agent sends it back; a sub-agent's task is an argument too."""
        self.number += 1
        call, arguments = f"call_{self.number:02d}7f31c09be2", {"prompt" if command == TASK else "command": command}
        words = f"Step {self.number}: I run {command}."
        if self.api == "messages":
            use = {"type": "tool_use", "id": call, "name": self.shell, "input": arguments}
            return [{"role": "assistant", "content": [{"type": "text", "text": words}, use]}]
        if self.api == "responses":
            done = {"type": "function_call", "call_id": call, "name": self.shell, "arguments": json.dumps(arguments)}
            return [self.text(words, "assistant"), done]
        function = {"name": self.shell, "arguments": json.dumps(arguments)}
        calls = [{"id": call, "type": "function", "function": function}]
        return [{"role": "assistant", "content": words, "tool_calls": calls}]

    def result(self, output: str) -> Item:
        """Gives the result of the newest call."""
        call = f"call_{self.number:02d}7f31c09be2"
        if self.api == "messages":
            return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": output}]}
        if self.api == "responses":
            return {"type": "function_call_output", "call_id": call, "output": output}
        return {"role": "tool", "tool_call_id": call, "content": output}

    # --- what happens ------------------------------------------------------------------------------------------------

    def user(self, words: str, item: Item | None = None) -> None:
        """Lets the user say something; `item` is the form in which the agent sends it."""
        self.items.append(item or self.text(words))
        self.hears(words)

    def hears(self, words: str) -> None:
        """Notes that words of the user are in the next request."""
        self.said = tuple(dict.fromkeys((*self.said, *((words,) if words in (GOAL, CORRECTION) else ()))))

    def step(self, output: str = OUTPUT, command: str = "") -> None:
        """Lets the model call a tool."""
        answer = self.called(command or f"cat big{self.number + 1}.txt")
        self._send("main", self.items, answer)
        self.items += [*answer, self.result(output)]

    def close(self, *, tools: bool = True) -> Item:
        """Lets the model end the turn, and gives its closing words."""
        self.number += 1
        answer = [self.text(f"Step {self.number} was the last one of this turn.", "assistant")]
        self._send("main", self.items, answer, tools=tools)
        self.items += answer
        return answer[0]

    def side(self, items: list[Item], says: str = NOTES, *, tools: bool = False, **more: Any) -> None:
        """Sends a request that doesn't carry the conversation on."""
        self._send("side", items, [self.text(says, "assistant")], tools=tools, **more)

    def delegate(self, items: list[Item], result: str, headers: dict[str, str] | None = None, **more: Any) -> None:
        """Lets the model give TASK to a sub-agent, which sends one request of its own."""
        answer = self.called(TASK)
        self._send("main", self.items, answer)
        self._send("sub", items, [self.text("big1.txt holds readings.", "assistant")], headers=headers, **more)
        self.items += [*answer, self.result(result)]

    def passed(self, items: list[Item], answer: list[Item], **more: Any) -> None:
        """Sends a side call whose answer is given."""
        self._send("side", items, answer, **more)

    def _send(
        self,
        kind: Kind,
        items: list[Item],
        answer: list[Item],
        *,
        tools: bool = True,
        headers: dict[str, str] | None = None,
        path: str = "",
        **more: Any,
    ) -> None:
        name = "input" if self.api == "responses" else "messages"
        fields = {"model": "demo", "stream": False, **self.fields, **more}
        body = {**{key: value for key, value in fields.items() if value is not None}, name: items}
        if self.api == "messages":
            body["max_tokens"] = 8000
        if tools:
            body["tools"] = [self._tool()]
        everything = {"content-type": "application/json", "user-agent": self.agent, **self.headers, **(headers or {})}
        sent = json.dumps(copy.deepcopy(body), ensure_ascii=False).encode()
        reply = json.dumps(self._reply(answer)).encode()
        self.requests.append(Request(kind, path or PATHS[self.api], everything, sent, reply, self.said))

    def _tool(self) -> Item:
        schema = {"type": "object", "properties": {"command": {"type": "string"}}}
        if self.api == "messages":
            return {"name": self.shell, "input_schema": schema}
        function = {"name": self.shell, "parameters": schema}
        return (
            {"type": "function", **function} if self.api == "responses" else {"type": "function", "function": function}
        )

    def _reply(self, answer: list[Item]) -> Item:
        if self.api == "responses":
            usage = {"input_tokens": 900, "output_tokens": 9, "total_tokens": 909}
            return {"id": "resp_1", "object": "response", "status": "completed", "output": answer, "usage": usage}
        if self.api == "messages":
            calls = any(block["type"] == "tool_use" for block in answer[0]["content"])
            usage = {"input_tokens": 900, "output_tokens": 9}
            head = {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "stop_reason": "tool_use" if calls else "end_turn",
            }
            return {**head, "content": answer[0]["content"], "usage": usage}
        finish = "tool_calls" if "tool_calls" in answer[0] else "stop"
        choice = {"index": 0, "message": answer[0], "finish_reason": finish}
        usage = {"prompt_tokens": 900, "completion_tokens": 9, "total_tokens": 909}
        return {"id": "chatcmpl-1", "object": "chat.completion", "choices": [choice], "usage": usage}
