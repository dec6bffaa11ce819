"""HTTP exchanges, and their categories."""

from __future__ import annotations

import pytest

from mcpspy.analysis.lint import EntryPosition, EventKind
from mcpspy.analysis.lint.state import INITIALIZES, NO_MESSAGE, NOTIFIES, REQUESTS, SSE, UNREADABLE, HttpPost
from mcpspy.core.protocol.message import read_frame
from mcpspy.core.protocol.spec import META
from mcpspy.core.recording.decode import Frame

KINDS = {
    "Request": EventKind.REQUEST,
    "Notification": EventKind.NOTIFICATION,
    "Result": EventKind.RESULT,
    "Failure": EventKind.FAILURE,
    "Malformed": EventKind.MALFORMED,
}


def post(*bodies: bytes, head: dict[str, object] | None = None) -> HttpPost:
    made = HttpPost(EntryPosition(), 0, 1.0, [], [], head=head)
    for body in bodies:
        (message,) = read_frame(Frame(1.0, "client", body))
        made.add(message, KINDS[type(message).__name__], getattr(message, "method", ""), None)
    return made


@pytest.mark.parametrize(
    ("bodies", "category"),
    [
        ([], NO_MESSAGE),
        ([b'{"id":1,"method":"ping"}'], REQUESTS),
        ([b'{"method":"a"}', b'{"id":1,"method":"ping"}'], REQUESTS),
        ([b'{"id":1,"method":"initialize"}'], INITIALIZES),
        ([b'{"method":"initialize"}'], NOTIFIES),
        ([b'{"method":"a"}'], NOTIFIES),
        ([b'{"id":1,"result":{}}'], NOTIFIES),
        ([b'{"method":"a"}', b"{oops}"], UNREADABLE),
    ],
    ids=["nothing", "request", "both", "initialize", "no id", "notification", "answer", "garbage"],
)
def test_the_category_of_an_exchange_is_what_was_posted(bodies: list[bytes], category: str) -> None:
    assert post(*bodies).category(is_sse=False) == category
    assert post(*bodies).category(is_sse=True) == SSE


def test_the_revision_is_that_of_the_first_request_that_states_one() -> None:
    meta = (
        b'{"id":1,"method":"ping","params":{"_meta":{"%b":"2026-07-28"}}}' % f"{META}protocolVersion".encode()
    )

    assert post(b'{"id":1,"method":"ping"}', meta).revision == "2026-07-28"
    assert post(b'{"id":1,"method":"ping"}').revision is None


def test_responses_to_a_post_are_counted_and_their_error_codes_are_kept() -> None:
    made = post()
    for body in (b'{"method":"a"}', b'{"id":1,"result":{}}', b'{"id":1,"error":{"code":-32601}}'):
        (message,) = read_frame(Frame(1.0, "server", body))
        made.add(message, KINDS[type(message).__name__], "", None)

    assert (made.received, made.answers, made.posted) == (3, [None, -32601], [])


def test_a_malformed_head_has_no_headers_and_no_status() -> None:
    made = post(head={"status": "200", "request": 7, "response": {"a": "b"}})

    assert (made.status, made.request, made.response) == (0, {}, {"a": "b"})
    assert (post().status, post().request) == (0, {})
