"""The server of an entry, without mcpspy."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpspy.core.hostconfig.layout import ConfigSyntax, EntryLayout
from mcpspy.core.hostconfig.original import OriginalServer, original
from mcpspy.core.hostconfig.servers import read, servers

MEMORY = OriginalServer(["npx", "-y", "memory"], "", {"KEY": "1"}, "", {})


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"command": "npx", "args": ["-y", "memory"], "env": {"KEY": "1", "N": 2}}, MEMORY),
        (
            {
                "command": "mcpspy",
                "args": ["run", "--name", "m", "--", "npx", "-y", "memory"],
                "env": {"KEY": "1", "MCPSPY_ORIGINAL": "x"},
            },
            MEMORY,
        ),
        ({"command": "a", "cwd": "/srv"}, OriginalServer(["a"], "/srv", {}, "", {})),
        (
            {"url": "http://a/mcp", "headers": {"X-Key": "k"}},
            OriginalServer([], "", {}, "http://a/mcp", {"X-Key": "k"}),
        ),
        (
            {
                "command": "mcpspy",
                "args": [
                    "bridge",
                    "--name",
                    "m",
                    "--upstream",
                    "http://a/mcp",
                    "--header-env",
                    "X-Key=MCPSPY_1",
                ],
                "env": {"MCPSPY_1": "k"},
            },
            OriginalServer([], "", {}, "http://a/mcp", {"X-Key": "k"}),
        ),
        ({}, None),
    ],
    ids=["command", "wrapped command", "folder", "url", "wrapped url", "invalid"],
)
def test_an_entry_has_its_original_server(entry: dict[str, Any], expected: OriginalServer | None) -> None:
    document = read(json.dumps({"mcpServers": {"m": entry}}), ConfigSyntax.JSON)
    (found,) = servers(document, ("mcpServers",), EntryLayout())

    assert original(found, EntryLayout()) == expected
