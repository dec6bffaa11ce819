"""What a shell has to do."""

from __future__ import annotations

from mcpspy.core.intercept.steps import Gone, Pass, Remark, Ruling

PASS = Pass("client", b"{}", None, 1)


def test_only_what_goes_on_as_it_came_and_without_a_word_is_untouched() -> None:
    assert Ruling(1, False, [PASS], False).is_untouched
    assert not Ruling(1, False, [Remark("rule", {}), PASS], False).is_untouched
    assert not Ruling(1, True, [Gone("client", None, 1)], False).is_untouched
    assert not Ruling(1, False, [], True).is_untouched
