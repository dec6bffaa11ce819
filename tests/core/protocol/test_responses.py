"""Responses that mcpspy writes."""

from __future__ import annotations

import json

from mcpspy.core.protocol import responses


def test_results_and_errors_carry_the_id_as_it_was_written() -> None:
    assert responses.result(b'"a"', {}) == b'{"jsonrpc":"2.0","id":"a","result":{}}'
    assert (
        responses.error(b"null", -32700, "no")
        == b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}'
    )
    assert json.loads(responses.error(b"1", 1, "\ud800", {"a": 1}))["error"]["data"] == {"a": 1}
