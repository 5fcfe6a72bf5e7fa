"""Messages whose inside is not read: what is changed in them, and that nothing else is."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from meantime.execution.elicited_answers import question_of, result_of
from meantime.integrations.mcp.id_scan import IdScan
from meantime.integrations.mcp.sse_events import SseEvents
from meantime.integrations.mcp.wire.raw_http import Outgoing, header_text
from meantime.kernel.questions import Reply
from meantime.surfaces.wrap.raw_messages import MOST_IN_BATCH, UNREADABLE, answer, key, read, request
from meantime.surfaces.wrap.repeated_requests import MOST, MOST_BYTES, RepeatedRequests
from meantime.surfaces.wrap.tool_answers import listed, with_notices

ODD = b'{"n": 1.50, "big": 123456789012345678901234567890, "t":"\\u00e4\\/",  "l":[ 1,2 ]}'


def test_an_answer_keeps_the_bytes_of_its_result():
    (found,) = read(b' { "result" :' + ODD + b', "id":"x\\u0041", "jsonrpc":"2.0"}')
    assert answer(b"7", found.result) == b'{"jsonrpc":"2.0","id":7,"result":' + ODD + b"}"
    assert key(found.id) == "xA"


def test_ids_that_look_alike_are_apart():
    ids = [b"1", b'"1"', b"-1", b"0"]
    assert len({key(Raw(id)) for id in ids}) == len(ids)
    for bad in (b"1.5", b"null", b"{}", b"[]", b"true", b""):
        assert key(Raw(bad)) is None


def test_a_request_without_params_has_none():
    (found,) = read(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
    assert json.loads(request(b"2", found.method, found.params)) == {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "ping",
    }


@pytest.mark.parametrize("line", [b"{", b"null", b"[1]", b'{"method": 1}', b"\xff", b"[" * 100_000])
def test_a_line_that_is_not_a_message_is_unreadable(line: bytes):
    with pytest.raises(UNREADABLE):
        read(line)


def test_a_batch_has_a_limit():
    many = b",".join([b'{"method":"ping"}'] * MOST_IN_BATCH)
    assert len(read(b"[" + many + b"]")) == MOST_IN_BATCH
    with pytest.raises(msgspec.ValidationError):
        read(b"[" + many + b',{"method":"ping"}]')


@pytest.mark.parametrize("content", [b"[]", b"[ ]", b'[{"type":"text",  "text":"\\u00e4"}]'])
def test_notices_stand_behind_the_content_which_keeps_its_bytes(content: bytes):
    found = with_notices(
        Raw(b'{"content":' + content + b',"structuredContent":' + ODD + b"}"), ["one", "two"]
    )
    assert found is not None
    assert content[1:-1].strip() in bytes(found)
    assert ODD in bytes(found)
    assert [one["text"] for one in json.loads(bytes(found))["content"]][-2:] == ["one", "two"]


@pytest.mark.parametrize("result", [b"{}", b'{"content":1}', b'{"content":"x"}', b"[]", b"7"])
def test_a_result_without_content_carries_no_notice(result: bytes):
    assert with_notices(Raw(result), ["one"]) is None


def test_a_list_of_tools_that_makes_no_sense_is_passed_on():
    for bad in (b"{}", b'{"tools":1}', b'{"tools":[1]}', b"null"):
        assert bytes(listed(Raw(bad), lambda tool: 1.0)) == bad


def test_requests_that_are_repeated_have_a_limit():
    held = RepeatedRequests()
    for number in range(MOST + 1):
        held.note("resources/subscribe", Raw(b'{"uri":"memo://%d"}' % number))
    held.note("resources/subscribe", Raw(b'{"uri":"' + b"x" * MOST_BYTES + b'"}'))
    held.note("resources/unsubscribe", Raw(b'{"uri":"memo://7"}'))
    found = [bytes(params) for _, params in held]
    assert len(found) == MOST - 1
    assert found[0] == b'{"uri":"memo://1"}', "the oldest is forgotten"
    for odd in (b"", b"null", b"[]", b'{"uri":1}'):
        held.note("resources/subscribe", Raw(odd))
    assert len(list(held)) == MOST - 1


def test_only_tools_that_may_go_to_the_background_are_changed():
    tools: Any = [{"name": name, "outputSchema": {"type": "object"}, "x": 1} for name in ("slow", "never")]
    given = Raw(msgspec.json.encode({"tools": tools, "nextCursor": "more"}))
    found = json.loads(bytes(listed(given, lambda tool: 2.5 if tool == "slow" else None)))
    assert found["nextCursor"] == "more"
    assert "outputSchema" not in found["tools"][0]
    assert "longer than 2.5 s" in found["tools"][0]["description"]
    assert found["tools"][1] == tools[1]


FORM = {"type": "object", "properties": {"n": {"type": "integer"}}}
TWO = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "boolean"}}}


@pytest.mark.parametrize(
    ("schema", "said", "expected"),
    [
        (FORM, "7", {"action": "accept", "content": {"n": 7}}),
        (FORM, "seven", {"action": "accept", "content": {"n": "seven"}}),
        (FORM, '{"n": 8}', {"action": "accept", "content": {"n": 8}}),
        (TWO, '{"a": "x", "b": true}', {"action": "accept", "content": {"a": "x", "b": True}}),
        (TWO, "x", {"action": "decline"}),
        ({}, "yes", {"action": "accept", "content": {}}),
        ({}, "no", {"action": "decline"}),
    ],
)
def test_an_answer_becomes_the_form_that_the_server_wants(schema: Any, said: str, expected: Any):
    params = {"message": "How many?", "requestedSchema": schema}
    question = question_of("q", params)
    assert question.text.startswith("How many?")
    assert result_of(params, Reply(question="q", text=said, by="user")) == expected
    assert result_of(params, Reply(question="q", by="nobody")) == {"action": "decline"}


def test_events_of_a_stream_come_whole_from_any_pieces():
    stream = b': hello\r\nid: 7\r\nretry: 20\r\ndata: {"a":\r\ndata: 1}\r\n\r\nevent: message\ndata: {}\n\n'
    for size in (1, 3, 1_000):
        events = SseEvents(100, IdScan)
        pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
        assert [event for piece in pieces for event in events.feed(piece)] == [b'{"a":\n1}', b"{}"]
        assert (events.last_id, events.retry) == ("7", 0.02)


def test_an_event_that_is_too_long_names_what_it_answers():
    events = SseEvents(50, IdScan)
    (found,) = events.feed(b'data: {"id":3,"result":"' + b"x" * 100 + b'"}\n\n')
    assert isinstance(found, IdScan)
    assert found.answers == 3


def test_a_request_without_a_handshake_repeats_its_envelope_in_headers():
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    line = msgspec.json.encode({"id": 1, "method": "tools/call", "params": {"name": "größe", "_meta": meta}})
    found = msgspec.json.decode(line, type=Outgoing).headers()
    assert found["mcp-protocol-version"] == "2026-07-28"
    assert found["mcp-method"] == "tools/call"
    assert found["mcp-name"] == header_text("größe") == "=?base64?Z3LDtsOfZQ==?="
    assert header_text("plain") == "plain"
    older = msgspec.json.encode({"id": 1, "method": "tools/call", "params": {"name": "x"}})
    assert msgspec.json.decode(older, type=Outgoing).headers() == {}
