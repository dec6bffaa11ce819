"""Mistakes in configurations, on those of public issues, and none in correct ones."""

from __future__ import annotations

import tomllib
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mcpspy.core.hostconfig.jsonc import extensions
from mcpspy.core.hostconfig.layout import ConfigSyntax
from mcpspy.core.hostconfig.mistakes import Mistake, ignored, mistakes
from mcpspy.core.hostconfig.reading import BOM, CLAUDE_CODE, COMMENT, IGNORED, STRICT, TRAILING_COMMA
from mcpspy.core.hostconfig.shapes import MCP_SERVERS
from mcpspy.errors import UsageError
from mcpspy.io.hosts import HOSTS, Host
from mcpspy.io.hosts.table import PROJECT
from tests.core.hostconfig.configs import document, entries, smallest, text

CASES: list[dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("reported.toml").read_text(encoding="utf-8")
)["case"]

BY_NAME = {host.name: host for host in HOSTS}


def found(host: Host, source: str) -> list[Mistake]:
    return mistakes(source, host.location, host.product, host.reading)


def shown(mistake: Mistake) -> str:
    return f"{mistake.line} {mistake.place}: {mistake.text}; {mistake.fix}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['host']}-{case['issue']}")
def test_the_mistakes_of_a_reported_configuration_are_found(case: dict[str, Any]) -> None:
    host = BY_NAME[case["host"]]
    source = case["text"].removeprefix("\n")
    if "error" in case:
        with pytest.raises(UsageError) as error:
            found(host, source)
        assert case["error"] in str(error.value)
        return
    if "file" in case:
        place = next(place for place in IGNORED[host.name] if place.path == case["file"])
        warning = ignored(source, place, host.product)
        warnings = [warning] if warning is not None else []
    else:
        warnings = found(host, source)
    assert len(warnings) == len(case["warnings"]), [shown(warning) for warning in warnings]
    for warning, expected in zip(warnings, case["warnings"], strict=True):
        assert shown(warning).startswith(expected), shown(warning)


def test_at_least_forty_configurations_and_most_hosts_with_facts_are_in_the_table() -> None:
    assert sum("#" in case["issue"] for case in CASES) >= 40
    assert len({BY_NAME[case["host"]].product for case in CASES}) >= 11


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.name)
def test_a_correct_configuration_has_no_mistakes(host: Host) -> None:
    """Also one with a name, a path and a URL that look a little like a placeholder."""
    assert found(host, smallest(host.location)) == []
    if host.location.syntax is not ConfigSyntax.JSON:
        return
    import json

    layout = host.location.layout
    words = [
        "npx",
        "-y",
        "@scope/your-server",
        "C:\\Program Files\\x y.exe",
        "--",
        "$",
        "a=b=c",
        "<div>x</div> 1",
    ]
    entry: dict[str, Any] = {"type": layout.stdio} if layout.remote else {}
    entry[layout.command] = words if layout.is_list else words[0]
    if not layout.is_list:
        entry[layout.args] = words[1:]
    entry[layout.env] = {"KEY": "pa$$w0rd{x}$PWDX", "PATH_LIKE": "/srv/data", "N": "100%"}
    inside: Any = {"a b": entry, "": {"type": "http", layout.url[0]: "https://example.org/mcp?x={1}"}}
    for key in reversed(host.location.keys):
        inside = {"folder" if key == PROJECT else key: inside}
    home = host.location._replace(
        keys=tuple("folder" if key == PROJECT else key for key in host.location.keys)
    )
    source = json.dumps(inside, indent=2)
    assert mistakes(source, home, host.product, host.reading) == []


@pytest.mark.parametrize("seed", range(40))
def test_random_configurations_never_fail(seed: int) -> None:
    rng = Random(seed)
    host = rng.choice([host for host in HOSTS if PROJECT not in host.location.keys])
    source = text(rng, host.location, entries(rng, host.location, rng.randrange(1, 5)))

    for mistake in found(host, source):
        assert 1 <= mistake.line <= source.count("\n") + 1
        assert mistake.text
        assert mistake.fix
    assert document(host.location, [])


def test_extensions_of_json_are_found_outside_strings_only() -> None:
    assert extensions('{"a": "// , } /* \\" ,]"}') == {}
    assert extensions('\ufeff{"a": [1, /* x */ ], // y\n}') == {BOM: 0, TRAILING_COMMA: 9, COMMENT: 11}


def test_a_wrapped_entry_keeps_its_warnings_and_gets_no_new_ones() -> None:
    """Mcpspy's command line has the original one behind `--`, and the original entry in a variable."""
    source = (
        '{"mcpServers": {"a": {"command": "/opt/mcpspy", "args": ["run", "--name", "a", "--", "npx -y x"],'
        ' "env": {"MCPSPY_ORIGINAL": "\\"env\\": {\\"K\\": \\"$K_EY\\"}", "K": "$K_EY"}}}}'
    )

    warnings = mistakes(source, MCP_SERVERS, "Claude Code", CLAUDE_CODE)

    assert [warning.place for warning in warnings] == ["mcpServers.a.command", "mcpServers.a.env.K"]


def test_a_shell_replaces_the_variables_of_its_script() -> None:
    source = '{"mcpServers": {"a": {"command": "sh", "args": ["-c", "$HOME/bin/x"]}}}'

    assert mistakes(source, MCP_SERVERS, "Claude Code", CLAUDE_CODE) == []


def test_no_mistake_contains_a_value_that_may_be_a_secret() -> None:
    source = (
        '{"mcpServers": {"a": {"command": "npx -y x --key s3cret", "env": {"A": "“s3cret", "B": "s3cret"}}}}'
    )

    warnings = mistakes(source, MCP_SERVERS, "Claude Code", CLAUDE_CODE)

    assert len(warnings) == 2
    assert "s3cret" not in repr(warnings)


def test_every_fact_of_a_host_has_a_source() -> None:
    for host in HOSTS:
        how = host.reading
        assert bool(how.refuses) == bool(how.refuses_source)
        assert (how.variables is not None) == bool(how.variables_source)
        assert bool(how.literal_home) == bool(how.home_source)
    assert all(place.source.startswith("https://") for places in IGNORED.values() for place in places)
    assert IGNORED.keys() <= BY_NAME.keys()
    assert set(STRICT) == {BOM, COMMENT, TRAILING_COMMA}
