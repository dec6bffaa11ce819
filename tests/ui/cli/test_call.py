"""`mcpspy call` on a server that it starts."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from mcpspy.io.recording.catalog import sessions
from mcpspy.ui.cli import calling
from mcpspy.ui.cli.main import main

SERVER = """
import json, sys
TOOLS = [{"name": "forecast", "description": "The weather.", "inputSchema": {"type": "object",
  "properties": {"city": {"type": "string", "description": "Where."}, "days": {"type": "integer"}}, "required": ["city"]}}]
asked = None
for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params", {})
    if method == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "prompts": {}},
                  "serverInfo": {"name": "weather", "version": "1"}, "instructions": "Ask for a city."}
    elif method == "tools/list":
        result = {"tools": TOOLS}
    elif method == "prompts/list":
        result = {"prompts": [{"name": "greet", "arguments": [{"name": "who", "required": True}, {"name": "how"}]}]}
    elif method == "tools/call" and params["arguments"].get("city") == "ask":
        asked = message["id"]
        print(json.dumps({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {"message": "Which?",
            "requestedSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}}}), flush=True)
        continue
    elif method == "tools/call":
        text = open(sys.argv[1]).read() if len(sys.argv) > 1 else json.dumps(params["arguments"])
        result = {"content": [{"type": "text", "text": text}], "isError": params["arguments"].get("days") == 0}
    elif message.get("id") == "q":
        message["id"] = asked
        result = {"content": [{"type": "text", "text": json.dumps(message.get("result") or message["error"]["message"])}]}
    elif "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "unknown"}}), flush=True)
        continue
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "server.py").write_text(SERVER, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MCPSPY_DIR", str(tmp_path / "sessions"))
    return tmp_path


COMMAND = ["--", sys.executable, "server.py"]


def test_without_a_tool_it_prints_what_the_server_offers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["call", *COMMAND]) == 0

    assert capsys.readouterr().out.splitlines() == [
        "weather 1 · 2025-11-25",
        "Ask for a city.",
        "",
        "tools",
        "  forecast(city: string, days?: integer)",
        "      The weather.",
        "",
        "prompts",
        "  greet(who, how?)",
    ]


def test_the_offer_as_json_has_the_lists(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["call", "--format", "json", *COMMAND]) == 0

    offer = json.loads(capsys.readouterr().out)
    assert (offer["revision"], offer["tools"][0]["name"]) == ("2025-11-25", "forecast")


def test_arguments_have_the_types_of_the_schema_and_the_session_is_recorded(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    assert main(["call", "forecast", "city=01", "days=3", "-q", *COMMAND]) == 0

    assert '{"city": "01", "days": 3}' in capsys.readouterr().out
    (session,) = sessions(str(folder / "sessions"))
    assert session.header.origin == "call"
    assert session.exit is not None


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (["forecas"], 2, "call: forecas: the server has no such tool (did you mean forecast?)"),
        (
            ["forecast"],
            2,
            "missing city (string): Where. (use city=VALUE; the tool is forecast(city: string, days?: integer))",
        ),
        (["forecast", "city=a", "days=x"], 2, "call: forecast: days=x: not an integer"),
        (["forecast", "city=a", "dys=1"], 2, "call: forecast: dys: no such argument (did you mean days?"),
        (["--update"], 2, "call: --update is for saved calls"),
        (["@none"], 2, "no such file (save one with --save NAME)"),
        (["--all", "none"], 2, "--all none: No such file or directory"),
    ],
)
def test_a_mistake_is_one_line(
    words: list[str], code: int, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["call", *words, *COMMAND]) == code

    (line,) = capsys.readouterr().err.splitlines()
    assert problem in line


def test_a_command_line_without_a_server_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["call", "forecast"]) == 2
    assert "missing the server" in capsys.readouterr().err


def test_a_missing_argument_is_asked_for_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(calling, "is_interactive", lambda: True)
    monkeypatch.setattr(calling, "typed", lambda prompt: "Rome" if "city (string)" in prompt else "")

    assert main(["call", "forecast", "-q", *COMMAND]) == 0
    assert '{"city": "Rome"}' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        (["--elicit", "n=5"], '{"action": "accept", "content": {"n": 5}}'),
        (["--elicit", "decline"], '{"action": "decline"}'),
        ([], '"no elicitation/create here"'),
    ],
)
def test_a_question_of_the_server_is_answered_by_options(
    options: list[str], answer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["call", "forecast", "city=ask", "-q", *options, *COMMAND]) == 0
    assert answer in capsys.readouterr().out


def test_a_tool_error_and_an_error_response_are_findings(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["call", "forecast", "city=a", "days=0", *COMMAND]) == 1
    assert main(["call", "resources/read", "uri=x:1", "--format", "json", *COMMAND]) == 1
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["error"]["code"] == -32601


def test_quiet_prints_only_the_texts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["call", "forecast", "city=a", "-q", *COMMAND]) == 0
    assert capsys.readouterr().out == '{"city": "a"}\n'


def test_a_saved_call_is_a_test(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = folder / "text"
    text.write_text("sunny", encoding="utf-8")
    command = [*COMMAND, str(text)]
    assert main(["call", "forecast", "city=Rome", "--save", "rome", *command]) == 0
    assert main(["call", "forecast", "city=Rome", "--save", "rome", *command]) == 2  # It exists.
    assert main(["call", "@rome"]) == 0

    text.write_text("rain", encoding="utf-8")
    capsys.readouterr()
    assert main(["call", "@rome"]) == 1
    assert '"sunny" → "rain"' in capsys.readouterr().out
    assert main(["call", "--all", "tests/calls", "--format", "junit"]) == 1
    suites = ET.fromstring(capsys.readouterr().out)
    assert (suites.get("tests"), suites.get("failures")) == ("1", "1")

    assert main(["call", "@rome", "--update"]) == 0
    assert main(["call", "--all", "tests/calls"]) == 0


def _saved(**members: Any) -> None:
    document = {"command": [sys.executable, "server.py"], "tool": "forecast", **members}
    Path("saved.json").write_text(json.dumps(document), encoding="utf-8")


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"arguments": {"city": "a"}, "expect": {"contains": ['"city"']}}, 0),
        ({"arguments": {"city": "a"}, "expect": {"contains": ["rain"]}}, 1),
        ({"arguments": {"city": "a", "days": 0}}, 1),
        ({"arguments": {"city": "a", "days": 0}, "expect": {"isError": True}}, 0),
        ({"arguments": {"city": "a"}, "expect": {"isError": True}}, 1),
        ({"arguments": {"city": "a"}, "expect": {"result": {}}, "ignore": ["/result"]}, 0),
        (
            {
                "tool": "",
                "method": "resources/read",
                "expect": {"error": {"code": -32601, "message": "unknown"}},
            },
            0,
        ),
        ({"tool": "", "method": "resources/read"}, 1),
        ({"tool": ""}, 2),
        ({"argument": {}}, 2),
        ({"ignore": ["result"]}, 2),
    ],
    ids=str,
)
def test_a_file_may_be_written_by_hand(members: dict[str, Any], code: int) -> None:
    _saved(**members)
    assert main(["call", "@saved.json"]) == code


def test_a_server_that_does_not_start_fails_only_its_own_call(capsys: pytest.CaptureFixture[str]) -> None:
    _saved(command=["no-such-command"], arguments={"city": "a"})
    Path("more").mkdir()
    Path("saved.json").rename("more/first.json")
    _saved(arguments={"city": "a"})
    Path("saved.json").rename("more/second.json")

    assert main(["call", "--all", "more"]) == 1
    assert "no-such-command: not found on PATH" in capsys.readouterr().out


def test_a_call_with_a_secret_is_not_saved(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    token = "ghp_" + "x7Kq2Lm9Zt4Rw8Yp3Nv6Bc1Hd5Jf0Gs2Aa7W"
    assert main(["call", "forecast", f"city={token}", "--save", "secret", *COMMAND]) == 2
    assert "contains a secret" in capsys.readouterr().err
    assert not (folder / "tests").exists()
