"""The Responses dialect: bodies, items, answers and errors."""

from __future__ import annotations

import json

import pytest

from proxy.dialects.responses import Responses
from proxy.errors import NothingFits, UnreadableBody, UpstreamBroken
from tests.items import RESPONSES, TRIGGER, body, call, compaction, output, parsed, read, says, thought, user


def whole(*items, **fields):
    return json.dumps({"id": "resp_1", "status": "completed", "output": list(items), **fields}).encode()


def stream(*events):
    return b"".join(f"event: {one['type']}\ndata: {json.dumps(one, ensure_ascii=False)}\n\n".encode() for one in events)


def parts(item):
    return parsed(item)[0].parts


def test_a_body_rendered_with_its_own_items_keeps_its_meaning_and_its_bytes_outside_of_the_list():
    raw = b'{"model": "m",\n "input": [ {"role":"user","content":"hi"} ],\n "store":false, "x": 1.50}'
    transcript = RESPONSES.parse(raw)
    assert RESPONSES.render(transcript, [m.raw for m in transcript.messages]) == (
        b'{"model": "m",\n "input": [{"role":"user","content":"hi"}],\n "store":false, "x": 1.50}'
    )


def test_an_input_that_is_a_text_is_one_user_item_and_becomes_a_list_when_it_is_rendered():
    transcript = RESPONSES.parse('{"model":"m","input":"héllo \\"you\\"","stream":true}'.encode())
    assert [(m.role, m.text) for m in transcript.messages] == [("user", 'héllo "you"')]
    rendered = json.loads(RESPONSES.render(transcript, [m.raw for m in transcript.messages]))
    assert rendered == {"model": "m", "input": [user('héllo "you"')], "stream": True}


def test_instructions_and_leading_developer_items_are_the_system_text():
    developer = {"role": "developer", "content": "Be brief."}
    assert read(developer, user("x"), instructions="You are an agent.").system_text == "You are an agent.\nBe brief."


def test_limits_tools_and_output_schema_are_read():
    tools = [{"type": "function", "name": "exec_command"}, {"type": "web_search"}, {"type": "custom", "name": "patch"}]
    schema = {"format": {"type": "json_schema", "schema": {"properties": {"title": {"type": "string"}}}}}
    transcript = read(user("x"), tools=tools, max_output_tokens=900, stream=True, text=schema)
    assert (transcript.max_output, transcript.stream) == (900, True)
    assert transcript.tools == ("exec_command", "web_search", "patch")
    assert json.loads(transcript.response_format) == schema


@pytest.mark.parametrize("raw", [b"", b"[]", b'{"model":"m"}', b'{"input":7}', b'{"input":[1]}', b'{"input":["x"]}'])
def test_a_body_without_items_is_unreadable(raw):
    with pytest.raises(UnreadableBody):
        RESPONSES.parse(raw)


def test_a_body_that_goes_on_from_an_earlier_reply_may_have_no_input_and_is_rendered_without_its_id():
    transcript = RESPONSES.parse(b'{"model":"m","previous_response_id":"resp_7","store":true}')
    assert (transcript.continues, transcript.messages) == ("resp_7", ())
    assert json.loads(RESPONSES.render(transcript, [RESPONSES.user_message("hi")])) == {
        "model": "m",
        "store": True,
        "input": [user("hi")],
    }
    assert read(user("x"), conversation={"id": "conv_1"}).continues == "conv_1"
    assert read(user("x"), conversation="conv_1").continues == "conv_1"
    assert read(user("x"), previous_response_id=None).continues == ""


def test_a_trigger_at_the_end_asks_the_server_to_compact():
    assert read(user("x"), TRIGGER).compacts
    assert not read(TRIGGER, user("x")).compacts


def test_texts_pictures_and_files_of_a_message_are_parts():
    content = [
        {"type": "input_text", "text": "look"},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
        {"type": "input_file", "file_id": "f1"},
    ]
    assert [part.kind for part in parts({"role": "user", "content": content})] == ["text", "image", "opaque"]
    refusal = {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}
    assert parts(refusal)[0].text == "No."


def test_calls_are_the_assistants_and_outputs_are_the_tools():
    asked, told = parsed(call(1, "make"), output(1, "ok"))
    assert (asked.role, asked.parts[0].kind, asked.parts[0].name) == ("assistant", "call", "exec_command")
    assert json.loads(asked.parts[0].text) == {"cmd": "make"}
    assert (told.role, told.parts[0].text, told.parts[0].call_id) == ("tool", "ok", asked.parts[0].call_id)


@pytest.mark.parametrize(
    ("item", "name", "text"),
    [
        ({"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "*** Begin"}, "patch", "*** Begin"),
        ({"type": "local_shell_call", "call_id": "c", "action": {"command": "ls"}}, "local_shell", '{"command":"ls"}'),
        ({"type": "apply_patch_call", "call_id": "c", "operation": {"path": "a"}}, "apply_patch", '{"path":"a"}'),
        ({"type": "mcp_approval_request", "id": "c", "name": "deploy", "arguments": "{}"}, "deploy", "{}"),
    ],
)
def test_every_kind_of_call_has_a_name_an_id_and_its_arguments(item, name, text):
    part = parts(item)[0]
    assert (part.kind, part.name, part.call_id, part.text) == ("call", name, "c", text)


@pytest.mark.parametrize(
    ("item", "text"),
    [
        ({"type": "custom_tool_call_output", "call_id": "c", "output": "done"}, "done"),
        ({"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "done"}]}, "done"),
        ({"type": "shell_call_output", "call_id": "c", "output": [{"stdout": "done"}]}, '[{"stdout":"done"}]'),
        ({"type": "local_shell_call_output", "id": "c", "output": "done"}, "done"),
        ({"type": "mcp_approval_response", "approval_request_id": "c", "approve": False, "reason": "no"}, "no"),
        ({"type": "function_call_output", "call_id": "c", "output": None}, ""),
    ],
)
def test_every_kind_of_output_has_the_id_of_its_call_and_a_text(item, text):
    part = parts(item)[0]
    assert (part.kind, part.call_id, part.text) == ("result", "c", text)


def test_a_picture_that_a_tool_gave_is_a_part_of_its_own():
    shot = {"type": "computer_screenshot", "image_url": "data:image/png;base64,AAAA"}
    assert [part.kind for part in parts({"type": "computer_call_output", "call_id": "c", "output": shot})] == [
        "result",
        "image",
    ]


def test_a_call_that_the_server_ran_itself_waits_for_no_output():
    item = {"type": "mcp_call", "id": "m1", "name": "search", "arguments": "{}", "output": "3 hits"}
    assert [(part.kind, part.call_id) for part in parts(item)] == [("call", ""), ("result", "")]


def test_reasoning_is_a_thought_with_the_size_of_what_is_sealed():
    item = {**thought(1), "summary": [{"type": "summary_text", "text": "Looked."}]}
    assert (parts(item)[0].kind, parts(item)[0].text) == ("thinking", "Looked.")
    assert parts(item)[0].size == len(item["encrypted_content"])


def test_a_compaction_item_carries_what_is_sealed_and_other_kinds_are_opaque():
    sealed = parts(compaction())[0]
    assert (sealed.kind, sealed.name, sealed.text) == ("opaque", "compaction", compaction()["encrypted_content"])
    for item in ({"type": "item_reference", "id": "msg_1"}, {"type": "from_the_future", "x": 1}, TRIGGER):
        assert (parts(item)[0].kind, parts(item)[0].name) == ("opaque", item["type"])


def test_equal_bytes_give_the_same_item():
    assert parsed(user("x"))[0] is parsed(user("x"))[0]


def test_text_is_added_behind_or_before_the_items_own_and_all_else_stays():
    raw = b'{"type":"message","id":"msg_1","role":"user","content":[{"type":"input_text","text":"a","x":1.0}]}'
    later = json.loads(RESPONSES.extend_message(raw, "b"))
    assert [part["text"] for part in later["content"]] == ["a", "b"]
    assert later["id"] == "msg_1"
    before = json.loads(RESPONSES.extend_message(raw, "b", before=True))
    assert [part["text"] for part in before["content"]] == ["b", "a"]
    assert json.loads(RESPONSES.extend_message(b'{"role":"user","content":"a"}', "b"))["content"] == "a\n\nb"


def test_an_answer_gives_text_calls_usage_and_its_items():
    usage = {"input_tokens": 120, "output_tokens": 7, "input_tokens_details": {"cached_tokens": 100}}
    answer = RESPONSES.answer(whole(thought(1), says("Reading."), call(1), usage=usage), sse=False)
    assert (answer.text, answer.finish, answer.complete, answer.id) == ("Reading.", "tool_calls", True, "resp_1")
    assert [made.name for made in answer.calls] == ["exec_command"]
    assert (answer.prompt_tokens, answer.cached_tokens, answer.completion_tokens) == (120, 100, 7)
    assert [item.role for item in answer.items] == ["assistant"] * 3


def test_an_answer_at_its_output_limit_says_so():
    fields = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    answer = RESPONSES.answer(whole(says("Half"), **fields), sse=False)
    assert (answer.finish, answer.complete) == ("max_output_tokens", True)


@pytest.mark.parametrize("raw", [b"", b"<html>", b"[]", b'{"output":7}', b'{"error":{"message":"no"}}'])
def test_rubbish_is_an_answer_that_says_nothing(raw):
    answer = RESPONSES.answer(raw, sse=False)
    assert (answer.text, answer.calls, answer.complete) == ("", (), False)


def test_a_stream_is_read_from_its_last_event():
    raw = stream(
        {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "output": []}},
        {"type": "response.output_text.delta", "delta": "He\u2028"},
        {"type": "response.unheard_of", "delta": {"x": 1}},
        {"type": "response.completed", "response": json.loads(whole(says("He\u2028llo"), call(1)))},
    )
    answer = RESPONSES.answer(raw, sse=True)
    assert (answer.text, len(answer.calls), answer.complete, answer.id) == ("He\u2028llo", 1, True, "resp_1")


def test_a_last_event_without_output_is_filled_with_the_items_that_came_before():
    raw = stream(
        {"type": "response.output_item.done", "item": says("Hello")},
        {"type": "response.completed", "response": {"id": "resp_1", "status": "completed", "output": []}},
    )
    assert RESPONSES.answer(raw, sse=True).text == "Hello"


def test_a_stream_that_breaks_off_or_fails_is_not_complete():
    begun = stream({"type": "response.output_text.delta", "delta": "Hel"})
    failed = stream({"type": "response.failed", "response": {"status": "failed", "error": {"code": "x"}}})
    assert [RESPONSES.answer(raw, sse=True).complete for raw in (begun, begun + failed)] == [False, False]
    assert RESPONSES.answer(begun, sse=True).text == "Hel"


def test_a_refusal_is_told_apart():
    refusal = {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "I won't."}]}
    assert RESPONSES.answer(whole(refusal), sse=False).refusal == "I won't."


def test_errors_have_the_form_of_the_api_and_overflow_has_its_code():
    error = json.loads(RESPONSES.error(NothingFits("This model's maximum context length is 9 tokens.")))["error"]
    assert (error["code"], error["type"]) == ("context_length_exceeded", "invalid_request_error")
    name, data = RESPONSES.stream_error(UpstreamBroken("cut off")).decode().strip().split("\n")
    assert name == "event: error"
    assert json.loads(data.removeprefix("data: "))["message"] == "cut off"
    assert json.loads(data.removeprefix("data: "))["error"]["code"] == "upstream_broken"


def test_a_question_of_our_own_isnt_kept_by_the_server():
    asked = json.loads(RESPONSES.question("m", "Condense.", "<log>", 300))
    assert (asked["store"], asked["instructions"], asked["input"]) == (False, "Condense.", "<log>")
    assert Responses().parse(RESPONSES.question("m", "Condense.", "<log>", 300)).max_output == 300


def test_a_body_of_codex_is_read_with_its_first_words():
    transcript = RESPONSES.parse(body(user("goal"), stream=True, store=False, prompt_cache_key="t1", tools=[]))
    assert transcript.strings(("prompt_cache_key",)) == {"prompt_cache_key": "t1"}
