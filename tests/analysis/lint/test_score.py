"""The score of a folder of violations and their twins."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.analysis.lint.score import main, scored

HEAD = {"mcpspy": 1, "id": "0" * 8, "started": "2026-11-28T08:00:00.000Z", "transport": "stdio", "command": ["x"], "cwd": "/", "name": "x", "pid": 1}  # fmt: skip


def write(folder: Path, name: str, *messages: dict[str, object]) -> None:
    entries = [{"t": 1, "from": "client", "msg": {"jsonrpc": "2.0", **message}} for message in messages]
    lines = (json.dumps(line) + "\n" for line in (HEAD, *entries))
    (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")


def test_a_violation_counts_as_found_if_a_rule_finds_something_that_its_twin_does_not_have(
    tmp_path: Path,
) -> None:
    write(tmp_path, "a.bad", {"id": None, "method": "ping"})
    write(tmp_path, "a.good", {"id": 1, "method": "ping"})
    write(tmp_path, "b.bad", {"id": 1, "method": "ping"})
    write(tmp_path, "b.good", {"id": 1, "method": "ping"})

    rows = {row.name: row for row in scored(tmp_path)}

    assert "ENV201" in rows["a"].codes
    assert rows["b"].codes == []


def test_the_score_fails_if_a_violation_is_missed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "a.bad", {"id": 1, "method": "ping"})
    write(tmp_path, "a.good", {"id": 1, "method": "ping"})

    assert main(str(tmp_path)) == 1
    assert "0 of 1 violations found" in capsys.readouterr().out
