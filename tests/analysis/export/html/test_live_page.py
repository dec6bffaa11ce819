"""The rows and the timeline of the exported page: those that the server of the live page has."""

from __future__ import annotations

from typing import Any

import pytest

from mcpspy.ui.model.row_filter import FilteredView
from mcpspy.ui.model.timeline import TimelineModel
from tests.analysis.export.html.filters import Pages, model_of
from tests.analysis.export.sessions import EVERY

PARTS = 40

NAMES = ("number", "begin", "end", "track", "tone", "method", "subject")
"""The members of a bar in the script, in the order in which the server sends them, before its status."""

TIMES = ("begin", "end")

ENDED = [path for path in EVERY if path.stem != "peer-http-modern"]
"""In that one, a client closes its connection: the page does not have the time of this event."""


@pytest.fixture(scope="module")
def exported() -> list[dict[str, Any]]:
    with Pages(ENDED) as pages:
        return pages.timelines(PARTS)


def view_of(number: int) -> FilteredView:
    view = FilteredView(model_of(ENDED[number]))
    view.advance(lambda: True)
    return view


@pytest.mark.parametrize("number", range(len(ENDED)), ids=[path.stem for path in ENDED])
def test_the_page_lists_the_rows_of_the_live_page(exported: list[dict[str, Any]], number: int) -> None:
    listed = [
        row for row, kind in exported[number]["rows"] if kind != "http"
    ]  # Failed heads are only in the page.

    assert listed == [row + 1 for row in view_of(number).rows]


def served(number: int, page: dict[str, Any]) -> dict[str, Any]:
    """Return the same window of a session as the server sends it."""
    timeline, view = TimelineModel(model_of(ENDED[number])), view_of(number)
    timeline.advance(lambda: True)
    return timeline.window(view.rows, page["begin"], page["end"], PARTS, page["whole"])


def near(values: list[float]) -> Any:
    """Return times to compare with: rows of the page have them in whole microseconds."""
    return pytest.approx(values, abs=3e-6)


@pytest.mark.parametrize("number", range(len(ENDED)), ids=[path.stem for path in ENDED])
def test_the_page_counts_a_real_session_as_the_server_does(
    exported: list[dict[str, Any]], number: int
) -> None:
    page = exported[number]
    (track,), (wanted,) = page["tracks"], served(number, page)["tracks"]

    assert sum(track["began"]) > 0
    assert track.pop("slowest") == near(wanted.pop("slowest"))
    assert track == wanted


@pytest.mark.parametrize("number", range(len(ENDED)), ids=[path.stem for path in ENDED])
def test_the_page_has_the_bars_of_the_server(exported: list[dict[str, Any]], number: int) -> None:
    page = exported[number]
    bars = sorted(page["bars"], key=lambda bar: bar["number"])
    wanted = sorted(served(number, page)["bars"])

    for place, name in enumerate(NAMES):
        assert [bar[name] for bar in bars] == (near if name in TIMES else list)(
            [bar[place] for bar in wanted]
        )
