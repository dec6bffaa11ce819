"""Reading lockfiles."""

from __future__ import annotations

import pytest

from mcpspy.core.trust.lock import digest, read_lock, select
from mcpspy.errors import UsageError
from tests.core.trust.locks import lock_text


def test_a_digest_ignores_the_order_of_keys() -> None:
    assert digest({"a": 1, "b": [1, 2]}) == digest({"b": [1, 2], "a": 1})
    assert digest({"b": [1, 2]}) != digest({"b": [2, 1]})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("version = ", "not TOML"),
        ("version = 9", "not a lockfile of version 1"),
        (lock_text().replace("sha256:", "sha256:0"), "echo: the digest does not belong"),
        (lock_text('[servers.sample.policy]\nrate = 1'), "unknown key rate"),
        (lock_text('[servers.sample.policy]\nsampling = "no"'), "sampling: not an integer"),
        (lock_text("[servers.sample.policy]\nsampling = -1"), "not a number from 0"),
        (lock_text('[servers.sample.policy.arguments.echo]\ntype = "thing"'), "echo: not a JSON Schema"),
        (lock_text('[servers.sample.policy.arguments.echo]\n"$ref" = "http://127.0.0.1:9/a"'), "9/a is not fetched"),
        (lock_text().replace('"prompts"', '"greetings"'), "listed: greetings: not one of"),
        ("version = 1\n[servers]\nsample = 1", "servers: not a table of tables"),
        ("version = 1\nservers = []", "servers: not a table of tables"),
        ("version = 1\n[servers.sample]\ntools = [1]", "servers.sample.tools: not an array of tables"),
        (lock_text().replace('"name\\', '"title\\'), "tools.definition: name is missing"),
        ("version = 1\n[[servers.sample.tools]]\ndefinition = '[]'", "definition: not a JSON object in a string"),
        ("version = 1\n[servers.sample]\ncapabilities = '{'", "capabilities: not a JSON object in a string"),
        (lock_text("policy = 1", "").replace("\npolicy", "\n[servers.x]\npolicy"), "servers.x.policy: not a table"),
        (lock_text("[servers.sample.policy]\narguments = 1"), "policy.arguments: not a table of JSON Schemas"),
        (lock_text("[servers.sample.policy]\ndeny = [1]"), "policy.deny: not an array of strings"),
    ],
)  # fmt: skip
def test_an_invalid_lockfile_is_refused_with_its_place(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        read_lock(text, "mcp.lock")


def test_a_server_is_found_by_its_command_or_its_name() -> None:
    servers = read_lock(lock_text(), "mcp.lock")
    for names in ["python sample.py", "other"], ["other", "sample"]:
        assert select(servers, names, "mcp.lock") is servers["sample"]
    with pytest.raises(UsageError, match=r"no entry for other \(servers: sample"):
        select(servers, ["other"], "mcp.lock")
