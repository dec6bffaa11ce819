"""The last good session: which one it is, what changed since then, and how that ranks the causes."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from mcpspy.analysis.explain import Diagnosis
from mcpspy.io.recording.catalog import CACHE
from mcpspy.ui.cli.main import main
from mcpspy.ui.report import last_good as module
from mcpspy.ui.report.explanation import explain
from mcpspy.ui.report.last_good import last_good, since_last_good
from tests.ui.report.faults.record import HERE

FAILED = "wrong-arguments"


def lines(name: str = FAILED) -> list[bytes]:
    return (HERE / f"{name}.jsonl").read_bytes().splitlines()


def save(folder: Path, number: int, recorded: list[bytes]) -> Path:
    """Write a session that started at minute `number`."""
    header = {
        **orjson.loads(recorded[0]),
        "id": f"{number:08x}",
        "started": f"2026-11-23T10:{number:02}:00.000Z",
    }
    path = folder / f"{number}.jsonl"
    path.write_bytes(b"\n".join([orjson.dumps(header), *recorded[1:], b""]))
    return path


def good(folder: Path, number: int) -> Path:
    """Write the session as it was before the type of `n` changed, and before a newer version of the server."""
    text = b"\n".join(lines())
    for old, new in (
        (b'"n": {"type": "integer"', b'"n": {"type": "string"'),
        (b'"version": "1.0"', b'"version": "0.9"'),
        (b', "isError": true', b""),
        (b"Input validation error: n is not an integer", b"done"),
    ):
        assert old in text
        text = text.replace(old, new)
    return save(folder, number, text.splitlines())


def test_the_newest_earlier_session_without_an_error_is_found(tmp_path: Path) -> None:
    good(tmp_path, 1)
    expected = good(tmp_path, 2)
    save(tmp_path, 3, lines("crash"))
    save(tmp_path, 4, lines("hang"))
    failed = save(tmp_path, 5, lines())
    good(tmp_path, 6)

    assert last_good(failed) == expected
    assert not (tmp_path / CACHE).exists()


def test_other_servers_and_later_sessions_are_not_it(tmp_path: Path) -> None:
    other = [
        line.replace(b'"name":"faulty"', b'"name":"weather"', 1)
        for line in good(tmp_path, 1).read_bytes().splitlines()
    ]
    save(tmp_path, 1, other)
    failed = save(tmp_path, 2, lines())
    good(tmp_path, 3)

    assert last_good(failed) is None


@pytest.mark.parametrize("name", ["no-common-revision", "http-mismatch-modern", "swallowed", "noise"])
def test_a_session_without_an_error_in_which_something_is_wrong_is_not_good(
    tmp_path: Path, name: str
) -> None:
    save(tmp_path, 1, lines(name))
    failed = save(tmp_path, 2, lines())

    assert last_good(failed) is None


def test_only_some_sessions_of_the_server_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good(tmp_path, 1)
    failed = [save(tmp_path, number, lines()) for number in range(2, 6)]
    assert last_good(failed[-1]) is not None
    monkeypatch.setattr(module, "CANDIDATES", 3)

    assert last_good(failed[-1]) is None


def test_the_changed_schema_of_the_failed_tool_comes_first(tmp_path: Path) -> None:
    before, failed = good(tmp_path, 1), save(tmp_path, 2, lines())

    found = since_last_good(explain(failed), failed, before).last_good

    assert found is not None
    assert (found.session, found.started) == ("00000001", "2026-11-23T10:01:00.000Z")
    schema, *others = [change.text for change in found.changes]
    assert schema.startswith("tools/list /result/tools/work/inputSchema/properties/n/type")
    assert schema.endswith('"string" → "integer"')
    assert any("tools/call work" in text and "error" in text for text in others)
    assert any('/result/serverInfo/version: "0.9" → "1.0"' in text for text in others)


def test_another_command_is_a_change(tmp_path: Path) -> None:
    before = good(tmp_path, 1)
    recorded = lines("unknown-command")
    header = orjson.dumps({**orjson.loads(recorded[0]), "name": "faulty"})
    failed = save(tmp_path, 2, [header, *recorded[1:]])

    found = since_last_good(explain(failed), failed, before).last_good

    assert found is not None
    assert found.changes[0].text == "command: python3 server.py healthy → npxx -y weather-server"


def test_a_cause_that_the_good_session_has_too_comes_last(tmp_path: Path) -> None:
    noise = b'{"t":0.34,"from":"server","raw":"Server listening on stdio"}'
    old = good(tmp_path, 1).read_bytes().splitlines()
    before = save(tmp_path, 1, [*old[:4], noise, *old[4:]])
    recorded = lines()
    failed = save(tmp_path, 2, [*recorded[:4], noise, *recorded[4:]])
    causes = sorted(explain(failed).causes, key=lambda cause: cause.code, reverse=True)
    assert [cause.code for cause in causes] == ["stdout-noise", "invalid-arguments"]
    diagnosis = Diagnosis(f"{causes[0].title} (and 1 more)", tuple(causes))

    found = since_last_good(diagnosis, failed, before)

    assert [cause.code for cause in found.causes] == ["invalid-arguments", "stdout-noise"]
    assert found.summary == f"{found.causes[0].title} (and 1 more)"
    assert found.last_good is not None
    assert found.last_good.known == ("stdout-noise",)


def test_a_large_session_is_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, failed = good(tmp_path, 1), save(tmp_path, 2, lines())
    monkeypatch.setattr(module, "LARGEST", 1000)
    diagnosis = explain(failed)

    assert last_good(failed) is None
    assert since_last_good(diagnosis, failed, before) is diagnosis


def test_the_command_prints_what_changed_since_it_worked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good(tmp_path, 1)
    failed = save(tmp_path, 2, lines())

    assert main(["explain", str(failed)]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert (
        "worked in session 00000001, 2026-11-23T10:01:00.000Z; since then: line 5: tools/list /result/tools/work"
        in out
    )

    assert main(["explain", str(failed), "--last-good", "none"]) == 1
    assert "worked in" not in capsys.readouterr().out

    assert (
        main(["explain", "00000002", "--dir", str(tmp_path), "--last-good", "00000001", "--format", "json"])
        == 1
    )
    found = orjson.loads(capsys.readouterr().out)["last_good"]
    assert found["session"] == "00000001"
    assert found["count"] == len(found["changes"])
