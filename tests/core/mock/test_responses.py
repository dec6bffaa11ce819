"""Messages that no recording holds."""

from __future__ import annotations

import json

from mcpspy.core.mock import responses
from tests.core.mock.talking import Talk, modern


def test_results_and_errors_carry_the_id_as_it_was_written() -> None:
    assert responses.result(b'"a"', {}) == b'{"jsonrpc":"2.0","id":"a","result":{}}'
    assert (
        responses.error(b"null", -32700, "no")
        == b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}'
    )
    assert json.loads(responses.error(b"1", 1, "\ud800", {"a": 1}))["error"]["data"] == {"a": 1}


def test_a_server_whose_handshake_is_missing_has_what_was_used_of_it() -> None:
    talk = Talk("weather").call(1).client(id=2, method="resources/subscribe", params={"uri": "x:"})
    talk.client(id=3, method="completion/complete", params={})
    said = responses.initialized(talk.library(), "2025-06-18")
    assert said["protocolVersion"] == "2025-06-18"
    assert said["serverInfo"]["name"] == "weather"
    assert said["capabilities"] == {"tools": {}, "resources": {"subscribe": True}, "completions": {}}
    assert responses.initialized(talk.library(), "1999")["protocolVersion"] == "2025-11-25"


def test_a_modern_server_that_was_never_probed_says_what_it_took() -> None:
    library = Talk().client(id=1, method="tools/list", params={"_meta": modern()}).library()
    said = responses.discovered(library)
    assert said["supportedVersions"] == ["2026-07-28"]
    assert said["capabilities"] == {"tools": {}}
