"""How a recorded server introduces itself, in every era.

Owns the choice between what was recorded and what the protocol says in its
place: a legacy server has not heard of `server/discover`, a modern one of
`initialize`, and a server answers a revision it lacks with one it has.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from mcpspy.core.mock import responses
from mcpspy.core.mock.interaction import Scene
from mcpspy.core.mock.recordings import Library
from mcpspy.core.protocol.message import Request


class Introduction(Struct, frozen=True, kw_only=True):
    """An answer to `initialize` or `server/discover`: recorded, made up, or an error."""

    scene: Scene | None = None
    result: dict[str, Any] | None = None
    code: int = 0
    why: str = ""
    data: Any = None
    revision: str | None = None
    """What `initialize` agrees on."""


def initialize(library: Library, version: object) -> Introduction:
    """Answer a client of any name that asks for this revision."""
    recorded = [pair for pair in library.introduced("initialize") if pair[0].is_answered]
    taken = [pair for pair in recorded if pair[0].is_taken]
    if taken:
        same = [pair for pair in taken if pair[0].revision == version]
        introduced, order = same[0] if same else taken[-1]
        return Introduction(scene=library.scene(order), revision=introduced.revision)
    if recorded:
        return Introduction(scene=library.scene(recorded[-1][1]))
    if library.is_modern:
        return Introduction(
            code=responses.UNSUPPORTED_VERSION,
            why="Unsupported protocol version",
            data={"supported": library.versions, "requested": version},
        )
    result = responses.initialized(library, version)
    return Introduction(result=result, revision=result["protocolVersion"])


def discover(library: Library) -> Introduction:
    """Answer the probe of a client of 2026-07-28."""
    recorded = [pair for pair in library.introduced("server/discover") if pair[0].is_answered]
    taken = [pair for pair in recorded if pair[0].is_taken]
    if taken or recorded:
        return Introduction(scene=library.scene((taken or recorded)[-1][1]))
    if library.is_modern:
        return Introduction(result=responses.discovered(library))
    return Introduction(code=responses.METHOD_NOT_FOUND, why="Method not found")


def is_enough(library: Library, message: Request) -> bool:
    """Whether what has been read of the recordings is enough to answer an introduction as all of it would."""
    if library.is_whole:
        return True
    if message.method == "server/discover":
        found = discover(library)
        if found.scene is None:
            return library.has_handshakes
        return found.scene.is_answered and library.is_settled(found.scene.order)
    params = message.params
    if not isinstance(params, dict):
        return False
    found = initialize(library, params.get("protocolVersion"))
    same = found.revision is not None and found.revision == params.get("protocolVersion")
    return same and found.scene is not None and library.is_settled(found.scene.order)
