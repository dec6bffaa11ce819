"""`mcpspy lint`, from the command line: findings in sessions of real servers that violate the protocol."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar
from xml.etree import ElementTree as ET

import pytest

from mcpspy.ui.cli import lint
from mcpspy.ui.cli.main import main
from mcpspy.ui.text.terminal import ProgressBar

Make = Callable[..., Path]

ROOT = Path(__file__).parents[3]
RECORDINGS = ROOT / "recordings"
SERVER = ROOT / "tests" / "servers" / "broken.py"

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "host", "version": "1"}}


def lines(*messages: dict[str, Any]) -> bytes:
    return b"".join(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n" for message in messages)


HANDSHAKE = lines({"id": 0, "method": "initialize", "params": HELLO}, {"method": "notifications/initialized"})


def command(path: Path, *how: str) -> list[str]:
    """Return the command that records a session of the broken server."""
    python = sys.executable
    return [
        python,
        "-m",
        "mcpspy",
        "run",
        "--no-redact",
        "--record",
        str(path),
        "--",
        python,
        str(SERVER),
        *how,
    ]


def found(path: Path, capfd: pytest.CaptureFixture[str], *options: str) -> list[dict[str, Any]]:
    capfd.readouterr()
    main(["lint", str(path), "--format", "json", *options])
    findings: list[dict[str, Any]] = json.loads(capfd.readouterr().out)["findings"]
    return findings


def test_every_mistake_of_a_real_server_is_found_where_it_is(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "session.jsonl"
    listed = {"method": "tools/list", "params": {}}
    with subprocess.Popen(command(path), stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        hello, initialized = HANDSHAKE.splitlines(keepends=True)
        process.stdin.write(hello)
        process.stdin.flush()
        process.stdout.readline()
        process.stdin.write(initialized + lines({"id": "first", **listed}))
        process.stdin.flush()
        tools = [tool["name"] for tool in json.loads(process.stdout.readline())["result"]["tools"]]
        for number, name in enumerate(tools, 1):
            params = {"name": name, "arguments": {}, "_meta": {"progressToken": f"t-{name}"}}
            if name == "ENV206":
                process.stdin.write(lines({"method": "notifications/x"}))
                process.stdin.flush()
                process.stdout.readline()
            # Once the list arrives, all messages of the call have arrived.
            marker = {"id": f"after {name}", **listed}
            process.stdin.write(lines({"id": number, "method": "tools/call", "params": params}, marker))
            process.stdin.flush()
            while f'"after {name}"'.encode() not in process.stdout.readline():
                pass
        process.stdin.close()
        process.wait(60)
    recorded = path.read_bytes().split(b"\n")

    findings = found(path, capfd)

    # Its last message has no line end, and is sent after the client disconnected.
    assert {finding["code"] for finding in findings} == {*tools, "LIFE406"}
    for finding in findings:
        if finding["code"] in ("ENV106", "ENV204", "LIFE302", "DATA602"):
            excerpt = finding["excerpt"].rstrip("…")[:30].encode()
            assert excerpt
            assert excerpt in recorded[finding["line"] - 1]
    # A response with another id leaves a request without a response.
    assert {finding["message"] for finding in findings if finding["code"] == "LIFE201"} == {
        "no response to tools/call LIFE201 from the server",
        "no response to tools/call ENV204 from the server",
        "no response to roots/list from the client",
    }


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize(
    ("how", "code"),
    [("well", "LIFE406"), ("with an error", "LIFE404"), ("crashing", "LIFE403")],
    ids=["well", "error", "crash"],
)
def test_the_end_of_a_server_is_reported(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], how: str, code: str
) -> None:
    path = tmp_path / "session.jsonl"
    subprocess.run(command(path, how), input=HANDSHAKE, capture_output=True, timeout=60, cwd=ROOT)

    assert [finding["code"] for finding in found(path, capfd, "--ignore", "ENV113,LIFE102")] == [code]
    assert main(["lint", str(path)]) == (1 if how == "crashing" else 0)
    if how == "crashing":
        assert f"the server was killed by {signal.SIGSEGV.name}" in capfd.readouterr().out


def test_a_server_that_leaves_is_reported(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "session.jsonl"
    with subprocess.Popen(
        command(path, "early"), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, cwd=ROOT
    ) as process:
        assert process.stdin is not None
        process.stdin.write(HANDSHAKE)
        process.stdin.flush()
        process.wait(60)

    (finding,) = found(path, capfd, "--ignore", "LIFE102")  # The handshake is sent in one write.
    assert (finding["code"], finding["message"]) == (
        "LIFE401",
        "the server exited before the client closed stdin, with exit code 3",
    )


def test_a_clean_session_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", str(RECORDINGS / "everything-ts-auto-2.jsonl")]) == 0
    assert capsys.readouterr().out == "no findings in 1 recording\n"


CALL = b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a"}}'


def test_a_finding_is_a_line_and_its_excerpt(
    make_recording: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    path = make_recording([("server", b"DEBUG: \x1b[31mhello\xe2\x80\xae")])

    assert main(["lint", str(path), "--ignore", "LIFE"]) == 1
    assert capsys.readouterr().out == (
        "tested:2 ENV101 error: not JSON on stdout\n    | DEBUG: \\x1b[31mhello\\u202e\n1 error in 1 recording\n"
    )


def test_of_one_rule_ten_are_shown_unless_all_are_requested(
    make_recording: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(make_recording([("server", b"oops")] * 25))

    main(["lint", path, "--ignore", "LIFE"])
    short = capsys.readouterr().out
    main(["lint", path, "--ignore", "LIFE", "--all"])

    assert short.count("ENV101 error") == 10
    assert "tested ENV101 … and 15 more; --all shows them\n25 errors in 1 recording\n" in short
    assert capsys.readouterr().out.count("ENV101 error") == 25


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], 1),
        (["--ignore", "ENV"], 0),
        (["--select", "ALL"], 1),
        (["--select", "all", "--ignore", "ENV"], 0),
        (["--select", "ENV", "--ignore", "ALL"], 1),
        (["--select", "LIFE"], 0),
        (["--select", "LIFE", "--fail-on", "warning"], 1),
        (["--select", "DATA", "--fail-on", "info"], 0),
    ],
    ids=["error", "ignored", "all", "all but ignored", "selected", "warning", "warning fails", "nothing"],
)
def test_the_exit_code_is_that_of_the_gravest(make_recording: Make, options: list[str], code: int) -> None:
    path = make_recording([("server", b"oops")])  # The server also exits early: a warning.

    assert main(["lint", str(path), *options]) == code


def test_sessions_are_named_as_everywhere_and_folders_are_opened(
    make_recording: Make, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    make_recording([], name="first")
    make_recording([("server", b"oops")], name="second")

    assert main(["lint", "--dir", str(tmp_path)]) == 1
    assert main(["lint", "first", "--dir", str(tmp_path)]) == 0
    assert main(["lint", str(tmp_path), "first", "--dir", str(tmp_path)]) == 1
    assert capfd.readouterr().out.endswith("in 2 recordings\n")


def test_a_recording_in_parts_is_one_and_each_line_has_its_file(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def header(part: int) -> bytes:
        return (
            b'{"mcpspy":1,"id":"0badcafe","started":"2026-11-21T08:00:00.000Z","name":"a","part":%d}\n' % part
        )

    oops = b'{"t":1.0,"from":"server","why":"x","raw":"oops"}\n'
    (tmp_path / "a.jsonl").write_bytes(header(1) + oops + b'{"t":1.5,"note":"part","next":"a.part2.jsonl"}\n')
    (tmp_path / "a.part2.jsonl").write_bytes(header(2) + b'{"t":1.6,"note":"stderr","text":""}\n' + oops)

    findings = found(tmp_path / "a.jsonl", capfd)

    assert [(Path(f["path"]).name, f["line"]) for f in findings] == [("a.jsonl", 2), ("a.part2.jsonl", 3)]


def test_a_live_session_may_still_answer(
    make_recording: Make, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(make_recording([("client", CALL)], exit_code=None))
    assert main(["lint", path, "--select", "LIFE201", "--fail-on", "warning"]) == 1

    monkeypatch.setattr("mcpspy.io.recording.reader.is_live", lambda _: True)
    assert main(["lint", path, "--select", "LIFE201", "--fail-on", "warning"]) == 0


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["--select", "ENV9"],
            "mcpspy: lint: unknown rule code ENV9 (see docs/lint.md; use codes such as ENV, LIFE3, SEC201)",
        ),
        (
            ["--explain", "ENV1"],
            "mcpspy: lint: --explain ENV1: unknown rule (did you mean ENV101, ENV102, ENV103?)",
        ),
        (["nowhere.jsonl"], "mcpspy: nowhere.jsonl: no such file (mcpspy ls lists the sessions)"),
    ],
    ids=["select", "explain", "file"],
)
def test_a_wrong_command_line_is_one_line(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lint", *arguments]) == 2
    assert capsys.readouterr().err == line + "\n"


def test_a_folder_without_recordings_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", str(tmp_path)]) == 2
    assert "this folder contains no recordings" in capsys.readouterr().err


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root can read every file")
def test_a_file_that_cannot_be_read_is_3(make_recording: Make) -> None:
    path = make_recording()
    path.chmod(0)

    assert main(["lint", str(path)]) == 3


def test_an_incomplete_line_is_reported(make_recording: Make, capsys: pytest.CaptureFixture[str]) -> None:
    main(["lint", str(make_recording(exit_code=None, torn=b'{"t":'))])

    assert "incomplete last line skipped (5 bytes)" in capsys.readouterr().err


def test_a_rule_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "--explain", "env101"]) == 0
    printed = capsys.readouterr().out

    assert printed.startswith("ENV101 (error): line that is not JSON\n")
    assert "Write to stderr instead" in " ".join(printed.split())
    assert (
        "specification: https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio"
        in printed
    )
    assert "wrong:\n  << DEBUG: 3 stations in cache\n" in printed


def test_every_format_is_valid(make_recording: Make, capfd: pytest.CaptureFixture[str]) -> None:
    path = str(make_recording([("server", b"oops \x1b[2J")]))
    printed = {}
    for form in ("json", "sarif", "junit", "github"):
        assert main(["lint", path, "--format", form]) == 1
        printed[form] = capfd.readouterr().out
        assert "\x1b" not in printed[form]

    assert [finding["code"] for finding in json.loads(printed["json"])["findings"]] == ["ENV101", "LIFE401"]
    assert [result["ruleId"] for result in json.loads(printed["sarif"])["runs"][0]["results"]] == [
        "ENV101",
        "LIFE401",
    ]
    assert [
        case.find("failure") is not None for case in ET.fromstring(printed["junit"]).iter("testcase")
    ] == [
        True,
        False,
    ]
    assert [line.split()[0] for line in printed["github"].splitlines()] == ["::error", "::warning"]


class _Progress(ProgressBar):
    """A progress bar that is always visible."""

    printed: ClassVar[list[tuple[int, int] | str]] = []

    def show(self, done: int, of: int, what: str | None = None) -> None:
        self.printed.append((done, of))

    def clear(self) -> None:
        self.printed.append("clear")


def test_progress_is_shown_and_cleared_before_anything_is_printed(
    make_recording: Make, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = make_recording([("client", CALL), ("server", b"oops")])
    size = path.stat().st_size
    monkeypatch.setattr(lint, "ProgressBar", _Progress)
    _Progress.printed.clear()

    main(["lint", str(path), "--filter", "dir:server", "--all"])

    assert _Progress.printed == [(size, size), "clear", (size, size), "clear"]
    assert "ENV101" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("query", "codes"),
    [
        ("", {"LIFE101", "ENV101", "LIFE401"}),
        ("dir:s2c", {"ENV101"}),
        ("status:noanswer", {"LIFE101"}),
        ("status:pending", set()),
        ("params.name=a", {"LIFE101"}),
        ("params.name=b", set()),
        ("text:oops or kind:exit", {"ENV101", "LIFE401"}),
        ("since:-998500us", {"ENV101", "LIFE401"}),
        ("until:-998500us", {"LIFE101"}),
    ],
)
def test_a_filter_leaves_findings_on_what_it_finds(
    make_recording: Make, capfd: pytest.CaptureFixture[str], query: str, codes: set[str]
) -> None:
    path = make_recording([("client", CALL), ("server", b"oops")])  # At 0 and 1 ms; the exit at 1 s.
    printed = path.read_bytes().replace(b'"t":0.001000', b'"t":0.002000')
    path.write_bytes(printed)

    assert {finding["code"] for finding in found(path, capfd, f"--filter={query}")} == codes


def test_a_filter_that_cannot_be_read_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "-q", "a is:finding"]) == 2
    assert "lint: --filter, character 6: findings are available only in" in capsys.readouterr().err


def test_hints_are_below_the_first_finding_of_a_rule(
    make_recording: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(make_recording([("server", b"oops")] * 3))

    main(["lint", path, "--select", "ENV", "--hints"])
    printed = capsys.readouterr().out
    assert printed.count("    = Usually the server printed something to stdout") == 1
    assert "Write to stderr instead" in " ".join(printed.split())
    main(["lint", path, "--select", "ENV"])
    assert "Write to stderr" not in capsys.readouterr().out


def test_statistics_are_a_line_per_rule_the_most_frequent_first(
    make_recording: Make, capfd: pytest.CaptureFixture[str]
) -> None:
    path = str(make_recording([("server", b"oops")] * 12))

    assert main(["lint", path, "--statistics"]) == 1
    assert capfd.readouterr().out == (
        "12  ENV101   error    line that is not JSON\n"
        " 1  LIFE401  warning  server that exits before the client closes stdin\n"
        "12 errors, 1 warning in 1 recording\n"
    )
    assert main(["lint", path, "--statistics", "--format", "json"]) == 1
    assert json.loads(capfd.readouterr().out)["statistics"] == {"ENV101": 12, "LIFE401": 1}
    assert main(["lint", path, "--statistics", "--format", "github"]) == 2
    assert "--statistics and --format github exclude each other (use text or json)" in capfd.readouterr().err


def test_the_limits_of_the_named_hosts_are_checked(
    make_recording: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    path = make_recording([("server", b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}')])

    main(["lint", str(path), "--select", "HOST"])
    assert "no findings" in capsys.readouterr().out
    main(["lint", str(path), "--select", "HOST", "--host", "cursor,vscode"])
    out = capsys.readouterr().out
    assert "HOST302 warning: Cursor ignores notifications/tools/list_changed (cursor/cursor#2980)" in out
    assert "VS Code ignores" not in out
    main(["lint", str(path), "--select", "HOST", "--host", "none"])
    assert "no findings" in capsys.readouterr().out


def test_an_unknown_host_is_one_line_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "--host", "cursor,netscape"]) == 2
    assert "--host netscape: unknown host (use claude-code, " in capsys.readouterr().err
