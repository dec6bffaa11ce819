"""Sessions between official SDKs, in every mode and revision: lint finds only what the specification supports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from recordings import findings, make
from tests.e2e.judgements import REAL_SERVERS, SDK_SESSIONS
from tests.e2e.tours import CLIENTS, EVERYTHING, PEER, Server, Tour, record

if TYPE_CHECKING:
    from pathlib import Path

OLDER = ("2024-11-05", "2025-03-26", "2025-06-18")
LEGACY, MODERN = "2025-11-25", "2026-07-28"

PYTHON_2 = ("python", str(PEER / "sdk_server.py"))
PYTHON_1 = (str(make.PEERS / "mcp1" / "bin" / "python"), str(PEER / "sdk1_server.py"))
TYPESCRIPT_2 = ("node", str(PEER / "ts_server.mjs"))
HTTP = ("--transport", "streamable-http", "--port", "{port}")
SSE = ("--transport", "sse", "--port", "{port}")

SERVERS = {
    server.name: server
    for server in (
        *(
            made
            for name, command in (("python-2", PYTHON_2), ("python-1", PYTHON_1))
            for made in (
                Server(name, command),
                Server(f"{name}-http", (*command, *HTTP), "http"),
                Server(f"{name}-stateless", (*command, *HTTP, "--stateless"), "http", asks=False),
                Server(f"{name}-json", (*command, *HTTP, "--json"), "http", asks=False),
                Server(f"{name}-sse", (*command, *SSE), "sse", "/sse"),
            )
        ),
        Server("typescript-2", TYPESCRIPT_2),
        Server("typescript-2-http", (*TYPESCRIPT_2, "--port", "{port}"), "http", asks=False),
        Server("typescript-2-json", (*TYPESCRIPT_2, "--port", "{port}", "--json"), "http", asks=False),
        Server("typescript-1", ("mcp-server-everything", "stdio"), calls=EVERYTHING),
        Server("typescript-1-http", ("mcp-server-everything", "streamableHttp"), "http", calls=EVERYTHING),
        Server("typescript-1-sse", ("mcp-server-everything", "sse"), "sse", "/sse", calls=EVERYTHING),
    )
}


def tours(server: Server) -> list[Tour]:
    """Return sessions of all clients: in 2025-11-25, half of them in an older revision, and in 2026-07-28."""
    number = list(SERVERS).index(server.name)
    found = []
    for at, client in enumerate(CLIENTS):
        modes = [LEGACY]
        if (number + at) % 2 == 0:
            modes.append(OLDER[(number + at) // 2 % len(OLDER)])
        if client.endswith("2") and server.transport != "sse":
            if server.name in ("python-1", "python-2-http", "typescript-1", "typescript-2-http"):
                modes.append("auto")
            if not server.name.startswith(("python-1", "typescript-1")):
                modes.append(MODERN)
        found += [Tour(client, server, mode) for mode in modes]
    return found


def test_there_are_more_than_100_sessions_with_every_client_server_transport_and_revision() -> None:
    every = [tour for server in SERVERS.values() for tour in tours(server)]

    assert len(every) > 100
    assert {tour.mode for tour in every} == {*OLDER, LEGACY, MODERN, "auto"}
    assert {tour.client for tour in every} == set(CLIENTS)
    assert {tour.server.name for tour in every} == set(SERVERS)


def test_the_page_of_expected_findings_has_the_tables_of_all_judgements() -> None:
    page = findings.PAGE.read_text(encoding="utf-8")

    assert f"<!-- sdk sessions -->\n{findings.sdk_table()}<!-- end" in page, "run recordings/findings.py"
    assert all(each.row in page for each in REAL_SERVERS), "run recordings/findings.py"
    assert {each.verdict for each in (*SDK_SESSIONS, *REAL_SERVERS)} <= {"right", "pedantic"}


@pytest.mark.parametrize("server", SERVERS.values(), ids=lambda server: server.name)
async def test_lint_finds_in_sessions_of_official_sdks_only_what_the_specification_supports(
    server: Server, tmp_path: Path
) -> None:
    sessions = await record(server, tours(server), tmp_path)

    assert len(sessions) == len(tours(server))
    for session in sessions:
        assert len(session.steps) > 10, f"{session.tour.name}: {session.error}"
        found = list(session.findings())
        assert {"DATA301", "DATA307"} <= {finding.code for finding in found}, session.tour.name
        assert [
            f"{session.tour.name}:{finding.place.line} {finding.code} {finding.about}: {finding.message}"
            for finding in found
            if not any(each.covers(finding.code, finding.about, session.tour.name) for each in SDK_SESSIONS)
        ] == []
