"""One script: its hooks, and loading it again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mcpspy.ui.scripts.script import Script, ScriptError


def write(path: Path, text: str, *, changed: int) -> None:
    """Write a script, `changed` seconds after the epoch."""
    path.write_text(text, encoding="utf-8")
    os.utime(path, (changed, changed))


def test_methods_of_an_object_come_before_functions(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    text = "class A:\n    def request(self, _): return 'method'\nscript = A()\n"
    write(path, text + "def request(_): return 'function'\ndef response(_): return 'function'\n", changed=1)

    hooks = Script("x.py", str(path)).hooks

    assert {name: hook(None) for name, hook in hooks.items()} == {"request": "method", "response": "function"}


def test_a_changed_script_takes_over_its_state(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    write(path, "calls = 7\ndef request(_): pass\n", changed=1)
    script = Script("x.py", str(path))
    assert not script.reload()
    write(
        path,
        "calls = 0\ndef reloaded(old):\n    global calls\n    calls = old.calls\ndef response(_): pass\n",
        changed=2,
    )

    assert script.reload()
    assert (script.module.calls, set(script.hooks)) == (7, {"reloaded", "response"})
    assert not script.reload()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("def request(:\n", "not loaded: SyntaxError: invalid syntax"),
        ("def reloaded(old): old.nothing\n", r"reloaded: AttributeError: .* \(line 1\)"),
        ("x = 1\n", "defines none of the hooks"),
    ],
)
def test_a_script_that_fails_to_reload_stays_as_it_was(text: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    write(path, "def request(_): return 'old'\n", changed=1)
    script = Script("x.py", str(path))
    write(path, text, changed=2)

    with pytest.raises(ScriptError, match=why):
        script.reload()

    assert script.hooks["request"](None) == "old"
    path.unlink()
    assert not script.reload()
