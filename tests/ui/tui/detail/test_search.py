"""Search queries, and hits up to the maximum count."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.ui.tui.detail import search
from mcpspy.ui.tui.detail.search import SearchHits, SearchQuery


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("one", [0, 4, 8]),
        ("One", [4]),
        ("/o.e/", [0, 4, 8]),
        ("/O.e/", [4]),
        ("/^one/", [0]),
        ("é", [12, 15]),
        ("É", [15]),
        ("/É|x/", [15]),
        ("//", []),
        ("two", []),
    ],
)
def test_case_matters_if_a_capital_was_typed(words: str, found: list[int]) -> None:
    text = "one One ONE é É"

    assert list(SearchQuery(words).find(text.encode())) == found


def test_an_invalid_regular_expression_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"invalid regular expression: .*unterminated"):
        SearchQuery("/(a/")


def test_markup_and_patterns_are_literal() -> None:
    assert list(SearchQuery("[b].*").find(b"[b].* [b]xx")) == [0]
    assert [(span.start, span.end) for span in SearchQuery("[b]").spans("a [B]", "hit")] == [(2, 5)]


@given(
    st.text(alphabet="abA", min_size=1, max_size=3), st.text(alphabet="abAB", max_size=60), st.integers(1, 9)
)
def test_windows_miss_no_hit(words: str, text: str, window: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "WINDOW", window)
        found = set(SearchQuery(words).find(text.encode()))
    lower = not any(c.isupper() for c in words)
    seen = text.lower() if lower else text

    assert found <= {at for at in range(len(seen)) if seen.startswith(words, at)}
    assert {seen.find(words)} - {-1} <= found
    assert bool(found) is (words in seen)


def test_hits_are_numbered_and_iterated() -> None:
    hits = SearchHits(SearchQuery("a"), b"a.a.a")

    assert (len(hits), hits.is_more, hits.number(2), hits.number(1)) == (3, False, 2, 0)
    assert [hits.after(at) for at in (0, 1, 4, 5)] == [0, 2, 4, None]
    assert [hits.before(at) for at in (0, 1, 4, 5)] == [None, 0, 2, 4]


def test_hits_beyond_the_count_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MOST", 2)
    hits = SearchHits(SearchQuery("a"), b"a.a.a.a.a")

    assert (len(hits), hits.is_more) == (2, True)
    assert [hits.after(at) for at in (3, 5, 8, 9)] == [4, 6, 8, None]
    assert [hits.before(at) for at in (9, 8, 5, 4, 3)] == [8, 6, 4, 2, 2]
