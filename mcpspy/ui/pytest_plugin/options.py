"""What a test asks of its recording: marker, fixture, command line, settings.

Owns their order: `--mcpspy-record`, then the marker of the test, of its class, of its module, then the settings.
Refuses what means nothing, before any server is started.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from mcpspy.core.jsontools import pointer
from mcpspy.core.mock.selector import MatchMode
from mcpspy.core.protocol.http_headers import read_upstream
from mcpspy.errors import UsageError
from mcpspy.io.recording.redaction import RedactionOptions, redactor
from mcpspy.ui.pytest_plugin.cassettes import place, recorded, shown_path

MARK = "mcp_recording"

KNOWN = ("path", "mode", "match", "ignore", "on_exhausted", "server", "upstream")

ON_EXHAUSTED = ("repeat", "error")

UNSET_CI = ("", "0", "false")
"""Values of the variable CI that mean that this is none."""


class PluginOptions(Struct, frozen=True, kw_only=True):
    """What a test asks for."""

    test: str
    """Its id, for people."""
    path: Path
    mode: str
    match: str = str(MatchMode.EXACT)
    ignore: tuple[str, ...] = ()
    """JSON pointers, as `mcpspy mock --ignore` has them."""
    on_exhausted: str = ON_EXHAUSTED[0]
    server: tuple[str, ...] = ()
    """The real server's command; empty if it is reached by its URL, or not needed."""
    upstream: str | None = None
    config: Path | None = None
    """A `mcpspy.toml`: what is redacted."""

    @property
    def is_anew(self) -> bool:
        """Whether all of it is recorded; otherwise what is there is served."""
        return self.mode == "all" or (self.mode != "none" and not recorded(self.path))

    @property
    def is_recorded(self) -> bool:
        return self.is_anew or self.mode == "new_episodes"


def read_asked(request: pytest.FixtureRequest, modes: Sequence[str]) -> PluginOptions:
    """Return what a test asks for; raise UsageError."""
    config = request.config
    given = _given(request.node)
    named = given.get("path")
    if named is not None and not isinstance(named, str | os.PathLike):
        raise UsageError(f"{named!r} is not the path of a recording", f'@pytest.mark.{MARK}("file.jsonl")')
    asked = PluginOptions(
        test=request.node.nodeid,
        path=place(request.path, _name(request.node), None if named is None else os.fspath(named)),
        mode=_one_of(
            "mode",
            config.getoption("--mcpspy-record")
            or given.get("mode")
            or config.getini("mcpspy_record")
            or _default_mode(),
            modes,
        ),
        match=_one_of("match", given.get("match", "exact"), [str(match) for match in MatchMode]),
        ignore=tuple(_pointer(text) for text in _list("ignore", given.get("ignore", ()))),
        on_exhausted=_one_of("on_exhausted", given.get("on_exhausted", "repeat"), ON_EXHAUSTED),
        config=config.rootpath / config.getini("mcpspy_config") if config.getini("mcpspy_config") else None,
    )
    _check_redaction(asked)
    if asked.mode == "none" and not recorded(asked.path):
        raise UsageError(
            f"there is no {shown_path(asked.path)}, and in mode none (the default where CI is set) none is recorded",
            f"make it: pytest --mcpspy-record=once '{asked.test}'",
        )
    if not asked.is_recorded:
        return asked
    server, upstream = _real(request, given)
    fields = {name: getattr(asked, name) for name in PluginOptions.__struct_fields__}
    return PluginOptions(**{**fields, "server": server, "upstream": upstream})


def redaction_of(config: Path | None) -> RedactionOptions:
    """Return what is to be redacted in what is kept."""
    redaction = RedactionOptions()
    redaction.config = None if config is None else str(config)
    return redaction


def _given(node: pytest.Item) -> dict[str, Any]:
    """Return what the markers say, the nearest counting most."""
    given: dict[str, Any] = {}
    for marker in node.iter_markers(MARK):
        if len(marker.args) > 1:
            raise UsageError(f"@pytest.mark.{MARK}{marker.args}: one recording a test")
        said = {**({"path": marker.args[0]} if marker.args else {}), **marker.kwargs}
        if unknown := [name for name in said if name not in KNOWN]:
            raise UsageError(
                f"@pytest.mark.{MARK}: {unknown[0]} means nothing", f"there are {', '.join(KNOWN)}"
            )
        if "server" in said and "upstream" in said:
            raise UsageError(f"@pytest.mark.{MARK}: server and upstream", "one server at a time")
        if "server" in given or "upstream" in given:
            said = {name: value for name, value in said.items() if name not in ("server", "upstream")}
        given = {**said, **given}
    return given


def _real(request: pytest.FixtureRequest, given: dict[str, Any]) -> tuple[tuple[str, ...], str | None]:
    """Return the real server's command, or its URL."""
    named = given.get("server") or given.get("upstream") or request.getfixturevalue("mcp_recording_server")
    named = named or request.config.getini("mcpspy_server")
    if isinstance(named, Sequence) and not isinstance(named, str) and len(named) == 1:
        named = named[0] if read_upstream(str(named[0])) is not None else named
    if not named:
        raise UsageError(
            f"{request.node.nodeid}: no server to record from",
            f'@pytest.mark.{MARK}(server=["python", "server.py"]), upstream="http://…", the fixture mcp_recording_server, '
            "or mcpspy_server in the settings of pytest",
        )
    if isinstance(named, str):
        if read_upstream(named) is None:
            raise UsageError(
                f"{named!r} is not the URL of a server",
                'upstream="http://localhost:3001/mcp"; a command is a list: server=["python", "server.py"]',
            )
        return (), named
    return tuple(_list("server", named)), None


def _default_mode() -> str:
    return "once" if os.environ.get("CI", "").lower() in UNSET_CI else "none"


def _name(node: pytest.Item) -> str:
    classes = [each.name for each in node.listchain() if isinstance(each, pytest.Class)]
    return ".".join([*classes, node.name])


def _one_of(name: str, value: object, words: Sequence[str]) -> str:
    if value not in words:
        raise UsageError(f"{name} {value!r} means nothing", f"there are {', '.join(words)}")
    return str(value)


def _list(name: str, value: object) -> list[str]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise UsageError(f"{name}={value!r} is no list", f'{name}=["…"]')
    return [os.fspath(item) if isinstance(item, os.PathLike) else str(item) for item in value]


def _pointer(text: str) -> str:
    try:
        tokens = pointer(text)
    except ValueError as error:
        raise UsageError(f"ignore {text!r}: {error}", "like /params/arguments/now") from None
    if tokens[0] != "params":
        raise UsageError(f"ignore {text!r}: only /params/… is compared", "like /params/arguments/now")
    return text


def _check_redaction(asked: PluginOptions) -> None:
    if asked.config is not None:
        if not asked.config.is_file():
            raise UsageError(f"mcpspy_config: {asked.config}: no such file")
        redactor(redaction_of(asked.config), lambda _: None)
