"""The optional dependency, which may be missing."""

from __future__ import annotations

import pytest

from mcpspy.errors import CannotStart
from mcpspy.io.forward import proxy


def test_who_needs_it_is_reported_with_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    proxy.require_mitmproxy("exec")
    monkeypatch.setattr(proxy, "find_spec", lambda _: None)
    with pytest.raises(CannotStart, match=r"^exec needs mitmproxy, which is not installed \(pip install"):
        proxy.require_mitmproxy("exec")
