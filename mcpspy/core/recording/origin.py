"""The origins of sessions: what made a recording (docs/format.md, key `origin` of the header)."""

from __future__ import annotations

HOST, DEMO, PYTEST, IMPORT = "host", "demo", "pytest", "import"
REPLAY, CALL, DOCTOR, MOCK = "replay", "call", "doctor", "mock"

ORIGINS = (HOST, REPLAY, CALL, DOCTOR, PYTEST, IMPORT, MOCK, DEMO)

OWN = frozenset({REPLAY, CALL, DOCTOR, MOCK})
"""Origins of sessions in which mcpspy itself was the client or the server.

No name and no `last` means one of them: a replay under the name of its server would be the baseline of the next replay,
and a mock would serve what a mock has answered.
"""

CLIENTS = frozenset({REPLAY, CALL, DOCTOR})
"""Origins of sessions in which mcpspy itself was the client. It ends a session when it is done."""


def preferred(origin: str) -> int:
    """Return the rank of an origin among sessions of one name: a host's, another client's, 0 for mcpspy's own."""
    return 2 if origin == HOST else 0 if origin in OWN else 1
