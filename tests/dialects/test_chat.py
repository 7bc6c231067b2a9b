"""Chat completions on the wire: what is read from a request and a reply, and that nothing else is touched."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.dialects.chat import Chat
from proxy.errors import NothingFits, UnreadableBody, UpstreamBroken
from tests.builders import CHAT, SYSTEM, call, read, result, says, user
from tests.fake_model import event

TEXTS = st.text(max_size=40) | st.sampled_from(["", "\u2028", "é\n", '"quoted" \\ back', "[goalkeeper 1/2: x]"])
MESSAGES = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "tool", "critic"]), "content": TEXTS}),
    max_size=6,
)


@settings(max_examples=40, deadline=None)
@given(MESSAGES, st.booleans(), st.sampled_from([None, 1]))
def test_a_body_comes_out_byte_for_byte_when_nothing_changes(
    messages: list[object], ascii_only: bool, indent: int | None
):
    made = json.dumps(
        {"model": "m", "n": 1, "messages": messages, "z": [1.50, "é"]}, ensure_ascii=ascii_only, indent=indent
    )
    body = made.encode("utf-8", "surrogatepass")
    seen = Chat().parse(body)
    assert json.loads(CHAT.render(seen, [one.raw for one in seen.messages])) == json.loads(body)
    assert all(one.raw in body for one in seen.messages)


def test_escapes_number_forms_and_blanks_inside_messages_are_kept():
    raw = rb'{"content": "caf\u00e9 \/ \ud83d\ude00", "role":"user", "weight": 1.50e+2}'
    seen = CHAT.parse(b'{"messages": [ ' + raw + b' ], "top_p": 1.0}')
    assert seen.messages[0].raw == raw
    assert seen.messages[0].text == "café / 😀"
    assert seen.tail == b'], "top_p": 1.0}'
    assert seen.options == {"top_p": b"1.0"}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b'{"messages": null}',
        b'{"messages": {"role": "user"}}',
        b'{"messages": ["hello"]}',
        b'{"messages": [], "messages": []}',
        b'{"messages": [], "model": "a", "messages": [{"role": "user"}]}',
        b'{"messages": [{"role": "user", "content": "\xff"}]}',
    ],
)
def test_a_body_that_cant_be_read_or_means_two_things_is_refused(body: bytes):
    with pytest.raises(UnreadableBody):
        Chat().parse(body)


def test_unknown_roles_and_parts_are_kept_and_counted_as_opaque():
    critic = {"role": "critic", "content": [{"type": "hologram", "data": "x" * 50}, {"type": "text", "text": "bad"}]}
    message = read(critic).messages[0]
    assert message.role == "critic"
    assert [part.kind for part in message.parts] == ["opaque", "text"]
    assert message.text == "bad"


def test_calls_results_images_and_reasoning_become_parts():
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    seen = read(
        {"role": "user", "content": [{"type": "text", "text": "Look."}, image]},
        {**says("Reading.", call("c1", path="a.py")), "reasoning_content": "hm"},
        result("c1", "print(1)"),
    )
    look, answer, output = seen.messages
    assert [(part.kind, part.size > 0) for part in look.parts] == [("text", False), ("image", True)]
    assert {part.kind for part in answer.parts} == {"text", "thinking", "call"}
    asked = next(part for part in answer.parts if part.kind == "call")
    assert (asked.name, asked.call_id, json.loads(asked.text)) == ("read_file", "c1", {"path": "a.py"})
    assert [(part.kind, part.call_id, part.text) for part in output.parts] == [("result", "c1", "print(1)")]


def test_equal_bytes_give_the_same_message():
    chat = Chat()
    body = json.dumps({"messages": [user("a"), user("a"), user("b")]}).encode()
    first, second, third = chat.parse(body).messages
    assert first is second
    assert first is not third
    assert chat.parse(body).messages[0] is first


@pytest.mark.parametrize("before", [True, False])
def test_text_added_to_a_message_leaves_its_other_keys_as_they_were(before: bool):
    raw = rb'{"role":"user", "name" : "caf\u00e9", "weight":1.50, "content":"Go on."}'
    made = CHAT.extend_message(raw, "Mind the table.", before=before)
    assert rb'"caf\u00e9"' in made
    assert b"1.50" in made
    parts = ["Mind the table.", "Go on."] if before else ["Go on.", "Mind the table."]
    assert json.loads(made)["content"] == "\n\n".join(parts)


def test_text_added_to_a_list_of_parts_is_a_part_of_its_own():
    parts = [{"type": "text", "text": "Go on.", "cache_control": {"type": "ephemeral"}}]
    made = json.loads(CHAT.extend_message(json.dumps({"role": "user", "content": parts}).encode(), "Mind it."))
    assert made["content"] == [*parts, {"type": "text", "text": "Mind it."}]


def test_the_parameters_that_matter_are_read_in_any_form():
    tool = {"type": "function", "function": {"name": "grep"}}
    seen = read(SYSTEM, user("a"), stream=True, max_completion_tokens=64, tools=[tool], user="u1", seed=None)
    assert (seen.model, seen.stream, seen.max_output, seen.tools) == ("demo", True, 64, ("grep",))
    assert seen.system_text == SYSTEM["content"]
    assert seen.strings(["user", "seed", "missing"]) == {"user": "u1"}
    assert read(user("a"), max_tokens=True).max_output == 0


# --- replies ---------------------------------------------------------------------------------------------------------


def delta(finish: str | None = None, **said: object) -> bytes:
    return event({"choices": [{"index": 0, "delta": said, "finish_reason": finish}]})


DONE = b"data: [DONE]\n\n"
USAGE = {"prompt_tokens": 90, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 64}}


def test_a_streamed_answer_is_put_together_from_its_deltas():
    first = {"index": 0, "id": "c1", "function": {"name": "read", "arguments": '{"pa'}}
    rest = {"index": 0, "function": {"arguments": 'th": 1}'}}
    other = {"index": 1, "id": "c2", "function": {"name": "list", "arguments": ""}}
    stream = delta(role="assistant", content="Look") + delta(content="ing.") + delta(tool_calls=[first, other])
    stream += delta(tool_calls=[rest]) + delta("tool_calls") + event({"choices": [], "usage": USAGE}) + DONE
    answer = CHAT.answer(stream, sse=True)
    assert answer.text == "Looking."
    assert [(one.name, one.arguments, one.id) for one in answer.calls] == [
        ("read", '{"path": 1}', "c1"),
        ("list", "", "c2"),
    ]
    assert (answer.prompt_tokens, answer.cached_tokens, answer.completion_tokens) == (90, 64, 7)
    assert (answer.finish, answer.complete) == ("tool_calls", True)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 400))
def test_a_stream_cut_anywhere_gives_a_beginning_of_the_text_and_is_never_complete(place: int):
    stream = b"".join(delta(content=word) for word in ("Now ", "the\u2028", "whole ", "table."))
    answer = CHAT.answer(stream[:place], sse=True)
    assert "Now the\u2028whole table.".startswith(answer.text)
    assert not answer.complete


ODD_EVENTS = st.sampled_from(
    [
        delta(role="assistant", content=""),
        delta(reasoning_content="hm", content=None),
        delta(content="more", refusal="no"),
        delta(tool_calls=[{"index": 0, "id": "c1", "function": {"name": "read", "arguments": '"content":"x"'}}]),
        delta("stop", content="end"),
        event({"choices": [{"index": 1, "delta": {"content": "other"}, "finish_reason": None}]}),
        event({"created": 2, "choices": [{"index": 0, "delta": {"content": "later"}, "finish_reason": None}]}),
        event({"choices": [], "usage": USAGE}),
        b": keep-alive\n\n",
        b"data: rubbish\n\n",
        b"event: x\n",
        DONE,
    ]
)
RUNS = st.lists(TEXTS.map(lambda text: delta(content=text)), min_size=20, max_size=24).map(b"".join)


@settings(max_examples=120, deadline=None)
@given(st.lists(RUNS | ODD_EVENTS, max_size=5).map(b"".join), st.integers(0, 200))
def test_events_that_are_alike_say_the_same_read_as_one_and_one_by_one(stream: bytes, missing: int):
    stream = stream[: len(stream) - missing]
    # With other line ends no two events are found alike.
    assert CHAT.answer(stream, sse=True) == CHAT.answer(stream.replace(b"\n", b"\r\n"), sse=True)


def test_line_separators_inside_data_dont_end_a_line():
    stream = delta(content="a\u2028b\u0085c") + DONE
    assert CHAT.answer(stream, sse=True).text == "a\u2028b\u0085c"


@pytest.mark.parametrize("ends", [b"\n", b"\r\n", b"\r"])
def test_all_line_ends_of_event_streams_are_read(ends: bytes):
    stream = (b": comment\n\nevent: x\nid: 1\n" + delta(content="a") + b"data:" + delta("stop")[6:]).replace(
        b"\n", ends
    )
    answer = CHAT.answer(stream, sse=True)
    assert (answer.text, answer.finish) == ("a", "stop")


def test_only_the_first_choice_is_the_answer_and_unknown_events_are_passed_over():
    second = event({"choices": [{"index": 1, "delta": {"content": "other"}}]})
    stream = delta(content="mine") + second + event({"unknown": [1]}) + b"data: rubbish\n\n" + delta("stop") + DONE
    assert CHAT.answer(stream, sse=True).text == "mine"


def test_a_whole_answer_is_read_with_refusal_and_usage():
    message = {"role": "assistant", "content": None, "refusal": "No.", "tool_calls": [call("c1", path="x")]}
    body = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": USAGE}).encode()
    answer = CHAT.answer(body, sse=False)
    assert (answer.refusal, answer.calls[0].name, answer.prompt_tokens) == ("No.", "read_file", 90)
    assert answer.complete


@pytest.mark.parametrize("rubbish", [b"", b"<html>", b"[1]", b'{"choices": 3}', b'{"choices": []}', b"\xff\xfe"])
def test_rubbish_counts_as_nothing_said(rubbish: bytes):
    answer = CHAT.answer(rubbish, sse=False)
    assert (answer.text, answer.complete) == ("", False)
    assert CHAT.answer(rubbish, sse=True).complete is False


def test_own_errors_have_the_form_that_clients_know():
    fits = json.loads(CHAT.error(NothingFits("too long")))["error"]
    assert (fits["code"], fits["type"]) == ("context_length_exceeded", "invalid_request_error")
    stream = CHAT.stream_error(UpstreamBroken("it broke off"))
    assert stream.startswith(b"data: ")
    assert stream.endswith(b"\n\n")
    assert json.loads(stream[6:])["error"]["message"] == "it broke off"
