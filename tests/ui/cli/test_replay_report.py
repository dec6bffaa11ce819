"""The report of `mcpspy replay` on its runs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from mcpspy.core.session.session import Session
from mcpspy.errors import CannotStart
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


def test_damaged_lines_are_counted(recorded: Path, capfd: pytest.CaptureFixture[str]) -> None:
    lines = recorded.read_bytes().splitlines(keepends=True)
    recorded.write_bytes(b"".join([lines[0], b"garbage\n", *lines[1:]]))

    ran = Ran(capfd, recorded, "same", "--no-record")

    assert ran.code == 0
    assert f"{recorded}: 1 damaged line skipped" in ran.err


def test_a_recording_without_any_response_cannot_be_compared(
    recorded: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    lines = recorded.read_bytes().splitlines(keepends=True)
    recorded.write_bytes(b"".join(line for line in lines if b'"from":"server"' not in line))

    ran = Ran(capfd, recorded, "same", "--no-record")

    assert ran.code == 2
    assert "contains no response of the server (did its command start?)" in ran.err


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
