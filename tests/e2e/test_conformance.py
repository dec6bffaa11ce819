"""The public conformance suite has the same outcome through mcpspy as direct.

A selection, in bounded time; `python -m tests.e2e.conformance` runs everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.conformance import (
    AGENT,
    CLIENT,
    NOT_SERVED,
    RUNS,
    SERVER,
    Run,
    both_ways,
    differences,
    failures,
    running,
    suite,
    through,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    with both_ways(SERVER, tmp_path_factory.mktemp("ways")) as found:
        yield found


@pytest.mark.parametrize(("name", "passed"), [("server 0.2 2025-11-25", 65), ("server 0.2 2026-07-28", 140)])
def test_a_server_conforms_through_mcpspy_as_it_does_directly(
    name: str, passed: int, urls: tuple[str, str], tmp_path: Path
) -> None:
    run = next(run for run in RUNS if run.name == name)
    direct, proxied = (suite(run, url, tmp_path / str(number)) for number, url in enumerate(urls))

    assert differences(direct, proxied) == []
    checks = [check for scenario in proxied.values() for check in scenario]
    assert sum(check.endswith(": SUCCESS") for check in checks) >= passed


@pytest.mark.parametrize(
    ("scenario", "revision", "check"),
    [
        ("sse-retry", "2025-11-25", "client-sse-last-event-id"),
        ("auth/scope-step-up", "2025-11-25", "scope-step-up-escalation"),
    ],
)
def test_a_client_conforms_through_mcpspy(scenario: str, revision: str, check: str, tmp_path: Path) -> None:
    run = Run(scenario, "client", "conformance-alpha", ("--scenario", scenario, "--spec-version", revision))
    (checks,) = through(run, CLIENT, tmp_path).values()

    assert f"{check}: SUCCESS" in checks
    assert [each for each in checks if each.endswith(": FAILURE") and "timing" not in each] == []


@pytest.mark.parametrize(
    ("scenario", "revision", "check"),
    [
        ("server-initialize", "2025-11-25", "server-initialize"),
        ("http-header-validation", "2026-07-28", "sep-2243-server-accepts-whitespace-header-value"),
    ],
)
def test_the_server_for_agents_conforms(scenario: str, revision: str, check: str, tmp_path: Path) -> None:
    run = Run(scenario, "server", "conformance-alpha", ("--scenario", scenario, "--spec-version", revision))
    with running(AGENT, tmp_path) as url:
        outcome = suite(run, url, tmp_path / "agent")

    (checks,) = outcome.values()
    assert f"{check}: SUCCESS" in checks
    assert failures(outcome) == set()


def test_the_failed_checks_are_named_with_their_scenario() -> None:
    outcome = {
        "server-tools-call-audio": ["tools-call-audio: FAILURE", "wire-schema-valid: SUCCESS"],
        "server-server-sse-polling": ["server-sse-retry-field: WARNING"],
        "server-ping": ["ping: FAILURE", "wire-schema-valid: SKIPPED"],
    }
    failed = failures(outcome)

    assert failed - NOT_SERVED == {"server-ping: ping"}
    assert failed & NOT_SERVED == {
        "server-tools-call-audio: tools-call-audio",
        "server-server-sse-polling: server-sse-retry-field",
    }
