"""Placeholders where a server expects values."""

from __future__ import annotations

import pytest

from mcpspy.core.unfilled import MAX_NAME, MAX_NAMES, is_placeholder, unfilled

PLACEHOLDERS = [
    *(
        "${VAR}",
        "$VAR",
        "%VAR%",
        "$env:KEY",
        "{env:KEY}",
        "${input:key}",
        "${env:KEY}",
        "${VAR:-x}",
        "$HOME/data",
    ),
    *("{{API_KEY}}", "{{ api.key }}", "Bearer ${TOKEN}", "Bearer YOUR_TOKEN", "${workspaceFolder}/src"),
    *(
        "<YOUR_KEY>",
        "<your api key>",
        "<path>",
        "YOUR_API_KEY",
        "your-api-key-here",
        "your.email@example.com",
    ),
    *("changeme", "change-me", "REPLACE_WITH_YOUR_TOKEN", "insert-your-key-here", "paste-token-here"),
    *("xxx", "xxxxxxxx", "sk-xxxxxxxx", "xxxx-xxxx-xxxx", "sk-...", "ghp_your_token"),
    *("~/notes", "/path/to/allowed/files", "%USERPROFILE%\\notes", "https://your-domain.atlassian.net"),
]

VALUES = [
    *(
        "",
        "0",
        ":0",
        "~",
        "/usr/bin",
        "op://vault/item",
        "$ecret1",
        "p@$$w0rd",
        "100%",
        "%Y-%m-%d",
        "%F %T",
        "$P$G",
    ),
    *(
        "a<b",
        "<a href='x'>",
        "xterm-256color",
        "here",
        "there",
        '{"a":1}',
        "{{.Names}}",
        "{}",
        "() { echo; }",
    ),
    *("yourbase", "changeit", "static.1.your-server.de", "sk-abc123", "/home/x/here", "C.UTF-8", "us.utf-8"),
    *("fooxxx", "./...", "change", "replace", "https://example.com/your-page", "$(date)", "tmp.XXXXXX"),
    *(
        "/opt/homebrew/bin:~/bin:/usr/bin",
        "| /usr/bin/lesspipe %s",
        "-Dlog=${x} -Xmx1g",
        "%(asctime)s %(message)s",
    ),
    "\\[\\e]0;\\u@\\h\\a\\]${debian_chroot:+($debian_chroot)}\\u@\\h:\\w\\$ ",
]


@pytest.mark.parametrize("value", PLACEHOLDERS)
def test_a_value_that_no_program_could_use_is_a_placeholder(value: str) -> None:
    assert is_placeholder(value)


@pytest.mark.parametrize("value", VALUES)
def test_other_values_are_not_placeholders(value: str) -> None:
    assert not is_placeholder(value)


def test_variables_of_shells_and_of_npm_are_not_reported() -> None:
    names = ("PS1", "PROMPT_COMMAND", "_", "npm_lifecycle_script", "Path", "BASH_FUNC_which%%")
    assert unfilled(dict.fromkeys(names, "${x}"), []) == {}


def test_arguments_are_named_by_their_option_their_variable_or_their_position() -> None:
    command = [
        "docker",
        "run",
        "-e",
        "KEY=${KEY}",
        "--token=<TOKEN>",
        "--root",
        "~/x",
        "img",
        "${workspaceFolder}",
    ]
    assert unfilled({}, command) == {"arguments": ["KEY", "--token", "--root", "argument 8"]}


@pytest.mark.parametrize(
    "command",
    [
        ["sh", "-c", "$COMMAND"],
        ["/usr/bin/ssh", "host", "~/server"],
        ["npx", "x", "--header", "A:${AUTH}"],
        [],
    ],
)
def test_arguments_that_another_program_expands_are_not_reported(command: list[str]) -> None:
    assert unfilled({}, command) == {}


def test_the_number_and_the_length_of_names_are_limited() -> None:
    names = unfilled({f"{n}{'N' * 200}": "changeme" for n in range(100)}, [])["variables"]
    assert (len(names), {len(name) for name in names}) == (MAX_NAMES, {MAX_NAME})
