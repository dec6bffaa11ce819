"""The session that a word means, by its origin."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpspy.errors import UsageError
from mcpspy.io.recording.lookup import find
from tests.io.files import EXIT, frame, note, write

CALL = frame(0.1, "client", {"jsonrpc": "2.0", "id": 1, "method": "ping"})


def session(folder: Path, id: str, day: int, **header: object) -> Path:  # noqa: A002
    path = folder / f"{id}.jsonl"
    write(path, EXIT, id=id, started=f"2026-01-{day:02}T10:00:00.000Z", **{"name": "pricer", **header})
    return path


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """Return the session of a host that is older than those of all other origins."""
    for day, origin in enumerate(("replay", "mock", "call", "doctor", "demo", "pytest", "import"), 2):
        session(tmp_path, f"{day:08}", day, origin=origin)
    return session(tmp_path, "aaaa0001", 1)


@pytest.mark.parametrize("which", ["last", "pricer"])
def test_a_name_and_last_mean_the_session_of_a_host(host: Path, which: str) -> None:
    assert find(which, str(host.parent)) == host


@pytest.mark.parametrize("which", ["last", "pricer"])
def test_without_a_session_of_a_host_the_newest_of_another_client_is_meant(host: Path, which: str) -> None:
    host.unlink()
    assert find(which, str(host.parent)).stem == "00000008", "imported"
    for name in ("00000008", "00000007"):
        (host.parent / f"{name}.jsonl").unlink()
    assert find(which, str(host.parent)).stem == "00000006", "the demo"


@pytest.mark.parametrize("which", ["last", "pricer"])
def test_a_session_of_mcpspy_itself_is_never_meant_by_a_name(tmp_path: Path, which: str) -> None:
    path = session(tmp_path, "ab12cd34", 1, origin="replay")
    with pytest.raises(UsageError) as caught:
        find(which, str(tmp_path))
    assert str(caught.value) == (
        f"{which}: no session of a host, only 1 session of mcpspy itself (replay) "
        "(use its id ab12cd34, or origin:replay; mcpspy ls lists the sessions)"
    )
    assert find("ab12cd34", str(tmp_path)) == find("ab", str(tmp_path)) == path


@pytest.mark.parametrize(
    ("which", "stem"),
    [
        ("origin:replay", "00000002"),
        ("origin:host", "aaaa0001"),
        ("pricer origin:demo", "00000006"),
        ("-origin:import -origin:pytest", "00000006"),
    ],
)
def test_a_filter_with_an_origin_means_the_newest_session_that_matches(
    host: Path, which: str, stem: str
) -> None:
    assert find(which, str(host.parent)).stem == stem


@pytest.mark.parametrize(
    ("which", "error"),
    [
        ("origin:replai", 'SESSION, character 8: unknown origin "replai": did you mean replay?'),
        (
            "prices origin:demo",
            'prices origin:demo: no session matches. Nothing contains "prices": did you mean pricer?',
        ),
        ("prices", "prices: no such file or session (did you mean pricer?)"),
    ],
)
def test_a_word_that_means_no_session_is_an_error(host: Path, which: str, error: str) -> None:
    with pytest.raises(UsageError) as caught:
        find(which, str(host.parent))
    assert str(caught.value).startswith(error)


@pytest.mark.parametrize(
    ("header", "lines", "origin"),
    [
        ({"imported": {"from": "har"}}, (), "import"),
        ({"command": ["python", "-m", "mcpspy.ui.demo.weather"]}, (), "demo"),
        ({"transport": "http"}, (CALL, note(0.2, "mock", did="missed")), "mock"),
        ({"origin": "host"}, (CALL,), "host"),
        ({}, (CALL,), "host"),
        ({"origin": "tomorrow", "imported": {"from": "har"}}, (), "tomorrow"),
    ],
)
def test_an_older_recording_has_the_origin_that_its_content_shows(
    tmp_path: Path, header: dict[str, object], lines: tuple[bytes, ...], origin: str
) -> None:
    from mcpspy.io.recording.reader import read_header_of, summarize

    path = tmp_path / "a.jsonl"
    write(path, *lines, EXIT, **header)
    assert summarize(path, read_header_of(path)).header.origin == origin
