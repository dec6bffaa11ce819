"""A server's command without the secrets in it."""

from __future__ import annotations

import pytest

from mcpspy.core.redact.command_line import command
from mcpspy.core.redact.config import RedactionRules


def redacted(line: str, rules: RedactionRules | None = None) -> str:
    return " ".join(command(line.split(), rules or RedactionRules(), lambda _: b"#", lambda *_: None))


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("s --token abc --x", "s --token # --x"),
        ("s --api-key=abc", "s --api-key=#"),
        ("s -password abc", "s -password #"),
        ("s --token --x", "s --token --x"),
        ("s --token", "s --token"),
        ("s --password 12345", "s --password #"),
        ("s --token-limit 10 --token 10", "s --token-limit 10 --token 10"),
        ("env API_KEY=abc TOKEN=x s", "env API_KEY=# TOKEN=# s"),
        ("docker run -e API_KEY=abc -e API_KEY", "docker run -e API_KEY=# -e API_KEY"),
        ("s --token ${TOKEN}", "s --token ${TOKEN}"),
        ("s --token ${TOKEN:-} -p ${PORT:-80}", "s --token ${TOKEN:-} -p ${PORT:-80}"),
        ("s --token ${TOKEN:-abc} --key=x", "s --token ${TOKEN:-#} --key=x"),
        ("s --api-key=${KEY:-<your-key>}", "s --api-key=${KEY:-<your-key>}"),
        ("s --api-key=${KEY:-abc}", "s --api-key=${KEY:-#}"),
        ("s https://h/mcp?token=abc&page=2", "s https://h/mcp?token=#&page=2"),
        ("s --url=x://u:p@1:2@h/a@b", "s --url=x://u:#@h/a@b"),
        ("s x://u:p1@h", "s x://u:#@h"),
        ("s --header Authorization:abc123def", "s --header Authorization:#"),
        ("curl -u ada:swordfish https://x", "curl -u ada:# https://x"),
        ("sudo /usr/bin/sshpass -p swordfish1 ssh h", "sudo /usr/bin/sshpass -p # ssh h"),
        ("docker run -p 8080:80 image", "docker run -p 8080:80 image"),
        ("docker login -u ada -p swordfish1", "docker login -u ada -p #"),
        ("redis-cli -a swordfish1", "redis-cli -a #"),
        ("tar -u ada:swordfish", "tar -u ada:swordfish"),
        ("s -H X-API-KEY:swordfish", "s -H X-API-KEY:#"),
        ("s ghp_Ab3dEf6hIj9kLm2nOp5qRs8t", "s #"),
    ],
)
def test_only_the_secrets_of_a_command_line_are_redacted(line: str, kept: str) -> None:
    assert redacted(line) == kept


def test_custom_rules_apply_too() -> None:
    assert (
        redacted("s --pin 1234 swordfish", RedactionRules(keys=["pin"], values={"X": "fish"}))
        == "s --pin # sword#"
    )


def test_the_position_of_each_secret_is_reported() -> None:
    reported: list[tuple[str, tuple[str, ...]]] = []
    command(
        ["s", "--token", "a b"],
        RedactionRules(),
        lambda _: b"#",
        lambda rule, place: reported.append((rule, place)),
    )
    assert reported == [("argv", ("command", "2"))]


def test_bytes_that_are_not_utf_8_stay() -> None:
    assert redacted("s --token=a \udcff") == "s --token=# \udcff"
