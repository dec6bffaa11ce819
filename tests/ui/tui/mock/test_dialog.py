"""The dialog before a mock, and the window for clients."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest
from textual.widgets import Input

from mcpspy.io.recording.reader import read_header_of
from mcpspy.io.settings import state_folder
from mcpspy.ui.model.mock_control import MockForm, remember_mock, remembered_mock
from mcpspy.ui.tui.mock.dialog import ServeDialog
from mcpspy.ui.tui.sessions.screen import SessionsScreen
from mcpspy.ui.tui.sessions.session_list import SessionList
from tests.ui.tui.conftest import Opened, Screen
from tests.ui.tui.mock.conftest import Mocking

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(autouse=True)
def _home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)


async def dialog(screen: Screen) -> None:
    await screen.shows("1 session")
    await screen.press("<")
    await screen.shows("Serve r in place of its server")


async def test_the_recorded_command_is_proposed_and_escape_cancels(opened: Opened, recording: Path) -> None:
    async with opened() as screen:
        await dialog(screen)
        await screen.shows("no-such-server")
        await screen.press("escape")
        await screen.until(lambda: isinstance(screen.app.screen, SessionsScreen))


async def test_an_open_session_is_served_too(opened: Opened, recording: Path) -> None:
    async with opened(recording) as screen:
        await screen.press("<")
        await screen.shows("Serve r in place of its server")


@pytest.mark.parametrize("port", ["", "x", "65536", "-1"])
async def test_an_invalid_port_is_reported(port: str, opened: Opened, recording: Path) -> None:
    async with opened() as screen:
        await dialog(screen)
        screen.app.screen.query_one("#port", Input).value = port
        await screen.press("enter")
        await screen.shows("not a number from 0 to 65535")
        assert isinstance(screen.app.screen, ServeDialog)


async def test_a_port_in_use_is_reported_and_another_one_is_taken(opened: Opened, recording: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        async with opened() as screen:
            await dialog(screen)
            screen.app.screen.query_one("#port", Input).value = str(taken.getsockname()[1])
            await screen.press("enter")
            await screen.shows("Address already in use")
            screen.app.screen.query_one("#port", Input).value = "0"
            await screen.press("enter")
            await screen.shows("match exact")


async def test_the_values_are_remembered_per_server(opened: Opened, recording: Path) -> None:
    async with opened() as screen:
        await dialog(screen)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = str(free.getsockname()[1])
        screen.app.screen.query_one("#port", Input).value = port
        screen.app.screen.query_one("#server", Input).value = "node b.js"
        await screen.press("enter")
        await screen.shows("match exact")
    async with opened(recording) as screen:
        await screen.press("<")
        await screen.shows("Serve r in place of its server")
        fields = screen.app.screen.query(Input)
        assert [each.value for each in fields] == [port, "node b.js"]


async def test_a_real_server_with_a_secret_is_not_remembered(opened: Opened, recording: Path) -> None:
    header = read_header_of(recording)
    assert header is not None
    remember_mock(
        header, MockForm("8809", "node b.js --api-key sk-ant-api03-0123456789abcdef0123456789abcdef")
    )
    assert remembered_mock(header) == MockForm("8809", "no-such-server")
    remember_mock(header, MockForm("8809", ""))
    assert remembered_mock(header) == MockForm("8809", "")  # The user wants none.


@pytest.fixture
def _empty(recording: Path) -> None:
    recording.write_bytes(recording.read_bytes().split(b"\n")[0] + b"\n")


@pytest.mark.usefixtures("_empty")
async def test_a_recording_that_cannot_be_served_is_reported(opened: Opened) -> None:
    async with opened() as screen:
        await screen.until(lambda: screen.app.screen.query_one(SessionList).count)
        await screen.press("<")
        await screen.shows("Serve r in place of its server")
        await screen.press("enter")
        await screen.shows("contains no requests")


async def test_redacted_values_of_the_real_server_have_to_be_filled_in(
    opened: Opened, recording: Path
) -> None:
    async with opened() as screen:
        await dialog(screen)
        screen.app.screen.query_one("#server", Input).value = "server --token [redacted:12345678]"
        await screen.press("enter")
        await screen.shows("fill in the redacted values")


async def test_the_ways_to_connect_are_shown_and_copied(mocking: Mocking) -> None:
    async with mocking() as screen:
        await screen.press("c")
        await screen.shows("Connect a client", "bridge --no-record --upstream", '"mcpServers"')
        mock = screen.mock.mock
        for key, copied in (("y", mock.url), ("Y", mock.shown_command()), ("x", mock.snippet())):
            await screen.press(key)
            assert screen.app.clipboard == copied
        await screen.shows("copied the entry")
        await screen.press("escape")
        assert screen.app.screen is screen.mock


async def test_a_host_has_the_mock_until_it_ends(mocking: Mocking, tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"
    before = '{"mcpServers": {"a": {"command": "x"}}}\n'
    config.write_text(before)
    async with mocking() as screen:
        await screen.press("c", "h", *"nohost", "enter")
        await screen.shows("no such host or file")
        await screen.press("escape", "h", *str(config), "enter")
        await screen.shows("restart the host")
        servers = json.loads(config.read_text())["mcpServers"]
        assert servers["mock-r"]["args"][-1] == screen.mock.mock.url
        await screen.press("escape")
        await screen.shows("entered: mock-r in")
        await screen.press("q")
        await screen.until(lambda: isinstance(screen.app.screen, SessionsScreen))
        await screen.until(lambda: config.read_text() == before)
    assert not os.listdir(state_folder("entries"))


async def test_an_entry_is_removed_by_the_same_key(mocking: Mocking, tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"
    config.write_text("{}\n")
    async with mocking() as screen:
        await screen.press("c", "h", *str(config), "enter")
        await screen.shows("restart the host")
        await screen.press("h")
        await screen.shows("entry removed")
        assert config.read_text() == "{}\n"
