"""Standard streams that are closed, full or not read, and arguments that are empty, for every command."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from mcpspy.ui.cli.main import COMMANDS
from tests.ui.cli.forking import Forking

if sys.platform == "win32":
    pytest.skip("closed descriptors of POSIX shells", allow_module_level=True)

SESSION = Path(__file__).parents[3] / "recordings" / "memory-sdk-auto.jsonl"

ARGUMENTS: dict[str, list[object]] = {
    "run": ["--no-record", "--", "true"],
    "exec": ["--", "true"],
    "show": [SESSION],
    "stats": [SESSION],
    "lint": [SESSION],
    "diff": [SESSION, SESSION.with_name("memory-inspector-auto.jsonl")],
    "export": [SESSION, "--format", "har"],
    "mock": [SESSION],
    "redact": [SESSION, "--check"],
    "import": ["-"],
    "completion": ["bash"],
    "replay": [SESSION, "--", "true"],
    "web": ["--listen", "nowhere:x"],
    "metrics": ["--listen", "nowhere:x"],
}
"""Arguments with which a command runs and ends. Without any, a command reports what is missing."""

PRINTING = ("ls", "show", "stats", "lint", "diff", "export", "hosts", "completion", "ca")

STREAMS = [
    {"stdin": "closed"},
    {"stderr": "closed"},
    {"stdin": "closed", "stdout": "closed", "stderr": "closed"},
    {"stdout": "unread", "stderr": "unread"},
]

IN_A_SHELL = ["<&-", "2>&-", "<&- >&- 2>&-", "2>&1 | true"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the commands an empty home."""
    for name in ("HOME", "MCPSPY_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "TMPDIR"):
        monkeypatch.setenv(name, str(tmp_path))
    return tmp_path


def in_a_shell(arguments: Sequence[object], streams: str) -> tuple[int, str]:
    """Run mcpspy in a shell with these redirections; return its exit code and its stderr."""
    script = f'"$@" {streams}; exit "${{PIPESTATUS[0]}}"'
    command = [sys.executable, "-m", "mcpspy", *map(str, arguments)]
    done = subprocess.run(
        ["bash", "-c", script, "bash", *command], stdin=subprocess.DEVNULL, capture_output=True, timeout=60
    )
    return done.returncode, done.stderr.decode()


def assert_no_bug(code: int, stderr: str, folder: Path) -> None:
    assert code in (0, 1, 2, 3, 141)
    assert "Traceback" not in stderr
    assert "Exception ignored" not in stderr
    assert list(folder.glob("mcpspy-*.log")) == []


@pytest.mark.parametrize("command", [*COMMANDS])
def test_a_stream_that_is_closed_or_not_read_is_not_a_bug(
    command: str, folder: Path, forking: Forking
) -> None:
    for streams in STREAMS:
        ended = forking.run([command, *ARGUMENTS.get(command, [])], **streams)
        assert_no_bug(ended.code, ended.stderr.decode(), folder)


@pytest.mark.parametrize("command", ["run", "show", "import", "mock"])
def test_a_stream_that_a_shell_closes_is_not_a_bug(command: str, folder: Path) -> None:
    for streams in IN_A_SHELL:
        code, stderr = in_a_shell([command, *ARGUMENTS[command]], streams)
        assert_no_bug(code, stderr, folder)


@pytest.mark.parametrize("command", PRINTING)
@pytest.mark.parametrize(
    ("stream", "reason"),
    [
        ("closed", "it is closed"),
        pytest.param(
            "/dev/full",
            "No space left on device",
            marks=pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux"),
        ),
    ],
)
def test_a_stdout_that_takes_nothing_is_one_line(
    command: str, stream: str, reason: str, folder: Path, forking: Forking
) -> None:
    code, _, stderr = forking.run([command, *ARGUMENTS.get(command, [])], stdout=stream)
    assert (code, stderr.decode()) == (3, f"mcpspy: cannot write to stdout: {reason}\n")


def test_help_on_a_full_device_is_one_line(folder: Path) -> None:
    for arguments in (["--help"], ["show", "--help"], ["run", "--help"], ["--version"]):
        code, stderr = in_a_shell([*arguments], ">&-")
        assert (code, stderr) == (3, "mcpspy: cannot write to stdout: it is closed\n")


@pytest.mark.parametrize("command", [*COMMANDS])
def test_an_empty_argument_or_command_is_not_a_bug(command: str, folder: Path, forking: Forking) -> None:
    for arguments in (["--", ""], [""], [*ARGUMENTS.get(command, []), "--filter=--"]):
        ended = forking.run([command, *arguments])
        assert ended.code in (0, 1, 2, 3)
        assert_no_bug(ended.code, ended.stderr.decode(), folder)


@pytest.mark.parametrize("command", [["run"], ["exec"], ["replay", SESSION]], ids=str)
def test_an_empty_command_is_a_usage_error(command: list[object], folder: Path, forking: Forking) -> None:
    code, _, stderr = forking.run([*command, "--", ""])
    assert (code, stderr.count(b"\n")) == (2, 1)
    assert stderr.startswith(b"mcpspy: %b: COMMAND is empty" % str(command[0]).encode())


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (["show"], "café"),
        (["show", "--mock", "--format", "json"], '"about":"café 雨"'),
        (["check", "--expect-tool", "雨", "--format", "junit"], "雨"),
        (["check", "--expect-tool", "雨"], "\\u96e8"),
        (["stats"], "café \\u96e8"),
        (["drift", "--server", "tested", "--format", "markdown"], "café 雨"),
        (["drift", "--server", "tested", "--format", "json"], "café 雨"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_text_that_the_encoding_of_stdout_lacks_is_escaped_and_reports_are_utf_8(
    command: list[str], text: str, folder: Path, make_recording: Callable[..., Path]
) -> None:
    tool = '{"name":"café 雨","inputSchema":{"type":"object"}}'
    said = [
        ("client", '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'),
        ("server", f'{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{tool}]}}}}'),
        ("client", '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"café 雨"}}'),
        ("server", '{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"→"}]}}'),
    ]
    sessions = folder / "sessions"
    path = make_recording([(side, line.encode()) for side, line in said], folder=sessions)
    make_recording(
        [(side, line.encode().replace(b"object", b"string")) for side, line in said], folder=sessions
    )
    done = subprocess.run(
        [sys.executable, "-m", "mcpspy", *command, sessions if command[0] == "drift" else path],
        env=os.environ | {"PYTHONIOENCODING": "cp1252"}, stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
    )  # fmt: skip
    is_report = any(name in command for name in ("json", "junit", "markdown"))

    assert_no_bug(done.returncode, done.stderr.decode("cp1252"), folder)
    assert text in done.stdout.decode("utf-8" if is_report else "cp1252")
