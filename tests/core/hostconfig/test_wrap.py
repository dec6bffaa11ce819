"""Members of wrapped entries."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest

from mcpspy.core.hostconfig.edit import EditResult, ServersLocation, wrapped
from mcpspy.core.hostconfig.layout import STANDARD, ConfigSyntax
from mcpspy.core.hostconfig.wrap import WrapTarget
from mcpspy.io.hosts import HOSTS

JSON = ServersLocation(ConfigSyntax.JSON, ("mcpServers",), STANDARD)
CODEX = next(host.location for host in HOSTS if host.name == "codex")
CONTINUE = next(host.location for host in HOSTS if host.name == "continue")
HOW = WrapTarget(["/bin/mcpspy"])


def edited(entry: str, target: WrapTarget = HOW) -> EditResult:
    return wrapped(f'{{"mcpServers": {{"a": {entry}}}}}', JSON, ["a"], target)


def made(entry: str, target: WrapTarget = HOW) -> dict[str, Any]:
    found = edited(entry, target)
    assert found.left == {}
    entry_made: dict[str, Any] = json.loads(found.text)["mcpServers"]["a"]
    return entry_made


def test_a_command_runs_through_mcpspy_with_all_else_as_it_was() -> None:
    entry = made(
        '{"env": {"K": "v"}, "command": "npx", "args": ["-y"], "cwd": "/x", "disabled": true, "z": [1]}'
    )

    assert entry == {
        "env": {"K": "v"},
        "command": "/bin/mcpspy",
        "args": ["run", "--name", "a", "--", "npx", "-y"],
        "cwd": "/x",
        "disabled": True,
        "z": [1],
    }


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('["-y"]', '["run", "--name", "a", "--", "npx", "-y"]'),
        ("[]", '["run", "--name", "a", "--", "npx"]'),
        ('[\r\n\t"-y", // x\r\n]', '[\r\n\t"run", "--name", "a", "--", "npx",\r\n\t"-y", // x\r\n]'),
    ],
    ids=["a line", "empty", "lines"],
)
def test_arguments_are_laid_out_like_those_beside_them(before: str, after: str) -> None:
    assert edited(f'{{"command": "npx", "args": {before}}}').text == (
        f'{{"mcpServers": {{"a": {{"command": "/bin/mcpspy", "args": {after}}}}}}}'
    )


def test_a_program_of_several_words_and_options_come_first() -> None:
    entry = made('{"command": "npx"}', WrapTarget(["/bin/python", "-m", "mcpspy"], ["--dir", "/d"]))

    assert entry["command"] == "/bin/python"
    assert entry["args"] == ["-m", "mcpspy", "run", "--name=a", "--dir", "/d", "--", "npx"]


def test_variables_of_the_host_are_data() -> None:
    entry = made('{"command": "${env:NODE}", "args": ["${workspaceFolder}/x", "${input:key}"]}')

    assert entry["args"][-3:] == ["${env:NODE}", "${workspaceFolder}/x", "${input:key}"]


def test_a_url_goes_through_a_bridge_and_its_headers_through_the_environment() -> None:
    entry = made(
        '{"type": "http", "url": "https://x.org/mcp", "headers": {"Authorization": "Bearer ${input:t}", "X-Y": "1"}}'
    )

    assert (entry["type"], entry["command"]) == ("stdio", "/bin/mcpspy")
    assert entry["args"] == [
        *("bridge", "--name", "a", "--upstream", "https://x.org/mcp"),
        *(
            "--header-env",
            "Authorization=MCPSPY_HEADER_AUTHORIZATION",
            "--header-env",
            "X-Y=MCPSPY_HEADER_X_Y",
        ),
    ]
    assert entry["env"]["MCPSPY_HEADER_AUTHORIZATION"] == "Bearer ${input:t}"
    assert entry["env"]["MCPSPY_HEADER_X_Y"] == "1"
    assert entry.keys() == {"type", "command", "args", "env"}


@pytest.mark.parametrize("member", ["type", "transport"])
def test_a_server_of_the_old_transport_is_reported(member: str) -> None:
    assert made(f'{{"{member}": "sse", "url": "http://localhost/x"}}')["args"][-1] == "--sse"
    assert "--sse" not in made(f'{{"{member}": "http", "url": "http://localhost/sse"}}')["args"]


def test_headers_whose_names_differ_only_in_their_marks_have_different_variables() -> None:
    entry = made('{"url": "http://localhost/", "headers": {"X-A": "1", "X_A": "2", "x-a": "3"}}')

    assert entry["args"][6::2] == [
        "X-A=MCPSPY_HEADER_X_A",
        "X_A=MCPSPY_HEADER_X_A_2",
        "x-a=MCPSPY_HEADER_X_A_3",
    ]
    assert [entry["env"][f"MCPSPY_HEADER_X_A{end}"] for end in ("", "_2", "_3")] == ["1", "2", "3"]


@pytest.mark.parametrize(
    "url",
    ["https://x.org/mcp?key=secret", "https://${env:HOST}/mcp", "${input:url}", "https://{env:HOST}/mcp"],
)
def test_a_url_that_may_hold_a_secret_stands_in_the_environment(url: str) -> None:
    entry = made(json.dumps({"url": url}))

    assert entry["args"] == ["bridge", "--name", "a", "--upstream-env", "MCPSPY_UPSTREAM"]
    assert entry["env"]["MCPSPY_UPSTREAM"] == url


def test_variables_that_codex_reads_itself_are_passed_on() -> None:
    text = '[mcp_servers.a]\nurl = "https://x.org"\nbearer_token_env_var = "TOK"\nenv_http_headers = {"X-K" = "KEY"}\n'
    found = tomllib.loads(wrapped(text, CODEX, ["a"], HOW).text)["mcp_servers"]["a"]

    assert found["env_vars"] == ["KEY", "TOK"]
    assert found["args"][-4:] == ["--header-env", "X-K=KEY", "--bearer-env", "TOK"]
    assert not found.keys() & {"url", "bearer_token_env_var", "env_http_headers"}


@pytest.mark.parametrize(
    "entry",
    [
        '{"url": "https://mcp.linear.app/mcp"}',
        '{"url": "https://x.org/mcp", "headers": {"A": "1"}, "oauth": {"clientId": "x"}}',
        '{"url": "http://localhost/", "headersHelper": "get-token"}',
    ],
)
def test_a_server_to_which_the_host_may_log_in_is_left_alone_unless_insisted(entry: str) -> None:
    found = edited(entry)

    assert found.done == []
    assert "mcpspy http --upstream" in found.left["a"]
    assert "--bridge-oauth" in found.left["a"]
    assert "\n" not in found.left["a"]
    assert edited(entry, HOW._replace(insists=True)).done == ["a"]


@pytest.mark.parametrize(
    "entry",
    [
        '{"url": "http://localhost:3000/mcp"}',
        '{"url": "https://127.0.0.1:3000/mcp"}',
        '{"url": "http://192.168.0.2/mcp"}',
        '{"url": "https://x.org/mcp?key=1"}',
        '{"url": "https://x.org/mcp", "headers": {"X-Key": "1"}}',
    ],
)
def test_a_server_that_needs_no_login_is_wrapped(entry: str) -> None:
    assert edited(entry).done == ["a"]


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ('{"url": "ws://x.org"}', "its URL is not an HTTP URL"),
        ('{"url": "https://me:pass@x.org"}', "its URL is not an HTTP URL"),
        ('{"url": "http://localhost", "headers": {"A": 1}}', "its headers are not an object of strings"),
        ('{"url": "http://localhost", "headers": {"A=B": "1"}}', "A=B is not a valid name of a header"),
        ('{"url": "http://localhost", "headers": ["A"]}', "its headers are not an object of strings"),
        ('{"command": "x", "url": "http://localhost"}', "it has both a command and a URL"),
    ],
)
def test_a_server_that_cannot_be_bridged_is_left_alone_with_a_reason(entry: str, why: str) -> None:
    assert edited(entry).left == {"a": why}


def test_options_of_a_connection_that_the_bridge_has_not_are_a_reason() -> None:
    text = "mcpServers:\n- name: a\n  url: http://localhost/\n  requestOptions: {verifySsl: false, headers: {A: b}}\n"

    assert wrapped(text, CONTINUE, ["a"], HOW).left == {
        "a": "the bridge does not support requestOptions.verifySsl"
    }


def test_two_tables_of_headers_are_a_reason() -> None:
    text = '[mcp_servers.a]\nurl = "http://x"\n[mcp_servers.a.http_headers]\nA = "1"\n[mcp_servers.a.env_http_headers]\nB = "C"\n'

    assert "are tables (write one as" in wrapped(text, CODEX, ["a"], HOW).left["a"]


def test_a_plain_scalar_that_brackets_would_end_is_left_alone() -> None:
    text = "mcpServers:\n- name: a\n  command: ${{ secrets.X }}/bin\n  args: [b]\n- name: c\n  command: ${{ d }}\n  args:\n  - e\n"

    found = wrapped(text, CONTINUE, ["a", "c"], HOW)

    assert found.done == ["c"]
    assert "undo byte for byte" in found.left["a"]


ISOLATED = WrapTarget(["/bin/mcpspy"], isolated=["/bin/python", "-EP", "/bin/mcpspy"])


@pytest.mark.parametrize("variable", ["PYTHONHOME", "PYTHONPATH", "PYTHONVERBOSE"])
def test_variables_of_python_in_an_entry_are_for_its_server_only(variable: str) -> None:
    entry = made(f'{{"command": "python", "args": ["s.py"], "env": {{"{variable}": "x"}}}}', ISOLATED)

    assert entry == {
        "command": "/bin/python",
        "args": ["-EP", "/bin/mcpspy", "run", "--name", "a", "--", "python", "s.py"],
        "env": {variable: "x"},
    }


@pytest.mark.parametrize("env", ['{"PYTHONUNBUFFERED": "1"}', '{"PATH": "/bin"}', "{}"])
def test_other_variables_change_no_command(env: str) -> None:
    assert made(f'{{"command": "python", "env": {env}}}', ISOLATED)["command"] == "/bin/mcpspy"
