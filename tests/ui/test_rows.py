"""The rows that are shown are those of the documents."""

from __future__ import annotations

from mcpspy.analysis import rows as below
from mcpspy.ui import rows


def test_every_word_of_a_row_is_said_here_too() -> None:
    defined = {
        name for name, value in vars(below).items() if getattr(value, "__module__", "") == below.__name__
    }
    public = {name for name in defined if not name.startswith("_")}

    assert public <= set(rows.__all__)
    assert all(getattr(rows, name) is getattr(below, name) for name in rows.__all__)
