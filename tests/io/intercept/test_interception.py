"""The interception options."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.intercept.interception import InterceptionOptions

CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}'


def options(*flags: str, files: tuple[Path, ...] = ()) -> InterceptionOptions:
    found = InterceptionOptions()
    found.flags = list(flags)
    found.files = [str(file) for file in files]
    return found


def test_interception_is_inactive_without_options() -> None:
    assert not options().is_active
    assert options("a => drop").is_active
    assert options(files=(Path("x"),)).is_active
    for name in ("call_timeout", "slow"):
        watching = options()
        setattr(watching, name, 1.0)
        assert watching.is_active


def test_rules_of_files_come_first_and_all_are_numbered(tmp_path: Path) -> None:
    one, two = tmp_path / "one.toml", tmp_path / "two.toml"
    one.write_text('[[rule]]\nwhen = "ä"\ndrop = true\n', encoding="utf-8")
    two.write_text('seed = 3\n[[rule]]\nname = "b"\nwhen = "b"\ndrop = true\n', encoding="utf-8")

    rules = options("c => drop", files=(one, two)).rules()

    assert [(rule.number, rule.query.text, rule.seed) for rule in rules.rules] == [
        (1, "ä", None),
        (2, "b", 3),
        (3, "c", None),
    ]


def test_two_rules_cannot_have_the_same_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match='two rules are named "x"'):
        options("a => name=x drop", "b => name=x drop").rules()


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b"# \xe4")
    with pytest.raises(UsageError, match=r"latin\.toml: not UTF-8"):
        options(files=(latin,)).rules()
    with pytest.raises(CannotStart, match=r"nowhere\.toml: No such file or directory"):
        options(files=(tmp_path / "nowhere.toml",)).rules()


def test_two_runs_have_different_seeds_and_ids() -> None:
    one, two = (options("a => 50% drop").interceptor() for _ in range(2))
    order = {"order": "request", "method": "ping"}

    assert one.rules_note().fields["seed"] != two.rules_note().fields["seed"]
    assert one.execute(0.0, "x", order).answer != two.execute(0.0, "x", order).answer


def test_an_interceptor_follows_its_options() -> None:
    found = options("tool:echo => hold")
    found.call_timeout, found.slow, found.hold_timeout = 3.0, 2.0, 7.0
    interceptor = found.interceptor()
    interceptor.process(1.0, "client", CALL)

    assert interceptor.next_at == 8.0
    assert interceptor.rules_note().fields["call_timeout"] == 3
    assert interceptor.rules_note().fields["slow"] == 2
