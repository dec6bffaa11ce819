"""`mcpspy show`: a session, one message per line."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from mcpspy.core.session.index import Index
from mcpspy.io.recording.reader import Recording, RecordingState
from mcpspy.ui.cli.main import main
from mcpspy.ui.report import explanation
from tests.core.session.test_http_exchanges import ASKED, STREAMS, end, event, head
from tests.ui.web.recordings import write

Make = Callable[..., Path]

FAULTS = Path(__file__).parents[1] / "report" / "faults"

ASK = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s"}}'


def without_cause(out: str) -> list[str]:
    """Return the printed lines without that of the cause, which `explain` decides."""
    return [line for line in out.splitlines() if not line.startswith("why: ")]


def test_each_message_has_a_line_and_the_last_line_sums_up(
    make_recording: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", str(make_recording())]) == 0

    lines = without_cause(capsys.readouterr().out)
    assert lines[0].startswith("tested · ")
    assert [line.split()[1:3] for line in lines[2:8]] == [
        ["→", "initialize"],
        ["←", "initialize"],
        ["→", "tools/call"],
        ["←", "(not"],
        ["←", "tools/call"],
        ["·", "exit"],
    ]
    assert "error -32602 invalid params: no" in lines[6]
    assert (
        lines[-1]
        == "tested 2 → tested 2 · protocol 2025-11-25 · 2 requests · 1 failed · 1 protocol issue · exit 0"
    )


def test_control_characters_of_a_peer_are_not_printed(
    make_recording: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["show", str(make_recording()), "-v"])

    assert "\x1b" not in capsys.readouterr().out


def test_bodies_are_indented_on_request(make_recording: Make, capsys: pytest.CaptureFixture[str]) -> None:
    main(["show", str(make_recording()), "-v"])

    assert '            "method": "initialize",' in capsys.readouterr().out.splitlines()


def test_json_lines_are_strict_and_have_the_original_message(
    make_recording: Make, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = make_recording(
        [("client", b'{"jsonrpc":"2.0","id":1.0,"method":"x","params":{"n":1E5}}'), ("server", b"{oops}")]
    )

    assert main(["show", str(path), "--format", "json", "-v"]) == 0

    out = capfdbinary.readouterr().out
    request, garbage, note = map(orjson.loads, out.splitlines())
    assert b'"n":1E5' in out
    assert (request["kind"], request["method"], request["bytes"]) == ("request", "x", 58)
    assert request["flaws"] == ["id is 1.0"]
    assert (garbage["kind"], garbage["raw"]) == ("malformed", "{oops}")
    assert (note["kind"], note["note"], note["code"]) == ("note", "exit", 0)


def test_redacted_values_are_counted_and_an_unredacted_recording_is_marked(
    make_recording: Make, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    ping = b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"[redacted:00c0ffee]","b":"x [redacted:00c0ffee]"}}'
    path = str(make_recording([("client", ping)]))

    assert main(["show", path]) == 0
    first, *_, last, unanswered = without_cause(capfdbinary.readouterr().out.decode())
    assert first.endswith(" · not redacted (--no-redact)")
    assert " · 2 values redacted · " in last
    assert unanswered == "no answer: x, id 1, since 0.000"

    assert main(["show", path, "--json"]) == 0
    request, note = map(orjson.loads, capfdbinary.readouterr().out.splitlines())
    assert request["redacted"] == 2
    assert "redacted" not in note


@pytest.mark.parametrize(
    ("exit_code", "end"), [(0, "exit 0"), (None, "died (no exit note)")], ids=["ended", "died"]
)
def test_an_unanswered_request_is_named_at_the_end(
    make_recording: Make, capfdbinary: pytest.CaptureFixture[bytes], exit_code: int | None, end: str
) -> None:
    path = make_recording(
        [("client", b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"slow"}}')],
        exit_code=exit_code,
    )

    assert main(["show", str(path)]) == 0

    *_, last, unanswered = without_cause(capfdbinary.readouterr().out.decode())
    assert last == f"1 request · 0 failed · 1 unanswered · {end}"
    assert unanswered == "no answer: tools/call slow, id 7, since 0.000"
    assert main(["show", str(path), "--format", "json"]) == 0
    assert orjson.loads(capfdbinary.readouterr().out.splitlines()[0])["status"] == "no answer"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("crash", "the server ended during tools/call work, with exit code 1: KeyError: 'missing'"),
        ("unknown-tool", "the tool 'missing' was called, which the server does not offer"),
        ("unknown-command", "the command npxx was not found"),
    ],
)
def test_the_summary_of_a_failed_session_names_the_first_cause(
    capsys: pytest.CaptureFixture[str], name: str, why: str
) -> None:
    path = FAULTS / f"{name}.jsonl"

    assert main(["show", str(path)]) == 0
    assert f"\nwhy: {why}" in capsys.readouterr().out
    assert main(["show", str(path), "--width", "60"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 60


def test_a_session_that_is_followed_a_good_one_and_a_large_one_have_no_cause(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    def shown(name: str, *more: str) -> str:
        assert main(["show", str(FAULTS / f"{name}.jsonl"), *more]) == 0
        return capsys.readouterr().out

    assert "why:" in shown("crash")
    assert "why:" not in shown("older-revision")
    with monkeypatch.context() as patch:
        patch.setattr(explanation, "LARGEST_ASIDE", 100)
        assert "why:" not in shown("crash")
    request.getfixturevalue("live")
    assert "why:" not in shown("crash", "--follow")


def test_an_incomplete_last_line_is_skipped_and_reported(
    make_recording: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    path = make_recording(exit_code=None, torn=b'{"t":0.5,"from":"cli')

    assert main(["show", str(path)]) == 0
    assert "incomplete last line skipped (20 bytes)" in capsys.readouterr().out


def test_json_has_one_object_per_line_for_an_indented_http_body(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    body = '{\r\n  "jsonrpc": "2.0",\n  "id": 1,\n  "result": {"n": 1E5, "text": "a\\nb"}\n}'
    printed = {"t": 0.1, "from": "server", "stream": "1", "http": 1, "raw": body}
    path = tmp_path / "http.jsonl"
    header = {"mcpspy": 1, "id": "ab12cd34", "started": "2026-01-01T00:00:00.000Z", "transport": "http"}
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in (header, printed)))

    assert main(["show", str(path), "--format", "json", "-v"]) == 0

    (line,) = capfdbinary.readouterr().out.split(b"\n")[:-1]
    answer = orjson.loads(line)
    assert (answer["kind"], answer["bytes"]) == ("result", len(body))
    assert answer["msg"] == orjson.loads(body)
    assert b"1E5" in line


@pytest.mark.parametrize("more", [[], ["--follow"], ["-q", "tool:*"]], ids=["whole", "followed", "filtered"])
@pytest.mark.parametrize("exit_code", [0, None], ids=["ended", "killed"])
def test_a_call_that_never_got_an_answer_has_the_status_no_answer(
    make_recording: Make, capfdbinary: pytest.CaptureFixture[bytes], more: list[str], exit_code: int | None
) -> None:
    path = str(make_recording([("client", ASK % (1, b"slow"))] * 2, exit_code=exit_code))

    assert main(["show", path, *more]) == 0
    out = capfdbinary.readouterr().out.decode()
    assert [line.split("  ")[-1] for line in out.splitlines() if "→" in line] == [
        "no answer",
        "no answer; id 1 is in use by an unanswered request",
    ]
    assert "0 failed · 2 unanswered" in out
    assert "pending" not in out

    assert main(["show", path, "--format", "json", *more]) == 0
    printed = [orjson.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    assert [line["status"] for line in printed if line["kind"] == "request"] == ["no answer"] * 2


ERRORS = [
    ("client", ASK % (1, b"a")),
    ("server", b'{"jsonrpc":"2.0","id":1,"result":{}}'),
    ("server", b'{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"boom"}}'),
    ("server", b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"oops"}}'),
]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("status:error", [2, 3]),
        ("status=error", [2, 3]),
        ("code:-32700", [3]),
        ("id:null", [3]),
        ("status:ok", [1]),
    ],
)
def test_an_error_that_settles_no_request_is_shown_counted_and_found(
    make_recording: Make, capfdbinary: pytest.CaptureFixture[bytes], query: str, found: list[int]
) -> None:
    path = str(make_recording(ERRORS))

    assert main(["show", path, "--format", "json", "-q", query]) == 0
    printed = [orjson.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    assert [line["n"] for line in printed] == found

    assert main(["show", path]) == 0
    out = capfdbinary.readouterr().out.decode()
    assert "error -32603 internal error: boom; id 1 was answered before" in out
    assert "error -32700 parse error: oops; response without an id" in out
    assert "1 request · 2 failed" in out


def test_json_reports_an_incomplete_line_on_stderr(
    make_recording: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    path = make_recording(exit_code=None, torn=b'{"t":')

    assert main(["show", str(path), "--json"]) == 0
    assert "incomplete last line skipped (5 bytes)" in capsys.readouterr().err


def test_following_prints_new_messages_and_ends_with_the_session(tmp_path: Path) -> None:
    run = [sys.executable, "-m", "mcpspy", "run", "--dir", str(tmp_path), "--name", "live", "--", "cat"]
    message = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    with subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(message)
        server.stdin.flush()
        assert server.stdout.readline() == message
        show = [sys.executable, "-u", "-m", "mcpspy", "show", "live", "-f", "--dir", str(tmp_path)]
        with subprocess.Popen(show, stdout=subprocess.PIPE, env={**os.environ, "PYTHONUTF8": "1"}) as viewer:
            bound = threading.Timer(30, viewer.kill)
            bound.start()
            assert viewer.stdout is not None
            seen = [viewer.stdout.readline() for _ in range(4)]
            server.stdin.close()
            rest = viewer.stdout.read().decode()
            assert viewer.wait(timeout=30) == 0
            bound.cancel()

    assert "→  ping" in seen[2].decode()
    assert rest.splitlines()[-1].endswith("exit 0") or "exit 0" in rest


def test_a_filter_prints_matching_lines_and_counts_them(
    make_recording: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", str(make_recording()), "-q", "tool:echo or note:exit"]) == 0

    lines = without_cause(capsys.readouterr().out)
    assert [line.split()[1:3] for line in lines[2:5]] == [
        ["→", "tools/call"],
        ["←", "tools/call"],
        ["·", "exit"],
    ]
    assert lines[-1].startswith("3 of 6 lines · tested 2 → tested 2 · ")
    assert lines[-1].endswith(" · 2 requests · 1 failed · 1 protocol issue · exit 0")


def test_actions_of_mcpspy_are_not_counted_as_protocol_issues(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ask, answer = {"jsonrpc": "2.0", "method": "ping"}, {"jsonrpc": "2.0", "result": {}}
    entries: list[dict[str, object]] = [
        {"t": 1, "from": "client", "by": "mcpspy", "msg": {**ask, "id": "mcpspy-1"}},
        {"t": 2, "from": "server", "to": "mcpspy", "msg": {**answer, "id": "mcpspy-1"}},
        {"t": 3, "from": "client", "msg": {**ask, "id": 1}},
        {"t": 4, "note": "rule", "action": "edit", "rule": "1", "from": "server", "id": "1"},
        {"t": 4, "from": "server", "msg": {**answer, "id": 1}},
        {"t": 5, "from": "server", "msg": {**answer, "id": 1}},
    ]
    path = write(tmp_path / "acted.jsonl", entries)
    index = Index()
    index.add_lines(path.read_bytes().splitlines()[1:], 0)

    assert main(["show", str(path)]) == 0
    assert index.issues == 1
    assert "2 requests (1 by mcpspy) · 0 failed · 1 protocol issue · " in capsys.readouterr().out


def test_a_filter_matches_the_final_state_of_a_request(
    make_recording: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    ask = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"slow"}}'
    path = make_recording(
        [("client", ask % 7), ("client", ask % 8), ("server", b'{"jsonrpc":"2.0","id":7,"result":{}}')],
        exit_code=None,
    )

    assert main(["show", str(path), "--filter", "status:noanswer"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split()[1:5] == ["→", "tools/call", "slow", "8"]
    assert lines[2].endswith("no answer")
    assert lines[4].startswith("1 of 3 lines")
    assert "id 8" in lines[5]

    assert main(["show", str(path), "--filter", "status:ok"]) == 0
    assert "no answer" not in capsys.readouterr().out


def test_following_prints_the_stderr_before_a_crash(tmp_path: Path) -> None:
    server = ["sh", "-c", "echo start >&2; read line; echo boom >&2; exit 3"]
    run = [sys.executable, "-m", "mcpspy", "run", "--dir", str(tmp_path), "--name", "live", "--", *server]
    show = [sys.executable, "-u", "-m", "mcpspy", "show", "live", "-f", "-q", "is:problem"]
    with subprocess.Popen(run, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdin is not None
        assert running.stderr is not None
        assert running.stderr.readline() == b"start\n"
        with subprocess.Popen([*show, "--dir", str(tmp_path)], stdout=subprocess.PIPE) as viewer:
            bound = threading.Timer(30, viewer.kill)
            bound.start()
            assert viewer.stdout is not None
            heads = [viewer.stdout.readline() for _ in range(2)]
            running.stdin.write(b'{"jsonrpc":"2.0","method":"first"}\n')
            running.stdin.flush()
            rest = viewer.stdout.read().decode()
            assert viewer.wait(timeout=30) == 0
            bound.cancel()

    assert heads[0].startswith(b"live")
    assert [line.split()[2:] for line in rest.splitlines()[:2]] == [["stderr", "boom"], ["exit", "3"]]
    assert "start" not in rest


def test_following_filters_new_messages(tmp_path: Path) -> None:
    run = [sys.executable, "-m", "mcpspy", "run", "--dir", str(tmp_path), "--name", "live", "--", "cat"]
    show = [sys.executable, "-u", "-m", "mcpspy", "show", "live", "-f", "--dir", str(tmp_path)]
    with subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None

        def exchange(name: bytes) -> None:
            assert server.stdin is not None
            assert server.stdout is not None
            server.stdin.write(b'{"jsonrpc":"2.0","method":"%b"}\n' % name)
            server.stdin.flush()
            server.stdout.readline()

        exchange(b"first")
        command = [*show, "--filter=-first dir:server"]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONUTF8": "1"}
        ) as viewer:
            bound = threading.Timer(30, viewer.kill)
            bound.start()
            assert viewer.stdout is not None
            heads = [viewer.stdout.readline() for _ in range(2)]
            exchange(b"second")
            line = viewer.stdout.readline().decode()
            server.stdin.close()
            rest = viewer.stdout.read().decode()
            assert viewer.wait(timeout=30) == 0
            bound.cancel()

    assert heads[0].startswith(b"live")
    assert "←  second" in line
    assert rest.splitlines()[-1].startswith("1 of ")
    assert "first" not in rest


def test_json_is_filtered(make_recording: Make, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["show", str(make_recording()), "--json", "--filter=-dir:client -note:*"]) == 0

    printed = [orjson.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    assert [(line["n"], line["kind"]) for line in printed] == [
        (1, "result"),
        (3, "malformed"),
        (4, "error"),
    ]


def test_a_blank_filter_matches_every_line(make_recording: Make, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(make_recording()), "--filter", ""]) == 0
    assert "6 of 6 lines" in capsys.readouterr().out


def test_an_invalid_filter_is_one_line_with_the_position(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "-q", "a tools:\x1b[2J"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("mcpspy: show: --filter, character 3: unknown field tools")
    assert err.endswith(" (see docs/filter.md)\n")

    assert main(["show", "-q=--"]) == 2
    assert "--filter, character 2: expected a condition after '-'" in capsys.readouterr().err

    assert main(["show", "-q", "kind:x status:\x1b[2J\ny"]) == 2
    printed = capsys.readouterr().err
    assert "\x1b" not in printed
    assert printed.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "line", "code"),
    [
        (None, "no such file", 2),
        (b"", "empty, so not a recording", 2),
        (b"\x7fELF\x02\x01\x00\xff\xfe", "not an mcpspy recording", 2),
        (b'{"mcpspy":1,"id":"a"', "its header is incomplete", 2),
        (b'{"mcpspy":99,"id":"a","started":"x"}\n', "recorded by a newer mcpspy (format 99", 2),
        (b'{"mcpspy":1}\n', "invalid header", 2),
        (b"[1]\n", "not an mcpspy recording", 2),
    ],
    ids=["missing", "empty", "binary", "cut header", "newer", "header without keys", "array"],
)
def test_a_file_that_is_not_a_recording_is_one_line_with_a_hint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None, line: str, code: int
) -> None:
    path = tmp_path / "given.jsonl"
    if content is not None:
        path.write_bytes(content)

    assert main(["show", str(path)]) == code

    printed = capsys.readouterr().err
    assert printed.startswith(f"mcpspy: {path}: {line}")
    assert printed.count("\n") == 1
    assert printed.rstrip().endswith(")")


def test_a_folder_without_recordings_is_one_line_with_a_hint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", f"{tmp_path}/"]) == 2
    assert capsys.readouterr().err == (
        f"mcpspy: {tmp_path}/: this folder contains no recordings (record one with mcpspy run -- COMMAND)\n"
    )


def test_each_line_of_a_folder_names_its_session(
    make_recording: Make, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    one, two = make_recording(name="first"), make_recording(name="second")
    assert main(["show", f"{tmp_path}/", "-q", "kind:request"]) == 0
    lines = capfdbinary.readouterr().out.decode().splitlines()
    ids = [orjson.loads(path.read_bytes().partition(b"\n")[0])["id"] for path in (one, two)]
    assert {tuple(line.split()[:2]) for line in lines} == {(ids[0], "first"), (ids[1], "second")}

    main(["show", f"{tmp_path}/", "-q", "kind:request", "--json"])
    found = [orjson.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    assert len(found) == len(lines)
    assert {each["session"] for each in found} == set(ids)


def test_a_session_has_precedence_over_a_folder_of_its_name(
    make_recording: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_recording(name="weather")
    (tmp_path / "weather").mkdir()
    monkeypatch.chdir(tmp_path)
    assert main(["show", "weather", "--dir", str(tmp_path)]) == 0
    assert "weather" in capsys.readouterr().out


def test_a_folder_is_not_followed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", f"{tmp_path}/", "--follow"]) == 2
    assert "--follow prints one session" in capsys.readouterr().err


def test_an_empty_folder_suggests_the_demo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "--dir", str(tmp_path)]) == 2
    assert "mcpspy demo" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("width", "names"),
    [
        ("60", ["client", "claude-ai", "a-very-lo…", "claude… #3", "7"]),
        ("120", ["client", "claude-ai", "a-very-long-name-of…", "claude-ai #3", "7"]),
    ],
)
def test_an_http_session_has_the_names_of_its_clients(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], width: str, names: list[str]
) -> None:
    header = {"mcpspy": 1, "id": "a1", "started": "2026-01-01T00:00:00.000Z", "transport": "http"}
    clients = {"1": "claude-ai", "2": "a-very-long-name-of-a-client", "3": "claude-ai"}
    lines: list[object] = [header]
    for stream, name in clients.items():
        params = {"protocolVersion": "2025-11-25", "clientInfo": {"name": name, "version": "1"}}
        asked = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        lines.append({"t": 0.1, "from": "client", "stream": stream, "msg": asked})
    ping = {"jsonrpc": "2.0", "id": 0, "method": "ping"}
    lines.append({"t": 0.1, "from": "client", "stream": "7", "msg": ping})
    path = tmp_path / "clients.jsonl"
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))

    assert main(["show", str(path), "--width", width, "-q", "kind:request"]) == 0

    _, heads, *requests = capsys.readouterr().out.splitlines()[: len(names) + 1]
    shown = [heads.removeprefix(" time").split("method")[0], *(line[6:].split("→")[0] for line in requests)]
    assert [text.strip() for text in shown] == names


def test_an_http_session_distinguishes_its_clients(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "two.jsonl"
    path.write_text(
        '{"mcpspy":1,"id":"a1","started":"2026-01-01T00:00:00.000Z","transport":"http","upstream":"http://x/mcp"}\n'
        '{"t":0.1,"from":"client","stream":"1","http":1,"msg":{"jsonrpc":"2.0","id":1,"method":"tools/list"}}\n'
        '{"t":0.2,"from":"client","stream":"2","http":2,"msg":{"jsonrpc":"2.0","id":1,"method":"ping"}}\n'
        '{"t":0.3,"from":"server","stream":"2","http":2,"msg":{"jsonrpc":"2.0","id":1,"result":{}}}\n'
        '{"t":0.4,"note":"http-end","stream":"1","http":1,"hung_up":"client"}\n',
        encoding="utf-8",
    )

    assert main(["show", str(path)]) == 0

    assert [line.split()[1:4] for line in capsys.readouterr().out.splitlines()[2:6]] == [
        ["1", "→", "tools/list"],
        ["2", "→", "ping"],
        ["2", "←", "ping"],
        ["1", "·", "http-end"],
    ]


def http_recording(folder: Path, lines: list[bytes]) -> str:
    header = {"mcpspy": 1, "id": "a1", "started": "2026-01-01T00:00:00.000Z", "transport": "http"}
    path = folder / "streams.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in [orjson.dumps(header), *lines]))
    return str(path)


def test_a_get_stream_is_one_line_with_its_repetitions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = http_recording(tmp_path, STREAMS)
    assert main(["show", path]) == 0
    out = capsys.readouterr().out
    assert [line.split(" http      ")[1] for line in out.splitlines() if " http " in line] == [
        "GET stream: 3 events in 12m00s, ended by the server; reopened 7 times, each empty",
        "GET stream: 1 event, open",
    ]
    assert " · 0 failed · " in out


def test_http_exchanges_have_their_durations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", http_recording(tmp_path, STREAMS), "--http"]) == 0
    ended = [line for line in capsys.readouterr().out.splitlines() if " http-end " in line]
    assert ended[0].endswith(
        "http-end  GET stream: 3 events in 12m00s, ended by the server; reopened 7 times, each empty"
    )
    lines = [
        event(3, 0.5, ASKED, "client"),
        head(3, 1.0, method="POST", status=503),
        end(3, 1.75, body="busy", size=4),
    ]
    assert main(["show", http_recording(tmp_path, lines), "--http"]) == 0
    out = capsys.readouterr().out
    assert "refused, HTTP 503: busy" in out
    assert "POST /mcp  HTTP 503 · 500.0 ms" in out
    assert main(["show", http_recording(tmp_path, lines), "-v"]) == 0
    assert "          busy\n" in capsys.readouterr().out
    assert "HTTP exchange 3 ended  1.25 s" in out


def test_the_text_of_a_refusal_is_found_by_a_filter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        event(3, 0.5, ASKED, "client"),
        head(3, 1.0, method="POST", status=401),
        end(3, 1.1, body="invalid_token", size=13),
    ]
    for text in ("text:invalid_token", "/invalid.token/"):
        assert main(["show", http_recording(tmp_path, lines), "-q", text]) == 0
        assert "refused, HTTP 401: invalid_token" in capsys.readouterr().out


FINE = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}'
MESSAGES = [
    ("client", ASK % (7, b"slow")),
    ("client", ASK % (8, b"fast")),
    ("server", b"DEBUG: \x1b[2J"),
    ("server", FINE % 8),
    ("server", FINE % 8),
]


def orderly(make_recording: Make) -> Path:
    """Write MESSAGES, and an end that the client began."""
    path = make_recording(MESSAGES, exit_code=None)
    with path.open("a", encoding="utf-8") as file:
        file.write(
            '{"t":0.900000,"note":"eof","from":"client"}\n{"t":1.000000,"note":"exit","code":0,"signal":null}\n'
        )
    return path


def below(lines: list[str], word: str) -> list[str]:
    """Return the codes below the lines that have a word."""
    found, is_below = [], False
    for line in lines[2:]:
        code = line.split()[0] if line.startswith(" " * 10) else ""
        is_below = is_below if code else word in line
        found += [code] if code and is_below else []
    return found


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the next recording be live when it is opened, and ended when it is followed."""
    states = iter([RecordingState.LIVE])
    monkeypatch.setattr(Recording, "state", property(lambda _: next(states, RecordingState.ENDED)))


@pytest.mark.parametrize("more", [[], ["--follow"]], ids=["whole", "followed"])
def test_findings_are_printed_below_their_message(
    make_recording: Make,
    capsys: pytest.CaptureFixture[str],
    more: list[str],
    request: pytest.FixtureRequest,
) -> None:
    path = str(orderly(make_recording))
    if more:
        request.getfixturevalue("live")

    assert main(["show", path, "--lint", *more]) == 0

    out = capsys.readouterr().out
    lines = without_cause(out)
    assert "\x1b" not in out
    assert below(lines, "(not JSON)") == ["ENV101"]
    assert below(lines, "was answered before") == ["ENV205"]
    never = next(line for line in lines if "LIFE201" in line)
    if more:  # Its line was printed before the finding was known.
        assert never.endswith("(tools/call at 0.000)")
    else:
        assert "LIFE201" in below(lines, "slow")
    assert lines[-2].endswith(" findings · exit 0")


@pytest.mark.usefixtures("live")
@pytest.mark.parametrize(
    ("query", "expected"), [("kind:request", [0, 1, 0, 1]), ("id:8", [1, 1]), ("id:9", [])]
)
def test_following_as_json_prints_requests_without_an_answer_again_at_the_end(
    make_recording: Make, capfdbinary: pytest.CaptureFixture[bytes], query: str, expected: list[int]
) -> None:
    path = make_recording([("client", ASK % (7, b"x")), ("client", ASK % (8, b"x"))])

    assert main(["show", str(path), "-f", "--json", "-q", query]) == 0
    printed = [orjson.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    assert [line["n"] for line in printed] == expected
    middle = len(expected) // 2
    assert {line["status"] for line in printed[:middle]} <= {"pending"}
    assert {line["status"] for line in printed[middle:]} <= {"no answer"}


def test_a_filter_can_select_findings_with_lint_only(
    make_recording: Make, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = str(orderly(make_recording))

    assert main(["show", path, "--lint", "--json", "-q", "lint:ENV1|lint=LIFE201"]) == 0
    printed = [orjson.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    assert [(line["n"], [finding["code"] for finding in line["findings"]][-1]) for line in printed] == [
        (0, "LIFE201"),
        (2, "ENV101"),
    ]
    assert printed[1]["findings"][0] == {
        "code": "ENV101",
        "severity": "error",
        "message": "not JSON on stdout",
        "excerpt": "DEBUG: \x1b[2J",
    }

    assert main(["show", path, "-q", "is:finding"]) == 2
    assert b"--filter, character 4: findings " in capfdbinary.readouterr().err


@pytest.mark.usefixtures("live")
def test_a_finding_at_the_end_of_a_live_session_is_a_separate_object(
    make_recording: Make, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = str(orderly(make_recording))

    assert main(["show", path, "--lint", "--json", "-f", "-q", "lint=LIFE201"]) == 0
    late, request = map(orjson.loads, capfdbinary.readouterr().out.splitlines())
    assert (late["n"], late["kind"], late["code"]) == (0, "finding", "LIFE201")
    assert (request["n"], request["kind"], request["status"]) == (0, "request", "no answer")


@pytest.mark.usefixtures("live")
def test_a_late_finding_is_printed_with_its_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "origin.jsonl"
    path.write_text(
        '{"mcpspy":1,"id":"a1","started":"2026-01-01T00:00:00.000Z","transport":"http","upstream":"http://localhost/mcp"}\n'
        '{"t":0.1,"from":"client","stream":"1","http":1,"msg":{"jsonrpc":"2.0","id":1,"method":"ping"}}\n'
        '{"t":0.2,"note":"http","stream":"1","http":1,"method":"POST","path":"/mcp","status":200,'
        '"request":{"origin":"https://evil.example"},"response":{}}\n'
        '{"t":0.3,"from":"server","stream":"1","http":1,"msg":{"jsonrpc":"2.0","id":1,"result":{}}}\n'
        '{"t":0.4,"note":"http-end","stream":"1","http":1,"hung_up":null}\n',
        encoding="utf-8",
    )

    assert main(["show", str(path), "--lint", "-f", "-q", "lint:HTTP5"]) == 0

    printed = [line for line in capsys.readouterr().out.splitlines() if "HTTP501" in line]
    assert printed == [
        "          HTTP501 error: request with Origin https://evil.example was accepted (ping at 0.100)"
    ]


def test_a_relative_time_counts_back_from_the_last_entry(
    make_recording: Make, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = make_recording([("client", ASK % (n, b"x")) for n in range(3)])
    at = [orjson.loads(line)["t"] for line in path.read_bytes().splitlines()[1:]]
    back = f"since:-{round((at[-1] - at[2]) * 1e6) + 1}us"

    for more in ([], ["--follow"]):
        assert main(["show", str(path), "--json", "-q", back, *more]) == 0
        printed = [orjson.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
        assert printed[-1]["n"] == 3
        assert [line["t"] for line in printed] == [one for one in at if one >= at[2]]


@pytest.mark.parametrize("command", [["show"], ["show", "-v"], ["export", "--format", "markdown"]])
def test_invisible_characters_of_a_peer_are_visible(
    command: list[str], make_recording: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    hidden = "\u200b\u200d\u2060\ufeff\U000e0041\U000e007f\ufe01"
    call = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a?b \u2764\ufe0f"}}'.replace(
        "?", hidden
    )
    path = make_recording([("client", call.encode()), ("client", f"not JSON {hidden}".encode())])

    assert main([command[0], str(path), *command[1:]]) == 0

    shown = capsys.readouterr().out
    assert not set(hidden) & set(shown)
    assert "a\\u200b\\u200d\\u2060\\ufeff\\U000e0041\\U000e007f\\ufe01b \u2764\ufe0f" in shown
