"""The links of rows to apps, found from the index in slices."""

from __future__ import annotations

import json

from mcpspy.ui.model.apps import AppsModel
from tests.ui.model.test_session_model import File

PAGE = "ui://m/a"
TOOLS = {
    "tools": [
        {"name": "show", "_meta": {"ui": {"resourceUri": PAGE}}},
        {"name": "poll", "_meta": {"ui": {"visibility": ["app"]}}},
        {"name": "other"},
    ]
}


def line(side: str, **members: object) -> bytes:
    return json.dumps({"t": 0.0, "from": side, "msg": {"jsonrpc": "2.0", **members}}).encode()


def request(number: int, method: str, **params: object) -> bytes:
    return line("client", id=number, method=method, params=params)


LINES = (
    request(1, "tools/list"),
    line("server", id=1, result=TOOLS),
    request(2, "tools/call", name="show"),
    line("server", id=2, result={"content": []}),
    request(3, "resources/read", uri=PAGE),
    request(4, "tools/call", name="poll"),
    request(5, "tools/call", name="other"),
)


def test_rows_are_linked_like_the_changes_of_a_session() -> None:
    file = File()
    file.add(*LINES)
    apps = AppsModel(file.log)
    apps.advance(lambda: True)

    assert [apps.words(row) for row in range(len(LINES))] == [
        "", "", f"shown by {PAGE}", "", "page of show", f"called by the app {PAGE}", "",
    ]  # fmt: skip
    assert [apps.page_of(2), apps.page_of(5), apps.page_of(4), apps.page_of(6)] == [4, 4, None, None]
    assert [apps.call_of(4), apps.call_of(2)] == [2, None]


def test_a_model_that_is_behind_has_no_links_yet_and_catches_up() -> None:
    file = File()
    apps = AppsModel(file.log)
    file.add(*LINES[:3])
    assert (apps.is_behind, apps.words(2)) == (True, "")
    apps.advance(lambda: True)
    assert (apps.is_behind, apps.words(2)) == (False, f"shown by {PAGE}")
    file.add(*LINES[3:])
    apps.advance(lambda: True)
    assert apps.page_of(2) == 4
