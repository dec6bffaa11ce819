"""How a recorded server introduces itself, in every era.

Owns the choice between what was recorded and what the protocol says in its
place: a legacy server has not heard of `server/discover`, a modern one of
`initialize`, and a server answers a revision it lacks with one it has.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from mcpspy.core.message import Request, Result, read_frame
from mcpspy.core.mock import making
from mcpspy.core.mock.library import Library
from mcpspy.core.mock.scene import Scene
from mcpspy.core.record import Frame
from mcpspy.core.spec import CLIENT


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
    recorded = [scene for scene in library.introductions.get("initialize", ()) if scene.answer is not None]
    taken = [scene for scene in recorded if isinstance(scene.answer, Result)]
    if taken:
        same = [scene for scene in taken if _revision(scene) == version]
        scene = same[0] if same else taken[-1]
        return Introduction(scene=scene, revision=_revision(scene))
    if recorded:
        return Introduction(scene=recorded[-1])
    if library.is_modern:
        return Introduction(
            code=making.UNSUPPORTED_VERSION,
            why="Unsupported protocol version",
            data={"supported": library.versions, "requested": version},
        )
    result = making.initialized(library, version)
    return Introduction(result=result, revision=result["protocolVersion"])


def discover(library: Library) -> Introduction:
    """Answer the probe of a client of 2026-07-28."""
    recorded = [
        scene for scene in library.introductions.get("server/discover", ()) if scene.answer is not None
    ]
    taken = [scene for scene in recorded if isinstance(scene.answer, Result)]
    if taken or recorded:
        return Introduction(scene=(taken or recorded)[-1])
    if library.is_modern:
        return Introduction(result=making.discovered(library))
    return Introduction(code=making.METHOD_NOT_FOUND, why="Method not found")


def is_enough(head: Library, data: bytes) -> bool:
    """Whether how a recording begins is enough to answer this message as all of it would."""
    messages = read_frame(Frame(0.0, CLIENT, data))
    if len(messages) != 1 or not isinstance(message := messages[0], Request) or message.flaws:
        return False
    if message.method == "server/discover":
        said = discover(head).scene
        return said is not None and isinstance(said.answer, Result)
    params = message.params
    if message.method != "initialize" or not isinstance(params, dict):
        return False
    found = initialize(head, params.get("protocolVersion"))
    return found.scene is not None and found.revision == params.get("protocolVersion")


def _revision(scene: Scene) -> str | None:
    answer = scene.answer
    said = answer.result if isinstance(answer, Result) else None
    version = said.get("protocolVersion") if isinstance(said, dict) else None
    return version if isinstance(version, str) else None
