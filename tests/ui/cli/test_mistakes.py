"""Mistakes of new users: each message has the error and the next step."""

from __future__ import annotations

import errno
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mcpspy.errors import NOT_EXECUTABLE, NOT_FOUND
from mcpspy.io.stdio.process import explain
from mcpspy.ui.cli.main import main

RECORDING = str(Path(__file__).parents[3] / "recordings" / "everything-sdk-auto.jsonl")


UNSET = "is not set (hosts set it by env in their config)"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--name", "x", "run", "--", "true"],
            "unknown option --name (options follow the command: mcpspy run --name …)",
        ),
        (["lst"], "unknown command lst (did you mean ls?)"),
        (["record"], "unknown command record (use mcpspy run -- COMMAND)"),
        (["list"], "unknown command list (use mcpspy ls)"),
        (["proxy", "http://127.0.0.1:9"], "unknown command proxy (use mcpspy http --upstream URL)"),
        (["no-such-word"], "unknown command no-such-word (see mcpspy --help)"),
        (
            [sys.executable, "x.py"],
            f"unknown command {sys.executable} (to record a server: mcpspy run -- {sys.executable} …)",
        ),
        (
            ["mock", "x", "--rules", "y"],
            "mock: unknown option --rules (put -- before COMMAND; see mcpspy mock --help)",
        ),
        (["run", "--nam", "x", "--", "true"], "run: unknown option --nam (did you mean --name?)"),
        (["http"], "http: missing the server (use --upstream URL, -- COMMAND, or --forward)"),
        (
            ["http", "http://127.0.0.1:9"],
            "http: missing --upstream (write --upstream before the URL)",
        ),
        (["exec"], "exec: missing COMMAND (use mcpspy exec -- COMMAND ARGS…)"),
        (
            ["exec", "python3", "-c", "pass"],
            "exec: unknown option -c (put -- before COMMAND; see mcpspy exec --help)",
        ),
        (
            ["bridge", "localhost:9"],
            "bridge: missing --upstream or --upstream-env (write --upstream before the URL)",
        ),
        (
            ["http", "--forward", "--listen", "unix:/tmp/x"],
            "http: --listen unix:/tmp/x is not a valid address (use HOST:PORT, or unix:PATH with --upstream)",
        ),
        (
            ["http", "--upstream", "http://x", "--listen", "unix:"],
            "http: --listen unix: is not a valid address (use HOST:PORT, or unix:PATH with --upstream)",
        ),
        (["http", "--forward", "--unix-socket", "/tmp/x"], "http: --unix-socket requires --upstream"),
        (
            ["http", "--forward", "--keep-resource"],
            "http: --keep-resource requires --upstream (with --forward, no metadata is rewritten)",
        ),
        (["trust", "--format", "json", "--", "x"], "trust: --format json requires --check"),
        (
            ["bridge", "--upstream", "http://x", "--oauth-secret-env", "X"],
            "bridge: --oauth-secret-env requires --oauth-client-id (name the client of the secret)",
        ),
        (
            ["bridge", "--upstream", "http://x", "--oauth-client-id", "a", "--oauth-secret-env", "NOT_SET"],
            f"bridge: --oauth-secret-env: environment variable NOT_SET {UNSET}",
        ),
        (
            ["replay", RECORDING, "--rate", "0", "--", "x"],
            "replay: --rate 0: not a rate (use runs per second: 5, 0.5)",
        ),
        (
            ["replay", RECORDING, "--secret", "a", "--", "x"],
            "replay: --secret: not a valid secret (use NAME=VARIABLE, e.g. api_key=EXAMPLE_KEY)",
        ),
        (
            ["replay", RECORDING, "--secret", "a=NOT_SET", "--", "x"],
            "replay: --secret a: environment variable NOT_SET is not set",
        ),
        (["wrap", "qqq"], "qqq: no such host or file (mcpspy hosts --all lists the hosts)"),
        (["wrap"], "wrap: missing HOST|FILE (see mcpspy wrap --help)"),
        (["send"], "send: missing SESSION and METHOD (use mcpspy send last tools/list)"),
        (["mock"], "mock: missing RECORDING (or use --from-listing LISTING, or --fixtures FILE)"),
        (["last"], "unknown command last (use mcpspy show last)"),
        (["show", "--last"], "show: unknown option --last (use mcpspy show last)"),
        (["show", ""], "the name of the session is empty (use last, a name, an id or a file)"),
        (["ls", "weather"], "ls: unexpected argument weather (use mcpspy ls -q weather to filter)"),
        (["web", "--port", "88"], "web: unknown option --port (use --listen)"),
        (["completion"], "completion: missing shell (use one of bash, zsh, fish)"),
        (
            ["--dir", "sessions", "show", "last"],
            "--dir sessions: options follow the command (use mcpspy show --dir sessions …)",
        ),
        (
            ["--dir=sessions", "ls"],
            "--dir=sessions: options follow the command (use mcpspy ls --dir=sessions …)",
        ),
        (
            ["mock", RECORDING, "--http", "abc"],
            "mock: --http abc: not a valid port (use a number, such as 8809)",
        ),
        (
            ["http", "--upstream", "http://x", "--listen", "99999"],
            "http: --listen 99999: not a valid port (use 1 to 65535, or 0 for a free one)",
        ),
        (
            ["replay", "weather", "python", "v.py"],
            "replay: python v.py: the command of a server follows -- (use mcpspy replay … -- python v.py)",
        ),
        (["exec", "ls"], "exec: ls: the command of a server follows -- (use mcpspy exec -- ls)"),
        (
            ["trust", "python", "v.py"],
            "trust: v.py: the command of a server follows -- (use mcpspy trust -- COMMAND)",
        ),
    ],
)
def test_a_wrong_command_line_gets_the_next_step(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("MCPSPY_DIR", str(tmp_path))

    assert main(arguments) == 2
    assert capsys.readouterr().err == f"mcpspy: {message}\n"


def test_a_command_quoted_with_its_arguments_is_reported() -> None:
    code, text = explain(FileNotFoundError(errno.ENOENT, ""), "npx -y server")

    assert code == NOT_FOUND
    assert text.endswith(
        "not found on PATH (the name contains spaces: do not quote the command and its arguments together)"
    )


def test_a_file_of_the_folder_in_place_of_a_program_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "server.py").touch()
    code, text = explain(FileNotFoundError(errno.ENOENT, ""), "server.py")

    assert code == NOT_FOUND
    assert text.endswith(
        "not found on PATH, but a file of this folder: use ./server.py, or put its interpreter before it"
    )


def test_a_session_that_is_compared_with_itself_is_reported(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", RECORDING, RECORDING]) == 0
    assert "are the same session" in capfd.readouterr().err


def test_a_tool_that_the_session_does_not_have_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", RECORDING, "-q", "tool:ehco"]) == 0
    assert 'no tool matches "ehco": did you mean echo? Tools here are ' in capsys.readouterr().out


def test_a_folder_in_place_of_a_program_is_reported(tmp_path: Path) -> None:
    code, text = explain(PermissionError(errno.EACCES, ""), str(tmp_path))

    assert code == NOT_EXECUTABLE
    assert text == f"cannot start {tmp_path}: a directory (name a program in it)"


def test_a_demo_without_a_recording_reports_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("mcpspy.ui.cli.demo.converse", lambda _: 0)

    assert main(["demo", "--plain", "--dir", str(tmp_path)]) == 3
    assert capsys.readouterr().err == (
        f"mcpspy: demo: no session was recorded in {tmp_path} "
        "(name a folder that can be written with --dir FOLDER)\n"
    )


ANY = r"[^\n]+"

IN_A_SHELL = {
    "a URL in place of a command": (
        "mcpspy run -- http://localhost:3001/mcp",
        127,
        r"cannot start http://localhost:3001/mcp: a URL \(use mcpspy http --upstream URL, or mcpspy bridge .+\)",
    ),
    "a program that is not on the host's PATH": (
        "mcpspy run -- no-such-program",
        127,
        r"cannot start no-such-program: not found on PATH \(a host often has another PATH .+ absolute path .+\)",
    ),
    "a program without permission": (
        "touch server; mcpspy run -- ./server",
        126,
        r"cannot start ./server: not executable \(chmod \+x, or run its interpreter\)",
    ),
    "a folder that cannot be made": (
        "mcpspy run --dir /dev/null/sessions -- true",
        0,
        r"cannot record to /dev/null/sessions: Not a directory; traffic continues unrecorded \(use --dir FOLDER\)",
    ),
    "a home that is a file": (
        "HOME=/dev/null mcpspy run -- true",
        0,
        rf"cannot record to /dev/null/{ANY}: Not a directory; traffic continues unrecorded \(use --dir FOLDER\)",
    ),
    "a full disk": (
        "mcpspy lint --explain LIFE302 > /dev/full",
        3,
        "cannot write to stdout: No space left on device",
    ),
    "no terminal": ("mcpspy tui", 3, r"tui needs a terminal \(use mcpspy show to print a session\)"),
    "a session that has ended": (
        "mcpspy run -- true; mcpspy send last tools/list",
        3,
        rf"send: no live session in {ANY} \(start one with mcpspy run -- COMMAND\)",
    ),
    "an empty file": ("touch a.jsonl; mcpspy show a.jsonl", 2, r"a\.jsonl: empty, so not a recording \(.+\)"),
    "a server that does not run": (
        "mcpspy trust --url http://127.0.0.1:9/mcp",
        3,
        r"cannot reach http://127.0.0.1:9/mcp: Connection refused \(is the server running\?\)",
    ),
    "a second unwrap": (
        'echo \'{"mcpServers":{"m":{"command":"x"}}}\' > c.json; mcpspy unwrap c.json',
        0,
        r"m: not wrapped\nc\.json: unchanged",
    ),
    "a second wrap": (
        'echo \'{"mcpServers":{"m":{"command":"x"}}}\' > c.json; mcpspy wrap c.json >/dev/null 2>&1; mcpspy wrap c.json',
        0,
        r"m: already wrapped\nc\.json: unchanged",
    ),
}


@pytest.mark.skipif(sys.platform == "win32", reason="lines of a POSIX shell")
@pytest.mark.parametrize("mistake", IN_A_SHELL)
def test_a_mistake_in_an_empty_home_gets_one_line_with_the_next_step(mistake: str, tmp_path: Path) -> None:
    line, code, message = IN_A_SHELL[mistake]
    if "/dev/full" in line and not Path("/dev/full").exists():
        pytest.skip("no /dev/full on this system")
    (tmp_path / "home").mkdir()
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    done = subprocess.run(
        ["sh", "-c", line],
        cwd=tmp_path,
        env={"PATH": path, "HOME": str(tmp_path / "home"), "TERM": "dumb", "MCPSPY_RUNTIME": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=30,
    )

    lines = [each.removeprefix("mcpspy: ") for each in (done.stdout + done.stderr).splitlines()]
    shown = [each for each in lines if not each.startswith("viewers cannot connect")]
    assert done.returncode == code, shown
    assert re.fullmatch(message, "\n".join(each.replace(f"{tmp_path}/c.json", "c.json") for each in shown)), (
        shown
    )


def test_a_wrong_path_of_a_url_is_reported_at_once(runtime: Path, tmp_path: Path) -> None:
    recording = Path(__file__).parents[3] / "recordings" / "peer-sdk-legacy.jsonl"
    command = [sys.executable, "-m", "mcpspy"]
    with subprocess.Popen(
        [*command, "mock", str(recording), "--http", "0"], stderr=subprocess.PIPE, encoding="utf-8"
    ) as mock:
        try:
            assert mock.stderr is not None
            url = mock.stderr.readline().split()[1].removesuffix("/mcp")
            done = subprocess.run(
                [*command, "trust", "--lock", str(tmp_path / "mcp.lock"), "--url", f"{url}/wrong"],
                capture_output=True,
                encoding="utf-8",
                timeout=15,
            )
        finally:
            mock.terminate()

    assert done.returncode == 3
    assert re.fullmatch(
        rf"mcpspy: {url}/wrong: initialize: HTTP 404: .+ \(check the path of the URL; it is often /mcp\)\n",
        done.stderr,
    ), done.stderr
