"""Layouts of entries as data."""

from __future__ import annotations

from mcpspy.core.hostconfig.layout import ANY, LOGIN, STANDARD, TYPE


def test_no_member_is_two_things() -> None:
    ours = {"command", "args", "env"}
    for layout in (STANDARD, ANY):
        url = {*layout.url, *TYPE, layout.headers[0]}
        assert not url & LOGIN
        assert not url & ours


def test_a_file_of_no_known_host_may_have_any_name_for_its_url() -> None:
    assert set(ANY.url) > set(STANDARD.url)
