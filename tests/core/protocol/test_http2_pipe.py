"""HTTP/2 on the pipes of a stdio server, as the frames of a recording."""

from __future__ import annotations

import json
from typing import Any

import pytest
from h2.config import H2Configuration  # type: ignore[import-untyped]
from h2.connection import H2Connection  # type: ignore[import-untyped]

from mcpspy.core.protocol import http2_pipe
from mcpspy.core.protocol.http2_pipe import Http2Encoder, begins

REQUEST = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'


def client_bytes() -> bytes:
    connection = H2Connection()
    connection.initiate_connection()
    headers = [(":method", "POST"), (":path", "/mcp?key=abc"), (":scheme", "http"), (":authority", "x")]
    connection.send_headers(1, [*headers, ("authorization", "Bearer abc"), ("mcp-method", "tools/list")])
    connection.send_data(1, REQUEST, end_stream=True)
    return bytes(connection.data_to_send())


def server_bytes() -> bytes:
    connection = H2Connection(H2Configuration(client_side=False))
    connection.initiate_connection()
    return bytes(connection.data_to_send())


def notes(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


def frames(side: str, *chunks: bytes, limit: int = 0) -> list[dict[str, Any]]:
    encoder = Http2Encoder(side, limit)
    found = notes(b"".join(encoder.feed(0.0, chunk) for chunk in chunks) + encoder.close(1.0))
    return [{key: value for key, value in each.items() if key not in ("t", "note", "from")} for each in found]


def test_the_first_bytes_of_both_sides_are_recognised_and_json_is_not() -> None:
    assert begins("client", client_bytes())
    assert begins("server", server_bytes())
    for line in REQUEST + b"\n", b"PRINT me\n", b"\0\0\0\n", b"\n":
        assert not begins("client", line)
        assert not begins("server", line)


@pytest.mark.parametrize("step", [1, 7, 10_000])
def test_the_frames_are_the_same_in_chunks_of_any_size(step: int) -> None:
    data = client_bytes()
    preface, settings, head, body = frames(
        "client", *(data[at : at + step] for at in range(0, len(data), step))
    )
    assert (preface["frame"], settings["frame"]) == ("preface", "SETTINGS")
    assert head["headers"] == {
        ":method": "POST", ":path": "/mcp?key=[redacted]", ":scheme": "http", ":authority": "x",
        "authorization": "[redacted]", "mcp-method": "tools/list",
    }  # fmt: skip
    assert body == {"frame": "DATA", "id": 1, "size": len(REQUEST), "end": True, "text": REQUEST.decode()}


def test_without_h2_no_byte_of_the_headers_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http2_pipe, "_decoder", lambda: None)
    head = frames("client", client_bytes())[2]
    assert head.keys() == {"frame", "id", "size"}


def test_headers_that_cannot_be_decoded_end_their_decoding() -> None:
    bad = b"\0\0\1\1\4\0\0\0\1\xff"
    found = frames("server", bad, bad)
    assert ["headers: " in each.get("error", "") for each in found] == [True, False]


def test_binary_data_a_large_payload_and_a_cut_frame_are_recorded_with_their_size() -> None:
    binary, large = b"\0\0\2\0\0\0\0\0\1\xff\xfe", b"\0\0\4\0\0\0\0\0\1abcd"
    assert frames("server", binary + large + b"\0\0\7\0", limit=3) == [
        {"frame": "DATA", "id": 1, "size": 2, "b64": "//4="},
        {"frame": "DATA", "id": 1, "size": 4},
        {"frame": "incomplete", "size": 4},
    ]


def test_padding_and_priority_are_not_part_of_the_content() -> None:
    padded = b"\0\0\5\0\x08\0\0\0\1\2ab\0\0"
    assert frames("server", padded) == [{"frame": "DATA", "id": 1, "size": 5, "text": "ab"}]
