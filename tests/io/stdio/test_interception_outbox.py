"""The outbox: all of it is recorded, and then sent in order to each receiver."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcpspy.io.stdio import interception
from mcpspy.io.stdio.interception import Outbox

if TYPE_CHECKING:
    from collections.abc import Iterable


class Log:
    """A recording and two peers that log the order of writes."""

    def __init__(self) -> None:
        self.got: list[tuple[str, bytes]] = []

    def write(self, lines: bytes | Iterable[bytes]) -> None:
        self.got.append(("recorded", lines if isinstance(lines, bytes) else b"".join(lines)))

    def server(self, data: bytes) -> None:
        self.got.append(("server", data))

    def client(self, data: bytes) -> None:
        self.got.append(("client", data))


@pytest.mark.parametrize("flat", [0, 1 << 20], ids=["in pieces", "joined"])
def test_all_is_recorded_before_anything_is_sent(flat: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interception, "JOIN_LIMIT", flat)
    log = Log()
    outbox = Outbox()
    outbox.entries += [b"1", b"\n", b"2\n"]
    outbox.sent += [(log.server, b"a"), (log.client, b"b"), (log.server, b"c")]
    outbox.send(log)  # type: ignore[arg-type]
    to_server = [("server", b"ac")] if flat else [("server", b"a"), ("server", b"c")]
    assert log.got == [("recorded", b"1\n2\n"), *to_server, ("client", b"b")]


def test_without_entries_nothing_is_written() -> None:
    log = Log()
    only = Outbox()
    only.sent.append((log.client, b"x"))
    only.send(log)  # type: ignore[arg-type]
    assert log.got == [("client", b"x")]
