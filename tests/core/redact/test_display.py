"""Command lines and URLs that mcpspy prints contain no secret."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.core.redact.config import RedactionRules
from mcpspy.core.redact.display import redacted_command, redacted_text, redacted_url
from mcpspy.core.redact.redactor import Redactor

COMMANDS = [
    "npx -y server --token abc --url https://u:pw9@h/mcp?key=abc&x=1",
    "docker run -e API_KEY=abc -e DB=postgres://u:pw9@h/db image",
    "mcp-remote https://h/sse?api_key=abc --header Authorization:abc123def",
    "s ${BASE:-https://u:pw9@h}/mcp --password ${PW:-hunter2} --limit ${LIMIT:-10}",
]


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_line_is_shown_as_the_recording_has_it(line: str) -> None:
    recorded = Redactor(b"key").header({"command": line.split()})["command"]
    shown = redacted_command(line.split())

    assert isinstance(recorded, list)
    tagged = [word.replace("[redacted]", "") for word in shown]
    assert [_untagged(str(word)) for word in recorded] == tagged
    assert any("[redacted]" in word for word in shown)


def _untagged(word: str) -> str:
    while (at := word.find("[redacted:")) >= 0:
        word = word[:at] + word[at + len("[redacted:01234567]") :]
    return word


def test_a_variable_with_a_default_is_shown_whole() -> None:
    assert redacted_url("${API_BASE_URL:-https://api.example.com}/mcp") == (
        "${API_BASE_URL:-https://api.example.com}/mcp"
    )


def test_parts_of_a_path_that_look_random_are_hidden() -> None:
    assert redacted_url("https://h/s/Zm9vYmFyMTIzNDU2Nzg5/mcp") == "https://h/s/[redacted]/mcp"


def test_rules_of_the_user_apply() -> None:
    rules = RedactionRules(keys=["pin"], values={"X": "swordfish"})

    assert redacted_command(["s", "--pin", "1234", "swordfish"], rules) == [
        "s",
        "--pin",
        "[redacted]",
        "[redacted]",
    ]
    assert redacted_url("http://h/?pin=1234", rules) == "http://h/?pin=[redacted]"
    assert redacted_url("no swordfish", rules) == "no [redacted]"


def test_a_text_does_not_repeat_the_secrets_of_the_command_line() -> None:
    argv = ["send", "--token", "abcd", "--pass=ab", "http://u:pw99@h/"]

    assert redacted_text("abcd: ab, pw99", argv) == "[redacted]: ab, [redacted]"


def test_placeholders_of_a_recording_stay() -> None:
    words = [
        "s",
        "--token",
        "[redacted:01234567]",
        "https://h/?key=[redacted:01234567]",
        "--x=http://u:[redacted]@h",
    ]

    assert redacted_command(words) == words


@given(st.text(max_size=80), st.sampled_from(COMMANDS))
def test_text_that_was_redacted_does_not_change_again(text: str, line: str) -> None:
    shown = redacted_text(f"{text} {line}")

    assert redacted_text(shown) == shown


@given(st.text(alphabet=st.characters(exclude_characters=":/@=", codec=None), max_size=80))
def test_text_without_urls_and_settings_stays(text: str) -> None:
    assert redacted_text(f"é {text}") == f"é {text}"


def test_bytes_of_an_argument_that_are_not_utf_8_stay() -> None:
    assert redacted_text("cannot start \udcff: token=a1b2c3d4e5") == "cannot start \udcff: token=[redacted]"
