"""The options of a test's recording: command line, marker, fixture, settings.

Their precedence is `--mcpspy-record`, then the marker of the test, of its class, of its module, then the settings.
Invalid options are errors before any server starts.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec import Struct, structs

from mcpspy.core.mock.selector import MatchMode
from mcpspy.core.protocol.http_headers import read_upstream
from mcpspy.core.redact.display import redacted_url
from mcpspy.errors import UsageError
from mcpspy.io.recording.redaction import RedactionOptions, redactor
from mcpspy.ui.cli.arguments import ignored_parameter
from mcpspy.ui.pytest_plugin.before_record import BeforeRecord
from mcpspy.ui.pytest_plugin.cassettes import RunRecordings, recorded, recording_path, shown_path
from mcpspy.ui.pytest_plugin.network import SEES_ASYNCIO, Address, read_allowed

MARK = "mcp_recording"
"""The marker, and the fixture of a test's only recording."""

SEVERAL = "mcp_recordings"
"""The fixture of the recordings that have names."""

KNOWN = (
    "path",
    "name",
    "mode",
    "match",
    "ignore",
    "on_exhausted",
    "strict",
    "volatile",
    "server",
    "upstream",
    "listing",
    "fixtures",
    "before_record",
    "block_network",
    "allowed_hosts",
)

ON_EXHAUSTED = ("repeat", "error")

UNSET_CI = ("", "0", "false")
"""Values of the variable CI outside of continuous integration."""


class PluginOptions(Struct, frozen=True, kw_only=True):
    test: str
    """The id of the test."""
    path: Path
    mode: str
    match: str = str(MatchMode.EXACT)
    ignore: tuple[str, ...] = ()
    """JSON pointers, as in `mcpspy mock --ignore-path`."""
    on_exhausted: str = ON_EXHAUSTED[0]
    strict: bool = False
    """True if the test must send every recorded request."""
    volatile: bool = False
    """True if `assert_matches` ignores values that change from run to run, as `mcpspy diff --volatile` does."""
    server: tuple[str, ...] = ()
    """The real server's command; empty if the server has a URL or is not needed."""
    upstream: str | None = None
    config: Path | None = None
    """A `mcpspy.toml` with redaction settings."""
    listing: Path | None = None
    """A listing from which responses are generated, as by `mcpspy mock --from-listing`, in place of a recording."""
    fixtures: tuple[Path, ...] = ()
    """Files of responses written by hand, as those of `mcpspy mock --fixtures`."""
    before_record: BeforeRecord | None = None
    block_network: bool = False
    """True if the process of the test may reach only its mock."""
    allowed_hosts: tuple[Address, ...] = ()
    """The addresses that it may also reach."""
    existing: tuple[Path, ...] | None = None
    """The files of the recording; those of the time when this was made, as another worker may write them a moment later."""

    def __post_init__(self) -> None:
        if self.existing is None:
            structs.force_setattr(self, "existing", tuple(recorded(self.path)))

    @property
    def is_written(self) -> bool:
        """True if files that people write answer: nothing is recorded, whatever the mode."""
        return self.listing is not None or bool(self.fixtures)

    @property
    def records_all(self) -> bool:
        """True if the real server responds to every request, False if the recording is served."""
        if self.is_written:
            return False
        return self.mode == "all" or (self.mode != "none" and not self.existing)

    @property
    def records(self) -> bool:
        return self.records_all or (self.mode == "new_episodes" and not self.is_written)

    def recordings(self) -> list[Path]:
        """Return the files that are served: those of the recording, unless a listing takes its place."""
        return [] if self.records_all or self.listing is not None else [*(self.existing or ())]


def read_options(
    request: pytest.FixtureRequest,
    modes: Sequence[str],
    run: RunRecordings | None = None,
    name: str | None = None,
) -> PluginOptions:
    """Return the options of a test's recording, or of its recording with this name; raise UsageError.

    With mode once, a test adds to a recording that another test of this run made: it would have recorded it, if it
    had been the first one. Whether it exists is read before the question who made it: a recording of another worker that
    appears between the two is recorded once more, and one that is found has its mark already.
    """
    config = request.config
    marked = _marker_options(request.node, name)
    options = PluginOptions(
        test=request.node.nodeid,
        path=_path(request.path, request.node, marked, name),
        mode=_one_of(
            "mode",
            config.getoption("--mcpspy-record")
            or marked.get("mode")
            or config.getini("mcpspy_record")
            or _default_mode(),
            modes,
        ),
        match=_one_of(
            "match",
            marked.get("match") or config.getini("mcpspy_match") or "exact",
            [str(match) for match in MatchMode],
        ),
        # The pointers of the settings and of the marker: values such as a time differ in every test.
        ignore=tuple(
            _ignored(text)
            for text in dict.fromkeys(
                [*(config.getini("mcpspy_ignore") or ()), *_list("ignore", marked.get("ignore", ()))]
            )
        ),
        on_exhausted=_one_of(
            "on_exhausted",
            marked.get("on_exhausted") or config.getini("mcpspy_on_exhausted") or "repeat",
            ON_EXHAUSTED,
        ),
        strict=_boolean("strict", marked.get("strict", config.getini("mcpspy_strict") or False)),
        volatile=_boolean("volatile", marked.get("volatile", config.getini("mcpspy_volatile") or False)),
        config=config.rootpath / config.getini("mcpspy_config") if config.getini("mcpspy_config") else None,
        block_network=_boolean(
            "block_network", marked.get("block_network", config.getini("mcpspy_block_network") or False)
        ),
        allowed_hosts=tuple(
            map(
                read_allowed,
                [
                    *(config.getini("mcpspy_allowed_hosts") or ()),
                    *_list("allowed_hosts", marked.get("allowed_hosts", ())),
                ],
            )
        ),
        listing=_listing(request.path, marked),
        fixtures=tuple(
            request.path.parent / Path(text).expanduser()
            for text in _list("fixtures", marked.get("fixtures", ()))
        ),
    )
    if options.mode == "once" and run is not None and run.has_written(options.path):
        options = structs.replace(options, mode="new_episodes")
    if options.block_network and not SEES_ASYNCIO:
        raise UsageError("block_network: not available on Windows", "remove it, or skip the test there")
    _check_redaction(options)
    if options.mode == "none" and not options.is_written and not options.existing:
        raise UsageError(
            f"{shown_path(options.path)}: no such recording, and mode none (the default if CI is set) does not record",
            f"create it with pytest --mcpspy-record=once '{options.test}'",
        )
    if not options.records:
        return options
    server, upstream = _real_server(request, marked)
    return structs.replace(
        options, server=server, upstream=upstream, before_record=_before_record(request, marked)
    )


def redaction_of(config: Path | None) -> RedactionOptions:
    """Return the redaction options with this settings file."""
    redaction = RedactionOptions()
    redaction.config = redaction.unsafe_regex.config = None if config is None else str(config)
    return redaction


def marked_names(node: pytest.Item) -> list[str]:
    """Return the names that the markers of a test give to its recordings; raise UsageError."""
    names = [marker.kwargs["name"] for marker in node.iter_markers(MARK) if "name" in marker.kwargs]
    for name in names:
        # Not a number, either: x.2.jsonl is the second session of x.jsonl.
        if not isinstance(name, str) or not name.isidentifier():
            raise UsageError(f"@pytest.mark.{MARK}: name={name!r}: not a name", "use letters, digits and _")
    return sorted(set(names))


def used_paths(node: pytest.Item, fixtures: Sequence[str]) -> list[Path]:
    """Return the recordings of a test that uses one or both of the fixtures; raise UsageError."""
    names: list[str | None] = [None] if MARK in fixtures else []
    names += marked_names(node) if SEVERAL in fixtures else []
    marked = [(name, _marker_options(node, name)) for name in names]
    return [_path(node.path, node, options, name) for name, options in marked if "listing" not in options]


def _path(file: Path, node: pytest.Item, marked: dict[str, Any], name: str | None) -> Path:
    value = marked.get("path")
    if value is not None and not isinstance(value, str | os.PathLike):
        raise UsageError(f"{value!r}: not the path of a recording", f'use @pytest.mark.{MARK}("file.jsonl")')
    test = _name(node) if name is None else f"{_name(node)}.{name}"
    return recording_path(file, test, None if value is None else os.fspath(value))


def _listing(file: Path, marked: dict[str, Any]) -> Path | None:
    value = marked.get("listing")
    if value is None:
        return None
    if not isinstance(value, str | os.PathLike):
        raise UsageError(f"listing={value!r}: not the path of a listing", 'use listing="tools.json"')
    return file.parent / Path(os.fspath(value)).expanduser()


def _before_record(request: pytest.FixtureRequest, marked: dict[str, Any]) -> BeforeRecord | None:
    """Return the function of the marker, or else of the fixture; None without one."""
    value = marked.get("before_record") or request.getfixturevalue("mcp_before_record")
    if value is not None and not callable(value):
        raise UsageError(
            f"before_record={value!r}: not a function", "use a function of a message and its side"
        )
    return cast(BeforeRecord | None, value)


def _marker_options(node: pytest.Item, name: str | None) -> dict[str, Any]:
    """Return the arguments of the markers; the nearest marker wins.

    Those of a marker with a name are of the recording with this name. Those of one without a name are of all
    recordings, except its path.
    """
    marked: dict[str, Any] = {}
    for marker in node.iter_markers(MARK):
        if marker.kwargs.get("name", name) != name:
            continue
        if len(marker.args) > 1:
            raise UsageError(
                f"@pytest.mark.{MARK}{marker.args}: more than one recording", "use one path per test"
            )
        arguments = {**({"path": marker.args[0]} if marker.args else {}), **marker.kwargs}
        if unknown := [name for name in arguments if name not in KNOWN]:
            raise UsageError(f"@pytest.mark.{MARK}: unknown argument {unknown[0]}", f"use {', '.join(KNOWN)}")
        if "server" in arguments and "upstream" in arguments:
            raise UsageError(f"@pytest.mark.{MARK}: server and upstream exclude each other")
        if "listing" in arguments and "path" in arguments:
            raise UsageError(
                f"@pytest.mark.{MARK}: a recording and a listing exclude each other",
                "use fixtures to add responses to a recording",
            )
        if name is not None and "name" not in arguments:
            arguments.pop("path", None)
        for one, other in (("server", "upstream"), ("path", "listing")):
            if one in marked or other in marked:
                arguments = {key: arguments[key] for key in arguments if key not in (one, other)}
        marked = {**arguments, **marked}
    return marked


def _real_server(
    request: pytest.FixtureRequest, marked: dict[str, Any]
) -> tuple[tuple[str, ...], str | None]:
    """Return the real server's command and its URL, one of which is empty."""
    value = marked.get("server") or marked.get("upstream") or request.getfixturevalue("mcp_recording_server")
    value = value or request.config.getini("mcpspy_server")
    if isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 1:
        value = value[0] if read_upstream(str(value[0])) is not None else value
    if not value:
        raise UsageError(
            f"{request.node.nodeid}: no server to record from",
            f'use @pytest.mark.{MARK}(server=["python", "server.py"]), upstream="http://…", the fixture '
            "mcp_recording_server, or the pytest setting mcpspy_server",
        )
    if isinstance(value, str):
        if read_upstream(value) is None:
            raise UsageError(
                f"{redacted_url(value)!r}: not a server URL",
                'use upstream="http://localhost:3001/mcp", or a list for a command: server=["python", "server.py"]',
            )
        return (), value
    return tuple(_list("server", value)), None


def _default_mode() -> str:
    return "once" if os.environ.get("CI", "").lower() in UNSET_CI else "none"


def _name(node: pytest.Item) -> str:
    classes = [each.name for each in node.listchain() if isinstance(each, pytest.Class)]
    return ".".join([*classes, node.name])


def _one_of(name: str, value: object, words: Sequence[str]) -> str:
    if value not in words:
        raise UsageError(f"{name} {value!r}: unknown value", f"use {', '.join(words)}")
    return str(value)


def _boolean(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"{name}={value!r}: not a boolean", f"use {name}=True")
    return value


def _list(name: str, value: object) -> list[str]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise UsageError(f"{name}={value!r}: not a list", f'use {name}=["…"]')
    return [os.fspath(item) if isinstance(item, os.PathLike) else str(item) for item in value]


def _ignored(text: str) -> str:
    try:
        ignored_parameter(text)
    except UsageError as error:
        raise UsageError(f"ignore {text!r}: {error.args[0]}", error.hint) from None
    return text


def _check_redaction(options: PluginOptions) -> None:
    if options.config is not None:
        if not options.config.is_file():
            raise UsageError(f"mcpspy_config: {options.config}: no such file")
        redactor(redaction_of(options.config), lambda _: None)
