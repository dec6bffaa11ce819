"""The optional dependency, which may be missing."""

from __future__ import annotations

import pytest

from mcpspy.errors import CannotStart
from mcpspy.io.forward import proxy


def test_an_error_names_the_command_that_needs_mitmproxy_and_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proxy.require_mitmproxy("exec")
    monkeypatch.setattr(proxy, "find_spec", lambda _: None)
    with pytest.raises(CannotStart, match=r"^exec needs mitmproxy, which is not installed \(pip install"):
        proxy.require_mitmproxy("exec")
