"""Only the page of this server gets data, and nothing can be changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.ui.web.serving import Served, served

DATA = (
    "/api/sessions",
    "/api/runs",
    "/api/events",
    "/api/s/x/rows",
    "/api/s/x/rows/1",
    "/api/s/x/rows/1/views",
    "/api/s/x/place",
    "/api/s/x/stats",
    "/api/s/x/timeline",
    "/api/s/run:last/rows",
    "/api/s/run:last/timeline",
)


@pytest.fixture
async def stranger(tmp_path: Path) -> AsyncIterator[Served]:
    async with served(tmp_path, is_signed_in=False) as server:
        yield server


@pytest.fixture
async def known(tmp_path: Path) -> AsyncIterator[Served]:
    async with served(tmp_path) as server:
        yield server


async def test_without_the_cookie_there_is_a_page_and_no_data(stranger: Served) -> None:
    assert await stranger.status("/") == 200
    assert [await stranger.status(path) for path in DATA] == [401] * len(DATA)


async def test_a_wrong_token_is_refused(stranger: Served) -> None:
    for token in ("", "x", stranger.token[:-1], f"{stranger.token}x", "\u00e9"):
        assert await stranger.status("/api/login", "POST", data=token) == 401
    assert await stranger.status("/api/sessions") == 401


async def test_the_token_buys_a_cookie_for_data_that_no_script_reads_and_no_other_site_sends(
    stranger: Served,
) -> None:
    response = await stranger.sign_in()

    (cookie,) = response.cookies.values()
    assert (cookie["path"], cookie["httponly"], cookie["samesite"]) == ("/api/", True, "Strict")
    assert stranger.token not in cookie.value
    assert await stranger.status("/api/sessions") == 200


FOREIGN = (
    {"Host": "evil.example"},
    {"Host": "evil.example:80"},
    {"Host": "127.0.0.1.evil.example"},
    {"Host": "192.168.0.7"},
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:1"},
    {"Origin": "http://localhost"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
)
"""DNS rebinding, pages of other sites, and pages of other servers on this machine."""


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
async def test_a_foreign_request_is_refused_with_and_without_the_cookie(
    headers: dict[str, str], known: Served
) -> None:
    assert await known.status("/api/sessions") == 200
    assert [await known.status(path, headers=headers) for path in DATA] == [403] * len(DATA)
    assert await known.status("/api/login", "POST", headers, known.token) == 403


async def test_a_link_from_another_site_opens_the_page(known: Served) -> None:
    assert await known.status("/s/x", headers={"Sec-Fetch-Site": "cross-site"}) == 200


async def test_the_own_origin_is_accepted(known: Served) -> None:
    assert await known.status("/api/sessions", headers={"Origin": known.origin}) == 200


async def test_nothing_can_be_changed(known: Served) -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        assert [await known.status(path, method) for path in DATA] == [405] * len(DATA)


async def test_no_path_is_read_from_a_request(known: Served, tmp_path: Path) -> None:
    outside = tmp_path.parent / "outside.jsonl"
    outside.write_text("{}\n", encoding="utf-8")

    for key in (
        "..%2Foutside",
        "..%2Foutside.jsonl",
        "%2Fetc%2Fpasswd",
        "last",
        str(outside).replace("/", "%2F"),
    ):
        assert await known.status(f"/api/s/{key}/rows") == 404


async def test_a_request_with_two_hosts_is_malformed(known: Served, caplog: pytest.LogCaptureFixture) -> None:
    host = known.origin.removeprefix("http://")
    reader, writer = await asyncio.open_connection(*host.split(":"))
    writer.write(f"GET / HTTP/1.1\r\nHost: {host}\r\nHost: other\r\n\r\n".encode())
    async with asyncio.timeout(30):
        assert (await reader.readline()).split(b" ")[1] == b"400"
        await reader.read()
    writer.close()
    assert caplog.records == []  # Python prints them on stderr.
