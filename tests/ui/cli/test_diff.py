"""`mcpspy diff`: two sessions compared, from the command line."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from mcpspy.ui.cli.main import main

Make = Callable[..., Path]

RECORDINGS = Path(__file__).parents[3] / "recordings"

REQUEST = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}'
ANSWER = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"%b"}]}}'


def recording(name: str) -> str:
    return str(RECORDINGS / f"{name}.jsonl")


def test_two_that_are_the_same_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", recording("peer-sdk-auto"), recording("peer-sdk-modern")]) == 0
    assert capsys.readouterr().out == "same: 33 of 33 unchanged\n"


def test_a_change_is_reported_with_its_place_and_its_values(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["diff", recording("everything-sdk-legacy"), recording("everything-sdk-auto")]

    assert main(arguments) == 1
    head, pointer, old, new, verdict, *ways = capsys.readouterr().out.splitlines()
    assert head == (
        "different  resources/read demo://resource/dynamic/text/1  · exchange 15 → 16, line 40 → 42"
    )
    assert pointer == "  result        /result/contents/0/text"
    assert old.startswith('    - "Resource 1: This is a plaintext')
    assert "8:28:02" in old
    assert "8:28:04" in new
    assert verdict == "changed: 1 different; 44 of 45 unchanged"
    assert ways == [
        "to ignore these changes:",
        "  --volatile  # 1 of 1",
        "  --ignore-path 'resources/read demo://resource/dynamic/text/1 /result/contents/0/text'",
    ]

    assert main([*arguments, *shlex.split(ways[2])]) == 0
    assert main([*arguments, "--volatile"]) == 0
    assert main([*arguments, "--dates"]) == 0
    assert (
        main(
            [*arguments, "--ignore-path", "resources/read demo://resource/dynamic/* /result/contents/*/text"]
        )
        == 0
    )
    assert main([*arguments, "--fail-on", "breaking"]) == 0
    assert main([*arguments, "--only", "tools", "--only", "resources"]) == 0


def test_values_that_change_from_run_to_run_are_ignored_on_request(
    make_recording: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    def text(number: int) -> bytes:
        return b"pid %d on http://127.0.0.1:4%d in /tmp/run-%d" % (number, number, number)

    old, new = (
        str(make_recording([("client", REQUEST), ("server", ANSWER % text(n))], name=f"v{n}"))
        for n in (1234, 5678)
    )

    assert main(["diff", old, new]) == 1
    assert "  --volatile  # 1 of 1\n" in capsys.readouterr().out
    assert main(["diff", old, new, "--volatile"]) == 0
    assert capsys.readouterr().out == "same: 2 of 2 unchanged\n"


def test_a_pattern_without_its_slash_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    path = recording("peer-ts-auto")

    assert main(["diff", path, path, "--ignore-path", "result/content/0/text"]) == 2
    assert "did you mean /result/content/0/text?" in capsys.readouterr().err


def test_a_long_list_of_patterns_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", recording("everything-sdk-auto"), recording("memory-sdk-auto")]) == 1

    lines = capsys.readouterr().out.splitlines()
    ways = lines[lines.index("to ignore these changes:") :]
    assert len(ways) == 22
    assert ways[-1].endswith(" more")


def test_sessions_are_named_as_everywhere(
    make_recording: Make, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    make_recording([("client", REQUEST), ("server", ANSWER % b"one")], name="first")
    make_recording([("client", REQUEST), ("server", ANSWER % b"two")], name="second")

    assert main(["diff", "first", "second", "--dir", str(tmp_path), "--format", "json"]) == 1

    printed = orjson.loads(capfdbinary.readouterr().out)
    assert printed["old"].startswith("first (")
    (change,) = printed["changes"]
    assert (change["old"]["value"], change["new"]["value"]) == ("one", "two")
    assert main(["diff", "first", "last", "--dir", str(tmp_path)]) == 1


def test_a_listing_that_was_never_recorded_cannot_be_compared(
    make_recording: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(make_recording())

    assert main(["diff", path, path, "--only", "tools"]) == 2
    assert capsys.readouterr().err == (
        f"mcpspy: {path}: its client never listed the tools (record a session that lists them)\n"
    )


@pytest.mark.parametrize(
    ("content", "line"),
    [(None, "no such file"), (b"[1]\n", "not an mcpspy recording"), (b"", "empty, so not a recording")],
    ids=["missing", "other", "empty"],
)
def test_a_file_that_is_not_a_recording_is_reported_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None, line: str
) -> None:
    path = tmp_path / "given.jsonl"
    if content is not None:
        path.write_bytes(content)

    assert main(["diff", recording("peer-ts-auto"), str(path)]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith(f"mcpspy: {path}: {line}")
    assert printed.count("\n") == 1


def test_an_incomplete_line_is_reported(make_recording: Make, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(make_recording(exit_code=None, torn=b'{"t":'))

    assert main(["diff", path, path]) == 0
    assert capsys.readouterr().err.count("incomplete last line skipped (5 bytes)") == 2


def test_text_from_peers_is_escaped(
    make_recording: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = b"\\u001b[2J\\u202e```\\n| <b> @all"
    old = make_recording([("client", REQUEST.replace(b"echo", evil)), ("server", ANSWER % evil)], name="a")
    new = make_recording([("client", REQUEST.replace(b"echo", evil)), ("server", ANSWER % b"x")], name="b")
    files = {form: tmp_path / form for form in ("junit", "markdown")}

    for form, file in files.items():
        assert main(["diff", str(old), str(new), "--format", form, "-o", str(file)]) == 1

    for printed in (capsys.readouterr().out, *(file.read_text(encoding="utf-8") for file in files.values())):
        assert "\\x1b[2J" in printed
        assert not set(printed) & set("\x1b\u202e")


@pytest.mark.skipif(os.name == "nt", reason="ptys exist on POSIX only")
def test_colours_are_for_terminals_that_want_them() -> None:
    import pty

    command = [
        sys.executable,
        "-m",
        "mcpspy",
        "diff",
        recording("peer-sdk-legacy"),
        recording("peer-sdk-modern"),
    ]
    outputs = []
    for more in ({"TERM": "xterm"}, {"TERM": "xterm", "NO_COLOR": "1"}):
        controller, terminal = pty.openpty()
        environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"} | more
        with subprocess.Popen(command, stdout=terminal, env=environment) as process:
            os.close(terminal)
            printed = b""
            try:
                while chunk := os.read(controller, 65536):
                    printed += chunk
            except OSError:  # EIO: the end of a terminal on Linux.
                pass
            os.close(controller)
            assert process.wait(timeout=30) == 1
        outputs.append(printed)

    assert b"\x1b[33mdifferent" in outputs[0]
    assert b"\x1b" not in outputs[1]
    assert b"different  elicitation/create" in outputs[1]


def test_a_comparison_imports_neither_the_terminal_ui_nor_the_network() -> None:
    program = "import sys; from mcpspy.ui.cli.main import main; main(sys.argv[1:]); print(*sys.modules)"
    command = [sys.executable, "-c", program, "diff", recording("peer-ts-auto"), recording("peer-ts-auto")]

    loaded = subprocess.run(command, capture_output=True, check=True, timeout=60).stdout.decode().split()

    assert not {"textual", "aiohttp", "asyncio", "xml.etree.ElementTree"} & set(loaded)
