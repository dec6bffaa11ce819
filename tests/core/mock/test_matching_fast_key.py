"""At a glance a request asks for what it asks for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.core.mock.matching import asked, glance, is_plain
from mcpspy.core.protocol.message import Request, read_frame
from mcpspy.core.recording.decode import Frame
from tests.core.mock.talking import VERSION, modern

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([1, 1.0, 1.5, 10**30, None, True, "1.2", "e", "é", "\ud800", {}]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)
META = VALUES | st.sampled_from([modern(), modern(progressToken="t"), {VERSION: "2025-11-25"}])
NAMES = ["name", "uri", "ref", "arguments", "cursor", "inputResponses"]
PARAMS = (
    VALUES
    | st.dictionaries(st.sampled_from(NAMES), VALUES)
    | st.builds(
        lambda params, meta: {**params, "_meta": meta}, st.dictionaries(st.sampled_from(NAMES), VALUES), META
    )
)


@given(st.sampled_from(["tools/call", "resources/read", "completion/complete", "x"]), PARAMS, st.booleans())
def test_it_is_what_a_longer_look_says(method: str, params: Any, ignores: bool) -> None:
    ignored = (("params", "arguments", "a"),) if ignores else ()
    said = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    (request,) = read_frame(Frame(0.0, "client", json.dumps(said).encode()))
    assert isinstance(request, Request)
    found, wanted = glance(method, bytes(request.raw_params), ignored), asked(request, ignored)
    if found is not None:
        assert found.digest == wanted.digest
        assert (found.subject, found.version) == (wanted.subject, wanted.version)
        assert found.token == request.progress_token


@pytest.mark.parametrize("data", [b'{"a":1}', b"{}", b"", b'{"n":1e40}', b'{"_meta":{"progressToken":1}}'])
def test_what_is_plain_is_told(data: bytes) -> None:
    assert glance("tools/call", data) is not None


@pytest.mark.parametrize("data", [b"[]", b"{", b'{"requestState":"s"}', b'{"name":1}', b'{"_meta":5}'])
def test_of_what_is_odd_nothing_is_said(data: bytes) -> None:
    assert glance("tools/call", data) is None


def test_an_id_is_plain_if_no_other_text_is_the_same_id() -> None:
    assert [is_plain(text) for text in (b"1", b'"a"', b"1.0", b"-1", b'"\\u0061"', b"null", b"")] == [
        *(True, True),
        *(False,) * 5,
    ]
