"""The report of `mcpspy replay` on its runs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from mcpspy.core.session.session import Session
from mcpspy.errors import CannotStart
from mcpspy.io.recording.writer import Writer
from mcpspy.io.replay import ReplayRun
from mcpspy.ui.cli.main import main
from mcpspy.ui.cli.replay import raise_failure
from tests.io.changing import command, read
from tests.ui.cli.replays import Ran

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the sample server is POSIX")


def test_a_value_that_is_another_one_now_is_suggested_to_be_carried(
    recorded: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code = main(["replay", str(recorded), "--no-record", "--", *command()])
    _, err = capfd.readouterr()

    assert code == 1
    assert "tools/call use sent back" in err
    assert "try --carry '/result/content/0/text=session (" in err


def test_the_recording_is_updated_once_it_was_shown_how_and_the_old_one_is_kept(
    recorded: Path, made: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    untouched = recorded.read_bytes()
    ran = Ran(capfd, recorded, "same", "--update")
    assert (ran.code, recorded.read_bytes()) == (0, untouched)
    assert "is unchanged: no differences" in ran.err

    ran = Ran(capfd, recorded, "crash", "--update")
    assert (ran.code, recorded.read_bytes()) == (1, untouched)
    assert "is unchanged: the new session is incomplete" in ran.err

    ran = Ran(capfd, recorded, "result", "--update")
    assert ran.code == 0
    assert '"3" → "4"' in ran.out
    assert sorted(path.name for path in recorded.parent.iterdir()) == ["changing.jsonl", "changing.jsonl.bak"]
    assert (recorded.parent / "changing.jsonl.bak").read_bytes() == untouched == made.read_bytes()
    assert b'"text": "4"' in read(recorded).exchanges[-2].answer.data  # type: ignore[union-attr]

    ran = Ran(capfd, recorded, "result")
    assert ran.code == 0


def test_a_new_session_replaces_an_earlier_one_only_with_force(
    recorded: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    new = tmp_path / "now" / "new.jsonl"
    force = "--record", str(new), "--force"
    assert Ran(capfd, recorded, "same", *force).code == 0
    first = new.read_bytes()

    ran = Ran(capfd, recorded, "result", *force, "--format", "markdown")
    assert ran.code == 1
    assert f"→ `{new}`" in ran.out
    assert f"recorded to {new}; {new}.bak is the old recording" in ran.err
    assert new.with_name("new.jsonl.bak").read_bytes() == first
    assert b'"text": "4"' in new.read_bytes()
    assert sorted(path.name for path in new.parent.iterdir()) == ["new.jsonl", "new.jsonl.bak"]

    kept = new.read_bytes()
    Ran(capfd, recorded, "same", "--record", str(new))
    assert new.read_bytes() == kept
    assert len(list(new.parent.glob("*.jsonl"))) == 2


def test_a_load_test_replaces_an_earlier_session_by_its_first_run(
    recorded: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    new = tmp_path / "now" / "new.jsonl"
    force = "--record", str(new), "--force", "--clients", "2", "--repeat", "2"
    for written in (["new.jsonl"], ["new.jsonl", "new.jsonl.bak"]):
        ran = Ran(capfd, recorded, "same", *force)
        assert ran.code == 0
        assert f"recorded to {new}" in ran.err
        assert sorted(path.name for path in new.parent.iterdir()) == written


def test_a_live_session_is_not_replaced(
    recorded: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    writer = Writer(str(tmp_path / "live"), None, {"name": "weather"}, say=pytest.fail)
    ran = Ran(capfd, recorded, "same", "--record", writer.path, "--force")
    writer.close()

    assert ran.code == 2
    assert ran.err == f"mcpspy: replay: --record {writer.path}: a live session (use another name)\n"


def test_a_recording_in_parts_is_not_updated(recorded: Path, capfd: pytest.CaptureFixture[str]) -> None:
    lines = recorded.read_bytes().splitlines(keepends=True)
    last = b'{"t":9.0,"note":"part","next":"changing.part2.jsonl"}\n'
    recorded.write_bytes(b"".join([*lines[:-1], last]))
    second = recorded.with_name("changing.part2.jsonl")
    second.write_bytes(lines[0].replace(b"{", b'{"part":2,', 1) + lines[-1])

    ran = Ran(capfd, recorded, "result", "--update")

    assert ran.code == 2
    assert (
        "--update cannot replace a recording in several parts (record the new session with --record)"
        in ran.err
    )
    assert recorded.read_bytes().endswith(last)


def test_each_of_several_runs_is_compared_and_recorded(
    recorded: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    new = tmp_path / "new.jsonl"
    ran = Ran(capfd, recorded, "result", "--repeat", "2", "--record", str(new))

    assert ran.code == 1
    assert "2 runs · 16 requests in " in ran.out
    assert "2 of 2 runs are different" in ran.err
    assert (tmp_path / "new-2.jsonl").exists()


def test_the_value_of_a_redacted_secret_comes_from_the_environment(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EXAMPLE_KEY", "add")
    name = b'"method": "tools/call", "params": {"name": "%b"'
    text = recorded.read_bytes()
    assert name % b"add" in text
    recorded.write_bytes(text.replace(name % b"add", name % b"[redacted:00c0ffee]"))
    new = tmp_path / "new.jsonl"

    ran = Ran(capfd, recorded, "same", "--secret", "name=EXAMPLE_KEY", "--record", str(new))
    assert ran.err == f"mcpspy: recorded to {new}\n"
    assert name % b"add" in new.read_bytes()

    recorded.write_bytes(
        text.replace(b'"clientInfo": {"name": "c"', b'"clientInfo": {"name": "[redacted:00c0ffee]"')
    )
    warning = "mcpspy: initialize: sent with placeholders of redacted secrets: 00c0ffee\n"
    assert warning in Ran(capfd, recorded, "same").err
    assert Ran(capfd, recorded, "same", "--clients", "2").err.count(warning) == 1


def test_force_replaces_recordings_only(
    recorded: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.txt"
    other.write_text("mine\n", encoding="utf-8")

    ran = Ran(capfd, recorded, "same", "--record", str(other), "--force")
    assert ran.code == 2
    assert "not an mcpspy recording" in ran.err
    assert other.read_text(encoding="utf-8") == "mine\n"
    assert Ran(capfd, recorded, "same", "--force").code == 2
    ran = Ran(capfd, recorded, "same", "--record", str(tmp_path / "x.jsonl"), "--force", "--repeat", "2")
    assert ran.code == 2
    assert ran.err == "mcpspy: replay: --force and --repeat exclude each other (each run is a recording)\n"


def test_damaged_lines_are_counted(recorded: Path, capfd: pytest.CaptureFixture[str]) -> None:
    lines = recorded.read_bytes().splitlines(keepends=True)
    recorded.write_bytes(b"".join([lines[0], b"garbage\n", *lines[1:], b'{"t":']))

    ran = Ran(capfd, recorded, "same", "--no-record")

    assert ran.code == 4
    assert f"{recorded}: 1 damaged line skipped" in ran.err
    assert f"{recorded}: the last line is incomplete (5 bytes skipped)" in ran.err


@pytest.mark.parametrize(
    ("side", "why"),
    [
        (b"server", "contains no response of the server (did its command start?)"),
        (b"client", "contains no messages of a client (record a session with requests)"),
    ],
)
def test_a_recording_without_any_message_of_a_side_cannot_be_compared(
    side: bytes, why: str, recorded: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    lines = recorded.read_bytes().splitlines(keepends=True)
    recorded.write_bytes(b"".join(line for line in lines if b'"from":"%b"' % side not in line))

    ran = Ran(capfd, recorded, "same", "--no-record")

    assert ran.code == 2
    assert why in ran.err


def test_ctrl_c_reports_on_what_was_done(recorded: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ran = Ran(capfd, recorded, "SIGINT", "--timeout", "20")

    assert ran.code == 130
    assert "tools/call add" in ran.out
    assert "tools/call slow" not in ran.out
    assert ran.err == "mcpspy: 1 request was not sent\n"


def test_a_server_that_wants_a_token_reports_that() -> None:
    played = ReplayRun(
        Session(), None, [], [], [], failed="http://x: initialize: HTTP 401 Unauthorized\x1b[2J"
    )

    with pytest.raises(CannotStart) as raised:
        raise_failure([played])
    assert "(use --header 'Authorization: Bearer …' to send a token)" in str(raised.value)
    assert "\x1b" not in str(raised.value)
