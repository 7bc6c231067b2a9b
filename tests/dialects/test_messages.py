"""The Messages dialect: bodies, blocks, answers and errors."""

from __future__ import annotations

import json

import pytest

from proxy.clients import load_profiles
from proxy.dialects.messages import Messages
from proxy.dialects.stored import read_stored
from proxy.errors import NothingFits, UnreadableBody, UpstreamBroken
from proxy.settings import packaged_folder

DIALECT = Messages()
CALL = {"type": "tool_use", "id": "toolu_01", "name": "Bash", "input": {"command": "make test"}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_01", "content": "12 passed"}


def body(*messages, **fields):
    return json.dumps({"model": "m", "max_tokens": 900, "messages": list(messages), **fields}).encode()


def user(*blocks):
    return {"role": "user", "content": [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks]}


def parts(*blocks, role="user"):
    return DIALECT.message(json.dumps({"role": role, "content": list(blocks)}).encode()).parts


def events(*items):
    return b"".join(f"event: {item['type']}\ndata: {json.dumps(item)}\n\n".encode() for item in items)


def test_a_body_that_is_rendered_with_its_own_messages_has_the_same_bytes() -> None:
    raw = b'{"model": "m",\n "messages": [ {"role":"user","content":"hi"} ],\n "max_tokens": 20, "system": "S"}'
    transcript = DIALECT.parse(raw)
    rebuilt = DIALECT.render(transcript, [message.raw for message in transcript.messages])
    assert json.loads(rebuilt) == json.loads(raw)
    assert rebuilt.endswith(b',\n "max_tokens": 20, "system": "S"}')


def test_system_text_is_read_from_a_string_and_from_blocks() -> None:
    assert DIALECT.parse(body(user("x"), system="be brief")).system_text == "be brief"
    blocks = [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "b"}]
    assert DIALECT.parse(body(user("x"), system=blocks)).system_text == "a\nb"


def test_limits_tools_and_output_schema_are_read() -> None:
    schema = {"type": "json_schema", "schema": {"properties": {"title": {"type": "string"}}}}
    tools = [{"name": "Bash", "input_schema": {}}, {"type": "web_search_20250305", "name": "web_search"}]
    transcript = DIALECT.parse(body(user("x"), tools=tools, stream=True, output_config={"format": schema}))
    assert (transcript.max_output, transcript.stream, transcript.tools) == (900, True, ("Bash", "web_search"))
    assert json.loads(transcript.response_format) == schema


@pytest.mark.parametrize("raw", [b"", b"[]", b'{"model":"m"}', b'{"messages":"x"}', b'{"messages":[1]}'])
def test_a_body_without_messages_is_unreadable(raw: bytes) -> None:
    with pytest.raises(UnreadableBody):
        DIALECT.parse(raw)


def test_calls_of_every_kind_and_their_results_are_told_by_id() -> None:
    hosted = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "rain"}}
    remote = {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "ask", "server_name": "s", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"type": "web_search_result"}]}
    said = {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "content": [{"type": "text", "text": "yes"}]}
    made = parts(CALL, hosted, found, remote, said, role="assistant")
    assert [(part.kind, part.call_id) for part in made] == [
        ("call", "toolu_01"),
        ("call", "srvtoolu_1"),
        ("result", "srvtoolu_1"),
        ("call", "mcptoolu_1"),
        ("result", "mcptoolu_1"),
    ]
    assert json.loads(made[0].text) == {"command": "make test"}
    assert made[4].text == "yes"


def test_pictures_inside_a_result_count_as_pictures() -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}
    result = {**RESULT, "content": [{"type": "text", "text": "shot"}, picture]}
    assert [(part.kind, part.text, part.size) for part in parts(result)] == [("result", "shot", 0), ("image", "", 4)]


def test_signed_reasoning_is_told_from_reasoning_without_a_signature() -> None:
    signed = {"type": "thinking", "thinking": "", "signature": "c2ln"}
    hidden = {"type": "redacted_thinking", "data": "cmVk"}
    plain = {"type": "thinking", "thinking": "hm"}
    first, second, third = parts(signed, hidden, plain, role="assistant")
    assert first.signed
    assert second.signed
    assert first.signed != second.signed
    assert (third.kind, third.text, third.signed) == ("thinking", "hm", "")


def test_a_compaction_block_is_opaque_and_binds() -> None:
    block = {"type": "compaction", "content": "so far: nothing", "signature": "c2ln"}
    (alone,) = parts(block, role="assistant")
    assert (alone.kind, alone.name, alone.text) == ("opaque", "compaction", "so far: nothing")
    assert alone.signed
    failed = parts({"type": "compaction", "content": None}, role="assistant")[0]
    assert failed.signed == ""


def test_unknown_blocks_are_opaque() -> None:
    (part,) = parts({"type": "container_upload", "file_id": "f"})
    assert (part.kind, part.text) == ("opaque", "")


def test_texts_of_an_assistant_are_one_part_however_they_are_split() -> None:
    split = parts({"type": "text", "text": "It is "}, CALL, {"type": "text", "text": "done."}, role="assistant")
    assert (split[0].kind, split[0].text) == ("text", "It is done.")


def test_equal_bytes_give_the_same_message() -> None:
    raw = json.dumps(user("hello")).encode()
    assert DIALECT.message(raw) is DIALECT.message(bytes(bytearray(raw)))


def extended(message, text, **options):
    return json.loads(DIALECT.extend_message(json.dumps(message).encode(), text, **options))["content"]


def test_added_text_stands_behind_results_even_when_it_is_put_first() -> None:
    message = user(RESULT, "and now?")
    assert extended(message, "ours", before=True) == [RESULT, *user("ours", "and now?")["content"]]
    assert extended(message, "ours") == [RESULT, *user("and now?", "ours")["content"]]


def test_string_content_becomes_blocks_so_that_the_users_words_stay_alone() -> None:
    message = {"role": "user", "content": "go on"}
    assert extended(message, "ours") == user("go on", "ours")["content"]
    assert extended(message, "ours", before=True) == user("ours", "go on")["content"]


def test_blocks_that_stay_keep_their_bytes() -> None:
    raw = b'{"role":"user","content":[{"type":"text",  "text":"caf\\u00e9","cache_control":{"type":"ephemeral"}}]}'
    block = raw[raw.index(b"[") + 1 : raw.index(b"]")]
    assert block in DIALECT.extend_message(raw, "x")


def test_a_whole_reply_gives_text_calls_and_all_prompt_tokens() -> None:
    usage = {"input_tokens": 5, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 300, "output_tokens": 7}
    reply = {"content": [{"type": "text", "text": "ok"}, CALL], "stop_reason": "tool_use", "usage": usage}
    answer = DIALECT.answer(json.dumps(reply).encode(), sse=False)
    assert (answer.text, answer.finish, answer.complete) == ("ok", "tool_use", True)
    assert (answer.prompt_tokens, answer.cached_tokens, answer.completion_tokens) == (325, 300, 7)
    assert [(call.name, json.loads(call.arguments), call.id) for call in answer.calls] == [
        ("Bash", {"command": "make test"}, "toolu_01")
    ]


def test_a_stream_gives_the_input_of_every_kind_of_call() -> None:
    stream = [{"type": "message_start", "message": {"usage": {"input_tokens": 9, "cache_read_input_tokens": 90}}}]
    for index, kind in enumerate(("tool_use", "server_tool_use", "mcp_tool_use")):
        block = {"type": kind, "id": f"id{index}", "name": "n", "input": {}}
        stream.append({"type": "content_block_start", "index": index, "content_block": block})
        for piece in ('{"q": "ra', 'in"}'):
            delta = {"type": "input_json_delta", "partial_json": piece}
            stream.append({"type": "content_block_delta", "index": index, "delta": delta})
        stream.append({"type": "content_block_stop", "index": index})
    stream.append({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 40}})
    answer = DIALECT.answer(events(*stream, {"type": "message_stop"}), sse=True)
    assert [call.arguments for call in answer.calls] == ['{"q": "rain"}'] * 3
    assert (answer.prompt_tokens, answer.completion_tokens, answer.complete) == (99, 40, True)


def test_a_stream_that_breaks_off_is_not_complete() -> None:
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "half"}}
    answer = DIALECT.answer(events(start, delta) + b"event: content_block_de", sse=True)
    assert (answer.text, answer.complete) == ("half", False)


@pytest.mark.parametrize("rubbish", [b"", b"<html>", b'{"content": 7}', b"data: {\n\n", b'data: {"type": 1}\n\n'])
def test_rubbish_counts_as_nothing_said(rubbish: bytes) -> None:
    for sse in (False, True):
        assert not DIALECT.answer(rubbish, sse=sse).complete


def test_an_error_has_the_form_that_clients_of_this_api_read() -> None:
    error = json.loads(DIALECT.error(NothingFits("9000 tokens > 8000 maximum")))
    assert error == {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "prompt is too long: 9000 tokens > 8000 maximum"},
    }
    told = DIALECT.stream_error(UpstreamBroken("gone"))
    assert told.startswith(b"event: error\ndata: ")
    assert json.loads(told.split(b"data: ")[1])["error"]["type"] == "api_error"


def test_words_that_claude_code_puts_behind_a_result_are_the_users() -> None:
    profile = load_profiles([packaged_folder() / "clients"]).named("claude-code")
    words = "Use SQLite, not Redis."
    note = (
        f"<system-reminder>\nThe user sent a new message while you were working:\n{words}\n\n"
        "This is how messages come.\n</system-reminder>"
    )
    message = DIALECT.message(json.dumps(user({**RESULT, "content": f"12 passed\n{note}"})).encode())
    (human,) = profile.peel(message, {"toolu_01": "Bash"})
    assert (human.text, human.via) == (words, "Bash")


def test_a_stored_message_is_read_in_the_form_that_it_was_sent_in() -> None:
    kinds = {
        b'{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"ok"}]}': "result",
        b'{"role":"tool","tool_call_id":"t","content":"ok"}': "result",
        b'{"type":"function_call_output","call_id":"t","output":"ok"}': "result",
        b'{"role":"user","content":[{"type":"text","text":"ok"}]}': "text",
    }
    assert {raw: [part.kind for part in read_stored(raw).parts] for raw in kinds} == {
        raw: [kind] for raw, kind in kinds.items()
    }
