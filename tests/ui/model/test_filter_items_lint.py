"""Filter matches are known before the messages are linted."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from mcpspy.core.query.parser import parse
from mcpspy.core.session.session import Session
from mcpspy.io.recording.reader import Recording
from mcpspy.ui.model.filter_items import ChangeItem, LintRowFilter
from tests.ui.conftest import Make

RECORDINGS = Path(__file__).parents[3] / "recordings"


@pytest.mark.parametrize(
    "text", ["tool:*", "status:err", "params.name:echo", "text:hello", "since:-1s", "is:note"]
)
@pytest.mark.parametrize("name", ["peer-sdk-auto", "everything-ts-auto"])
def test_it_finds_what_show_finds(name: str, text: str) -> None:
    path = RECORDINGS / f"{name}.jsonl"
    session = Session()
    for entry in Recording(path):
        session.add(entry)
    query, shown_progress = parse(text), list[tuple[int, int]]()
    query.end = session.last_at
    expected = [change.number for change in session.changes if query.matches(ChangeItem(change))]

    with closing(
        LintRowFilter(path, parse(text), lambda done, of: shown_progress.append((done, of)))
    ) as chosen:
        assert [number for number in range(len(session.changes) + 5) if chosen.has(number)] == expected

    assert shown_progress[-1] == (path.stat().st_size,) * 2


def test_requests_without_a_response_at_the_end_match_noanswer(make_recording: Make) -> None:
    ask = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}'
    path = make_recording(
        [("client", ask % 1), ("client", ask % 2), ("server", b'{"jsonrpc":"2.0","id":1,"result":{}}')],
        exit_code=None,
    )

    with closing(LintRowFilter(path, parse("status:noanswer"), lambda done, of: None)) as chosen:
        assert [chosen.has(number) for number in range(4)] == [False, True, False, False]
