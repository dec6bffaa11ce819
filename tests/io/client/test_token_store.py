"""Tokens in files and in a keyring."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked

from mcpspy.errors import CannotStart
from mcpspy.io.client.token_store import TokenStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

URL = "https://example.com/mcp"
ENTRY = {
    "server": {"issuer": "https://a.example"},
    "client": {"client_id": "c"},
    "token": {"access_token": "secret"},
}


class Memory(KeyringBackend):
    """A keyring in memory, which can be locked."""

    priority = 5

    def __init__(self) -> None:
        self.passwords: dict[tuple[str, str], str] = {}
        self.is_locked = False

    def get_password(self, service: str, username: str) -> str | None:
        if self.is_locked:
            raise KeyringLocked("it is locked")
        return self.passwords.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        if self.is_locked:
            raise KeyringLocked("it is locked")
        self.passwords[service, username] = password


@pytest.fixture
def memory() -> Iterator[Memory]:
    before, memory = keyring.get_keyring(), Memory()
    keyring.set_keyring(memory)
    yield memory
    keyring.set_keyring(before)


def stored(folder: Path) -> str:
    (file,) = folder.glob("*.json")
    return file.read_text(encoding="utf-8")


def test_without_a_keyring_secrets_are_in_a_file_of_the_user_alone(tmp_path: Path) -> None:
    TokenStore(URL, tmp_path / "oauth").save(ENTRY)
    assert TokenStore(URL, tmp_path / "oauth").load() == {"resource": URL, **ENTRY}
    assert (tmp_path / "oauth").stat().st_mode & 0o777 == 0o700
    assert TokenStore("https://example.com/other", tmp_path / "oauth").load() == {}


def test_the_name_of_a_file_contains_no_secret_of_the_url(tmp_path: Path) -> None:
    url = "https://ada:hunter2@example.com/mcp?api_key=tiger99"
    TokenStore(url, tmp_path).save(ENTRY)
    (file,) = tmp_path.glob("*.json")
    assert file.name.startswith("example.com-mcp-")
    assert file.stat().st_mode & 0o777 == 0o600
    assert TokenStore(url, tmp_path).load() == {"resource": url, **ENTRY}
    assert TokenStore("https://example.com/mcp", tmp_path).load() == {}


def test_a_keyring_takes_the_secrets(memory: Memory, tmp_path: Path) -> None:
    TokenStore(URL, tmp_path).save(ENTRY)
    assert "secret" not in stored(tmp_path)
    assert list(memory.passwords) == [("mcpspy", URL)]
    assert TokenStore(URL, tmp_path).load() == {"resource": URL, **ENTRY}


def test_a_keyring_that_is_locked_is_replaced_by_the_file(
    memory: Memory, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    TokenStore(URL, tmp_path).save(ENTRY)
    memory.is_locked = True
    assert "token" not in TokenStore(URL, tmp_path).load()
    assert "the keyring cannot be read: it is locked; sign in again" in capfd.readouterr().err
    TokenStore(URL, tmp_path).save(ENTRY)
    assert json.loads(stored(tmp_path))["token"] == ENTRY["token"]


@pytest.mark.parametrize("damage", ["", "{", "[]"])
def test_a_damaged_file_counts_as_none(damage: str, tmp_path: Path) -> None:
    store = TokenStore(URL, tmp_path)
    store.save(ENTRY)
    (file,) = tmp_path.glob("*.json")
    file.write_text(damage, encoding="utf-8")
    assert store.load() == {}


async def sign_in_alone(store: TokenStore) -> None:
    async with store.exclusive():
        pass


def test_a_folder_that_cannot_be_used_is_reported_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    store = TokenStore(URL, tmp_path / "file" / "oauth")
    with pytest.raises(CannotStart, match=r"/file/oauth: Not a directory \(check the permissions\)"):
        store.save(ENTRY)

    store = TokenStore(URL, tmp_path)
    store.save(ENTRY)
    (file,) = tmp_path.glob("*.json")
    file.with_suffix(".lock").mkdir()
    with pytest.raises(CannotStart, match=r"\.lock: Is a directory \(check the permissions\)"):
        asyncio.run(sign_in_alone(store))
