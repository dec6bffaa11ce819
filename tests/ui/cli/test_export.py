"""`mcpspy export`: recordings become files of other tools."""

from __future__ import annotations

import csv
import json
import os
import re
import stat
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)

from mcpspy.analysis.export import FORMATS
from mcpspy.io.extras import install_command
from mcpspy.ui.cli import export_telemetry
from mcpspy.ui.cli.main import main
from tests.otlp_receiver import Answer, Receiver
from tests.ui.conftest import CONVERSATION

Make = Callable[..., Path]


def test_every_format_is_written_to_a_file_that_is_its_owners(
    make_recording: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = make_recording()
    for form in FORMATS.values():
        out = tmp_path / f"out{form.suffix}"

        assert main(["export", str(path), "-o", str(out)]) == 0
        assert "tools/call" in out.read_text(encoding="utf-8")
        assert capsys.readouterr() == (f"{out}: 2 requests in 1 session, {out.stat().st_size:,} bytes\n", "")
        assert os.name != "posix" or stat.S_IMODE(out.stat().st_mode) == 0o600
        assert main(["export", str(path), "-o", str(out)]) == 2
        assert "(choose another name or use --force)" in capsys.readouterr().err


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_obeys_the_filter_and_writes_a_file_of_nothing_too(
    name: str, make_recording: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(make_recording())

    assert main(["export", path, "--format", name]) == 0
    every = capsys.readouterr()
    assert main(["export", path, "--format", name, "-q", "tool:echo"]) == 0
    some = capsys.readouterr()
    assert main(["export", path, "--format", name, "-o", "-", "-q", "tool:nothing"]) == 0
    none = capsys.readouterr()

    expected = "clientInfo" if name not in ("mermaid", "csv", "otlp") else "initialize"
    assert expected in every.out
    assert expected not in some.out
    # The page of HTML also has the names of the filter language.
    call = '"tools/call","echo"' if name == "html" else "tools/call"
    assert call in some.out
    assert call not in none.out
    assert (every.err, some.err) == ("", "")
    assert none.err == "mcpspy: nothing to export: no requests matching the filter in 1 session\n"
    assert none.out or name == "jsonl"


def test_several_sessions_go_where_they_can(
    make_recording: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_recording(name="one")
    make_recording(name="two")

    assert main(["export", str(tmp_path), "--format", "csv"]) == 0
    table = list(csv.DictReader(StringIO(capsys.readouterr().out, newline="")))
    assert [row["name"] for row in table] == ["one", "one", "two", "two"]
    assert main(["export", "one", "two", "--dir", str(tmp_path), "--format", "har"]) == 0
    archive = json.loads(capsys.readouterr().out)
    assert [page["title"] for page in archive["log"]["pages"]] == ["one", "two"]
    assert main(["export", str(tmp_path), "--format", "mermaid"]) == 2
    assert "export: --format mermaid takes one session, not 2 (har, " in capsys.readouterr().err


def test_force_replaces_a_file_but_no_recording(
    make_recording: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = make_recording(), tmp_path / "out.jsonl"
    before = path.read_bytes()
    out.write_text("old")

    assert main(["export", str(path), "-o", str(out), "--force"]) == 0
    assert len(out.read_text(encoding="utf-8").splitlines()) == 2
    assert main(["export", str(path), "-o", str(path), "--force"]) == 2
    assert "recordings are never overwritten" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_a_recording_that_is_still_written_is_exported_as_far_as_it_is(
    make_recording: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = [
        *CONVERSATION,
        ("client", b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"x"}}'),
    ]
    path = str(make_recording(expected, exit_code=None, torn=b'{"t":9,"from":"serv'))

    assert main(["export", path, "--format", "jsonl"]) == 0
    over = capsys.readouterr()
    assert [json.loads(line)["status"] for line in over.out.splitlines()][-1] == "no answer"
    assert over.err.count("incomplete last line skipped (19 bytes)") == 1

    from mcpspy.io.recording.writer import _mark_live

    with open(path, "ab") as writer:
        _mark_live(writer.fileno())
        assert main(["export", path, "--format", "jsonl"]) == 0
    live = capsys.readouterr()
    assert [json.loads(line)["status"] for line in live.out.splitlines()][-1] == "pending"
    assert live.err == ""


def test_a_placeholder_of_a_secret_stays(make_recording: Make, capsys: pytest.CaptureFixture[str]) -> None:
    secret = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"token":"[redacted:0123abcd]"}}'
    path = str(make_recording([("client", secret)]))
    for name in ("har", "markdown", "jsonl"):
        assert main(["export", path, "--format", name]) == 0
        assert "[redacted:0123abcd]" in capsys.readouterr().out


def test_a_terminal_gets_nothing_that_it_acts_on(
    make_recording: Make, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a\u202e\x9b31m"}}'
    path = str(make_recording([("client", expected.encode())]))
    for name in FORMATS:
        with monkeypatch.context() as patched:
            patched.setattr(sys.stdout, "isatty", lambda: True, raising=False)
            assert main(["export", path, "--format", name]) == 0
        out = capsys.readouterr().out
        assert "\u202e" not in out
        assert "\x9b" not in out
        assert out.count("\n") >= 1


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["-o", "x.txt"], "export: --output x.txt: unknown suffix (use --format"),
        (["-o", "-"], "missing --format"),
        (["--format", "csv", "-q", "tool:"], "export: --filter, character"),
        (["--format", "csv", "--force"], "--force requires --output FILE"),
        (["--format", "otlp", "--header", "a: b"], "--header requires --endpoint URL"),
        (["--format", "otlp", "--header-env", "a=B"], "--header-env requires --endpoint URL"),
        (["--format", "otlp", "--cacert", "x"], "--cacert requires --endpoint URL"),
        (["--endpoint", "http://h", "-o", "x.har"], "--endpoint excludes --output and any --format but otlp"),
        (
            ["--endpoint", "http://h", "--format", "har"],
            "--endpoint excludes --output and any --format but otlp",
        ),
        (["--endpoint", "h:4318"], "--endpoint h:4318: "),
        (["--format", "otlp", "--protocol", "grpc"], "--protocol requires --endpoint URL"),
        (["--endpoint", "http://h", "--signals", "logs"], "--signals requires --follow"),
        (["--format", "har", "--background"], "--background requires --follow"),
        (["--follow", "--format", "har"], "--follow excludes --output and any --format but otlp"),
        (["--follow", "-q", "x"], "--follow and --filter exclude each other"),
        (["--follow", "--config", "CONFIG"], "--follow needs --endpoint URL, or a table [telemetry] in "),
        (["--follow", "--cacert", "x"], "--cacert requires --endpoint URL"),
        (["--follow", "--endpoint", "http://h", "--signals", "spans"], "--signals spans: unknown signal"),
        (["--endpoint", "http://h", "--header", "nothing"], "--header: not a valid header"),
        (["--format", "csv", "absent"], "absent: no such file or session"),
    ],
)
def test_a_wrong_command_line_is_one_line(
    arguments: list[str],
    expected: str,
    make_recording: Make,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    make_recording()

    (settings := tmp_path / "mcpspy.toml").write_text("", encoding="utf-8")
    arguments = [str(settings) if each == "CONFIG" else each for each in arguments]

    assert main(["export", "--dir", str(tmp_path), *arguments]) == 2
    printed = capsys.readouterr()
    assert expected in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""


def test_a_file_that_cannot_be_written_is_one_line(
    make_recording: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(make_recording()), "-o", str(tmp_path / "no" / "x.har")]) == 3
    assert "No such file or directory" in capsys.readouterr().err


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_spans_are_sent_to_a_collector(
    make_recording: Make, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    receiver = Receiver()
    url = receiver.url if protocol == "http" else receiver.grpc_url
    monkeypatch.setenv("TOKEN", "s3")
    asked = ["export", str(make_recording()), "--endpoint", url, "--protocol", protocol]

    assert main([*asked, "--header", "x-token: ${TOKEN}"]) == 0
    assert capsys.readouterr().out == f"{url}: 3 spans sent, 2 requests in 1 session\n"
    assert len(receiver.spans) == 3
    assert receiver.headers[0]["x-token"] == "s3"
    receiver.answer = lambda _, __: Answer(503, grpc.StatusCode.PERMISSION_DENIED, b"no")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.5")
    assert main(asked) == 3
    why = "HTTP 503: no" if protocol == "http" else "PERMISSION_DENIED: no"
    assert capsys.readouterr().err == (
        f"mcpspy: cannot send to {url}: {why} (is it a collector that accepts OTLP?)\n"
    )
    receiver.close()


def test_spans_that_the_collector_rejected_are_exit_code_3(
    make_recording: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    receiver = Receiver()
    partial = ExportTracePartialSuccess(rejected_spans=1, error_message="too old")
    body = ExportTraceServiceResponse(partial_success=partial).SerializeToString()
    receiver.answer = lambda _, __: Answer(body=body)

    assert main(["export", str(make_recording()), "--endpoint", receiver.url]) == 3
    assert f"{receiver.url}: 1 of 3 spans were rejected: too old" in capsys.readouterr().err
    receiver.close()


def test_without_the_sdk_the_extra_is_named(
    make_recording: Make, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "mcpspy.io.telemetry.sender", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry._logs", None)

    assert main(["export", str(make_recording()), "--endpoint", "http://127.0.0.1:9"]) == 3
    assert f"the OpenTelemetry SDK is not installed ({install_command('otel')})" in capsys.readouterr().err


def test_an_ended_session_is_followed_to_its_end(
    make_recording: Make, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config" / "mcpspy").mkdir(parents=True)
    receiver = Receiver()
    text = f'[telemetry]\nendpoint = "{receiver.url}"\nsignals = ["traces"]\nheaders = {{ x-token = "${{TOKEN}}" }}\n'
    (tmp_path / "config" / "mcpspy" / "mcpspy.toml").write_text(text, encoding="utf-8")
    monkeypatch.setenv("TOKEN", "s3")

    assert main(["export", "--follow", str(make_recording())]) == 0
    assert capsys.readouterr().out == f"{receiver.url}: sent 3 traces\n"
    assert receiver.headers[0]["x-token"] == "s3"
    receiver.close()


def test_an_exporter_in_the_background_writes_its_errors_to_a_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    settings = tmp_path / "mcpspy.toml"
    settings.write_text("[telemetry]\nendpoint = 7\n", encoding="utf-8")
    for lines in (1, 2):
        assert main(["export", "--follow", "--background", "--config", str(settings)]) == 2
        (log,) = tmp_path.glob("state/**/log")
        found = log.read_text(encoding="utf-8").splitlines()
        assert len(found) == lines
        assert re.match(rf"\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\dZ {re.escape(str(settings))}: ", found[-1])
    log.write_bytes(b"x" * (export_telemetry.LONGEST_LOG + 1))
    main(["export", "--follow", "--background", "--config", str(settings)])
    assert len(log.read_text(encoding="utf-8").splitlines()) == 1
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("options", [["--endpoint", "http://h"], ["--background"]])
def test_a_state_folder_that_cannot_be_written_is_one_line(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (file := tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("XDG_STATE_HOME", str(file))

    assert main(["export", "--follow", *options]) == 3
    printed = capsys.readouterr().err
    assert printed.startswith(f"mcpspy: cannot write to {file}")
    assert printed.count("\n") == 1


def test_a_collector_that_is_not_there_is_one_line(
    make_recording: Make,
    capsys: pytest.CaptureFixture[str],
    refusing_port: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.5")
    assert main(["export", str(make_recording()), "--endpoint", f"http://127.0.0.1:{refusing_port}"]) == 3
    printed = capsys.readouterr().err
    assert printed.startswith("mcpspy: cannot send to http://127.0.0.1:")
    assert printed.count("\n") == 1


def test_an_export_that_names_no_format_is_a_page_next_to_the_recording(
    make_recording: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = make_recording()
    page = path.with_suffix(".html")
    assert main(["export", str(path)]) == 0
    assert capsys.readouterr().out.startswith(f"{page}: ")
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert main(["export", str(path)]) == 2
    assert f"{page}: file exists (use --output FILE)" in capsys.readouterr().err
    assert main(["export", str(path), str(make_recording(name="other"))]) == 2
    assert "export: missing --format" in capsys.readouterr().err
