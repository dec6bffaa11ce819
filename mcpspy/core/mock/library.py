"""What was recorded, arranged for being asked: shared by all clients, changed by none.

Owns the queues (answers of one key, in recorded order) and the merging of
several recordings: of what two of them answer, the later one's word counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mcpspy.core.message import Failure, Notification, Request, Result
from mcpspy.core.mock.asked import Asked, Key
from mcpspy.core.mock.canonical import Pointer
from mcpspy.core.mock.scene import Scene
from mcpspy.core.mock.script import script
from mcpspy.core.parties import INTRODUCTIONS, Party
from mcpspy.core.session import Session


class Library:
    """The scenes of one server."""

    def __init__(self, ignored: Iterable[Pointer] = ()) -> None:
        self.ignored = tuple(ignored)
        self.queues: dict[Key, list[Scene]] = {}
        self.keys: dict[tuple[str, str | None, bool], list[Key]] = {}
        """Method, subject, whether a question is answered → the keys there are."""
        self.methods: dict[tuple[str, bool], list[Scene]] = {}
        self.notices: dict[str, list[Scene]] = {}
        """Notifications of the client, by method."""
        self.introductions: dict[str, list[Scene]] = {}
        self.opening: list[Scene] = []
        """What the server said before it had heard anything."""
        self.versions: list[str] = []
        """Revisions without a handshake that the server took, the oldest first."""
        self.server: Party | None = None
        self.name = ""
        """What the recording calls the server."""
        self.conflicts: list[str] = []
        """What two recordings answer otherwise, one line each."""
        self._order = 0

    @classmethod
    def of(cls, sessions: Sequence[tuple[str, Session]], ignored: Iterable[Pointer] = ()) -> Library:
        """Read sessions, each with what to call it."""
        library = cls(ignored)
        for label, session in sessions:
            library._merge(label, session)
        for scenes in library.queues.values():
            for scene in scenes:
                assert scene.asked is not None
                library._arrange(scene, scene.asked)
        for scenes in library.methods.values():
            scenes.sort(key=lambda scene: scene.order)
        return library

    @property
    def is_modern(self) -> bool:
        """Whether the server speaks a revision without a handshake, as far as is known."""
        return bool(self.versions)

    @property
    def scenes(self) -> list[Scene]:
        """The requests that can be asked for, introductions aside."""
        return [scene for scenes in self.queues.values() for scene in scenes]

    def _merge(self, label: str, session: Session) -> None:
        queues: dict[Key, list[Scene]] = {}
        notices: dict[str, list[Scene]] = {}
        introductions: dict[str, list[Scene]] = {}
        opening: list[Scene] = []
        for scene in script(session, self.ignored):
            scene.told, scene.order = label, self._order
            self._order += 1
            if isinstance(scene.cause, Notification):
                notices.setdefault(scene.cause.method, []).append(scene)
            elif scene.asked is None:
                opening.append(scene)
            elif scene.asked.method in INTRODUCTIONS:
                introductions.setdefault(scene.asked.method, []).append(scene)
            else:
                queues.setdefault(scene.asked.key, []).append(scene)
                self._took(scene.asked.version)
        for scene in introductions.get("server/discover", ()):
            if isinstance(scene.answer, Result) and isinstance(said := scene.answer.result, dict):
                versions = said.get("supportedVersions")
                for version in versions if isinstance(versions, list) else ():
                    self._took(version if isinstance(version, str) else None)
        for key, scenes in queues.items():
            earlier = self.queues.get(key)
            if earlier is not None and _answers(earlier) != _answers(scenes):
                about = scenes[0].asked.about if scenes[0].asked else key[0]
                self.conflicts.append(f"{about}: answered as in {label}, not as in {earlier[0].told}")
            self.queues[key] = scenes
        self.notices |= notices
        for method, scenes in introductions.items():
            earlier = self.introductions.get(method)
            if earlier is not None and _answers(earlier) != _answers(scenes):
                self.conflicts.append(f"{method}: answered as in {label}, not as in {earlier[0].told}")
            self.introductions[method] = scenes
        self.opening = opening or self.opening
        self.server = session.server or self.server
        self.name = session.header.name if session.header is not None else self.name

    def _took(self, version: str | None) -> None:
        if version is not None and version not in self.versions:
            self.versions = sorted([*self.versions, version])

    def _arrange(self, scene: Scene, asked: Asked) -> None:
        answers = asked.question is not None
        keys = self.keys.setdefault((asked.method, asked.subject, answers), [])
        if not keys or keys[-1] != asked.key:
            keys.append(asked.key)
        self.methods.setdefault((asked.method, answers), []).append(scene)


def has_server(session: Session) -> bool:
    """Whether a server said anything in it."""
    return any(
        isinstance(change.what, Request | Notification | Result | Failure) and change.what.side == "server"
        for change in session.changes
    )


def _answers(scenes: list[Scene]) -> list[bytes]:
    """Return what is answered, ids aside."""
    said = []
    for scene in scenes:
        answer = scene.answer
        if isinstance(answer, Result):
            said.append(bytes(answer.raw_result))
        else:
            said.append(bytes(answer.raw_error) if answer is not None else b"")
    return said
