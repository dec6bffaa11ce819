"""Fixtures of all tests: a reader of recordings that shares no code with mcpspy."""

from __future__ import annotations

import atexit
import gc
import os
import re
import shutil
import signal
import socket
import sys
import tempfile
from base64 import b64decode
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import settings

from tests.strict import strict_json

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

# Tests time nothing: an example may take long on a machine that does something else.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# With this variable, each worker compiles all tests, and each command of a test the modules that it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# What a test saves without a folder must not come among the sessions of the person who runs it.
_DATA = tempfile.mkdtemp(prefix="mcpspy-tests-")
atexit.register(shutil.rmtree, _DATA, ignore_errors=True)
os.environ["XDG_DATA_HOME"] = _DATA
os.environ.pop("MCPSPY_DIR", None)

# Child processes would inherit that `nohup` and a shell's `&` ignore these signals; some tests need them.
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without the garbage collector, and let it skip the 20,000 tests later: an eighth of the collection."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return the number of processes for `-n auto`: four for two cores.

    Tests wait for other processes and for time: three processes used 1,900 s of CPU time in 1,319 s on two cores.
    """
    return max(1, (os.cpu_count() or 1) * 2)


FIRST = (
    "tests/e2e/test_telemetry",
    "tests/e2e/test_benign",
    "tests/io/stdio/test_run",
    "tests/ui/pytest_plugin",
    "tests/e2e/test_messages",
    "tests/core/redact/test_contract",
    "tests/io/http/test_bounds",
    "tests/test_examples",
    "tests/e2e/test_http",
    "tests/e2e/test_mcp",
    "tests/ui/cli/test_workers",
    "tests/ui/tui/test_random_events",
    "tests/core/redact/test_redactor",
    "tests/io/http/test_exchange",
    "tests/io/lake/test_filter",
    "tests/core/mock/test_selector",
    "tests/ui/scripts",
    "tests/e2e",
    "tests/io",
    "tests/ui",
)
"""The files and folders that take longest. The order of files is that in which the processes of pytest-xdist take them."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest, so that no process works on one of them when the others have ended."""
    items.sort(key=_place)


def _place(item: pytest.Item) -> int:
    return next((at for at, start in enumerate(FIRST) if item.nodeid.startswith(start)), len(FIRST))


_FRAME = re.compile(
    rb'\{"t":\d+\.\d{6},("from":"(?P<side>client|server)"|"note":"(?P<note>stderr)"),'
    rb'("(by|to)":"mcpspy",)?("eol":"(?P<eol>|\\r\\n)",)?("why":"(?P<why>(?:[^"\\]|\\.)+)",)?"(?P<kind>msg|raw|b64|text)":'
)


class Entry(NamedTuple):
    """One line of a recording, read by the rules of format 1."""

    side: str
    note: str
    kind: str
    """The key of the payload: msg, raw, b64 or text; empty if there is none."""
    payload: bytes
    """The peer's own bytes, the line end included."""
    fields: dict[str, Any]
    """The line as JSON."""


def _entry(line: bytes) -> Entry:
    found = _FRAME.match(line)
    if found is None:
        fields = strict_json(line)
        return Entry("", fields.get("note", ""), "", b"", fields)
    kind = found["kind"].decode()
    fields = strict_json(line)
    assert line.endswith(b"}")
    payload = {
        "msg": lambda: line[found.end() : -1],
        "raw": lambda: str(fields["raw"]).encode(),
        "text": lambda: str(fields["text"]).encode(),
        "b64": lambda: b64decode(fields["b64"], validate=True),
    }[kind]()
    eol = {None: b"\n", b"": b"", b"\\r\\n": b"\r\n"}[found["eol"]]
    return Entry(
        (found["side"] or b"").decode(), (found["note"] or b"").decode(), kind, payload + eol, fields
    )


@pytest.fixture(scope="session")
def read_entries() -> Callable[[bytes], list[Entry]]:
    """Return a reader of the entries of all complete lines; it skips an incomplete last line."""
    return lambda data: [_entry(line) for line in data.split(b"\n")[:-1]]


@pytest.fixture(scope="session", autouse=True)
def _runtime() -> Iterator[None]:
    """Separate the sockets of tests from the user's own: many tests kill sessions, which leaves sockets behind."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(prefix="mcpspy-") as folder:
        patch.setenv("MCPSPY_RUNTIME", folder)
        yield


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Use a separate folder for control sockets in this test; its path is short, as sockets require."""
    folder = Path(tempfile.mkdtemp(prefix="mcpspy-", dir="/tmp" if Path("/tmp").is_dir() else None))
    monkeypatch.setenv("MCPSPY_RUNTIME", str(folder))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def refusing_port() -> Iterator[int]:
    """A port of 127.0.0.1 that refuses connections: it is taken, and no one listens. A free one may become a server's."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]
