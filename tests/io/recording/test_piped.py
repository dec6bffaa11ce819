"""A recording that is read from a pipe, with real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

SESSION = Path(__file__).parents[3] / "recordings" / "memory-sdk-auto.jsonl"

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="signals, bash, or locks of POSIX")


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Make the folder of temporary files an empty one, and assert that nothing is left in it."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.setenv(name, str(folder))
    yield folder
    assert list(folder.iterdir()) == []


COMMAND = [sys.executable, "-m", "mcpspy"]


def mcpspy(*arguments: object, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*COMMAND, *map(str, arguments)], input=stdin, capture_output=True, timeout=60)


@pytest.mark.parametrize(
    "command", [["show"], ["stats"], ["lint", "--format", "json"], ["export", "--format", "csv"]]
)
def test_a_recording_on_stdin_is_printed_like_its_file(command: list[str]) -> None:
    piped, read = mcpspy(*command, "-", stdin=SESSION.read_bytes()), mcpspy(*command, SESSION)

    assert (piped.returncode, piped.stderr) == (read.returncode, b"")
    assert len(piped.stdout.splitlines()) == len(read.stdout.splitlines())
    if command != ["lint", "--format", "json"]:  # It names the file.
        assert piped.stdout == read.stdout


def test_a_session_on_stdin_is_compared_with_a_file() -> None:
    done = mcpspy("diff", SESSION, "-", stdin=SESSION.read_bytes())

    assert done.returncode == 0
    assert b"are the same session" in done.stderr
    assert done.stdout.startswith(b"same: ")


def test_two_sessions_on_one_stdin_are_a_usage_error() -> None:
    done = mcpspy("diff", "-", "-")

    assert done.returncode == 2
    assert done.stderr == b"mcpspy: diff: stdin contains only one session (use a file for the other one)\n"


@posix_only
def test_the_path_of_an_open_pipe_is_read_like_stdin() -> None:
    done = mcpspy("diff", SESSION, "/dev/stdin", stdin=SESSION.read_bytes())

    assert done.returncode == 0
    assert b"are the same session" in done.stderr
    assert done.stdout.startswith(b"same: ")


@pytest.mark.parametrize(
    ("stdin", "reason"),
    [
        (b"", b"stdin: empty, so not a recording"),
        (b"{}\n", b"stdin: not an mcpspy recording"),
        (SESSION.read_bytes()[:40], b"stdin: its header is incomplete"),
    ],
)
@pytest.mark.parametrize("options", [[], ["--follow"]], ids=str)
def test_stdin_that_is_not_a_recording_is_one_line(options: list[str], stdin: bytes, reason: bytes) -> None:
    done = mcpspy("show", *options, "-", stdin=stdin)

    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"mcpspy: " + reason)
    assert done.stderr.count(b"\n") == 1


@posix_only
def test_a_terminal_as_stdin_is_a_usage_error() -> None:
    terminal, stdin = os.openpty()
    done = subprocess.run([*COMMAND, "show", "-"], stdin=stdin, capture_output=True, timeout=60)
    os.close(terminal)
    os.close(stdin)

    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == (
        b"mcpspy: show: -: stdin is a terminal (use COMMAND | mcpspy show -, or mcpspy show - < FILE)\n"
    )


@posix_only
def test_the_path_of_a_closed_descriptor_is_reported_as_a_missing_file() -> None:
    done = mcpspy("show", "/dev/fd/77")

    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"mcpspy: /dev/fd/77: no such file (mcpspy ls lists the sessions)\n"


@posix_only
@pytest.mark.parametrize("options", [[], ["--follow", "--format", "json"]], ids=str)
def test_a_copy_that_does_not_fit_is_one_line_that_names_tmpdir(temporary: Path, options: list[str]) -> None:
    header, first, *rest = SESSION.read_bytes().splitlines(keepends=True)
    size = len(header + first) + 100
    limited = f"import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))"
    limited += "; os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    command = [sys.executable, "-c", limited, *COMMAND[1:], "show", *options, "-"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(header + first)
        process.stdin.flush()
        if options:  # What has arrived is shown before.
            assert b'"server/discover"' in process.stdout.readline()
        printed, stderr = process.communicate(b"".join(rest), timeout=60)
    assert process.returncode == 3
    assert len(printed.splitlines()) < len(rest) // 2
    assert stderr == (
        b"mcpspy: cannot copy stdin: File too large (set TMPDIR to a folder with more space than %s)\n"
        % os.fsencode(temporary)
    )


@posix_only
def test_a_session_on_stdin_is_followed_while_it_arrives() -> None:
    header, first, *rest = SESSION.read_bytes().splitlines(keepends=True)
    command = [*COMMAND, "show", "--follow", "--format", "json", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(header + first)
        assert b'"server/discover"' in process.stdout.readline()
        process.stdin.write(b"".join(rest))
        process.stdin.close()
        printed = process.stdout.read()
        assert process.wait(60) == 0
    assert printed.count(b"\n") > len(rest) // 2


@posix_only
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=str)
def test_a_signal_deletes_the_copy(temporary: Path, number: signal.Signals) -> None:
    header, first, *_ = SESSION.read_bytes().splitlines(keepends=True)
    command = [*COMMAND, "show", "--follow", "--format", "json", "-"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(header + first)
        process.stdin.flush()
        assert process.stdout.readline()
        (folder,) = temporary.iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700
        os.kill(process.pid, number)
        assert process.wait(60) == 128 + number
