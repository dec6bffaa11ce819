"""The options of a test's recording, and their precedence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from mcpspy.errors import UsageError
from mcpspy.ui.pytest_plugin import MODES
from mcpspy.ui.pytest_plugin.cassettes import RunRecordings
from mcpspy.ui.pytest_plugin.options import PluginOptions, read_options

SERVER = ["python", "weather.py"]


class Config:
    """The configuration of pytest."""

    def __init__(self, rootpath: Path, option: str | None, settings: dict[str, Any]) -> None:
        self.rootpath = rootpath
        self._option = option
        self._settings = settings

    def getoption(self, name: str) -> str | None:
        assert name == "--mcpspy-record"
        return self._option

    def getini(self, name: str) -> Any:
        return self._settings.get(name, [] if name == "mcpspy_server" else "")


class Node:
    """A test, with its markers, the nearest first."""

    nodeid = "test_a.py::test_a"
    name = "test_a"

    def __init__(self, markers: tuple[pytest.Mark, ...]) -> None:
        self._markers = markers

    def iter_markers(self, name: str) -> Iterator[pytest.Mark]:
        return (marker for marker in self._markers if marker.name == name)

    def listchain(self) -> list[object]:
        return [self]


class Request:
    """The `request` of a fixture."""

    def __init__(
        self,
        folder: Path,
        *markers: pytest.MarkDecorator,
        option: str | None = None,
        server: list[str] | str | None = None,
        **settings: Any,
    ) -> None:
        self.config = Config(folder, option, settings)
        self.path = folder / "test_a.py"
        self.node = Node(tuple(marker.mark for marker in markers))
        self.asked_for: list[str] = []
        self._server = server

    def getfixturevalue(self, name: str) -> object:
        self.asked_for.append(name)
        return self._server if name == "mcp_recording_server" else None


def mark(*arguments: Any, **named: Any) -> pytest.MarkDecorator:
    return pytest.MarkDecorator(
        pytest.Mark("mcp_recording", arguments, named, _ispytest=True), _ispytest=True
    )


def read(request: Request) -> PluginOptions:
    return read_options(cast(pytest.FixtureRequest, request), MODES)


@pytest.fixture(autouse=True)
def _no_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)


@pytest.fixture
def existing(tmp_path: Path) -> Path:
    """An existing recording."""
    path = tmp_path / "mcp_recordings" / "test_a" / "test_a.jsonl"
    path.parent.mkdir(parents=True)
    path.touch()
    return path


@pytest.mark.parametrize(
    ("ci", "mode"), [("true", "none"), ("1", "none"), ("", "once"), ("0", "once"), ("False", "once")]
)
def test_nothing_is_recorded_in_ci_unless_requested(
    ci: str, mode: str, existing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", ci)

    assert read(Request(tmp_path)).mode == mode
    assert read(Request(tmp_path)).path == existing
    assert read(Request(tmp_path, mcpspy_record="all", mcpspy_server=SERVER)).mode == "all"


def test_the_command_line_goes_before_the_marker_and_that_before_the_settings(
    existing: Path, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"mcpspy_record": "none", "mcpspy_server": SERVER}
    marker = mark(mode="new_episodes")

    assert existing.exists()
    assert read(Request(tmp_path, marker, option="all", **settings)).mode == "all"
    assert read(Request(tmp_path, marker, **settings)).mode == "new_episodes"
    assert read(Request(tmp_path, **settings)).mode == "none"


def test_of_each_argument_the_nearest_marker_counts(tmp_path: Path) -> None:
    near, far = (
        mark("x.jsonl", upstream="http://127.0.0.1:1/mcp", match="lenient"),
        mark(server=SERVER, match="method", ignore=["/params/a"]),
    )
    options = read(Request(tmp_path, near, far))

    assert options.path == tmp_path / "x.jsonl"
    assert (options.server, options.upstream) == ((), "http://127.0.0.1:1/mcp")
    assert (options.match, options.ignore, options.on_exhausted) == ("lenient", ("/params/a",), "repeat")


@pytest.mark.parametrize(
    ("named", "server", "upstream"),
    [
        (SERVER, ("python", "weather.py"), None),
        (["http://127.0.0.1:1/mcp"], (), "http://127.0.0.1:1/mcp"),
        ("http://127.0.0.1:1/mcp", (), "http://127.0.0.1:1/mcp"),
    ],
    ids=["command", "one word", "URL"],
)
def test_a_server_is_a_command_or_a_url_wherever_it_is_named(
    named: Any, server: tuple[str, ...], upstream: str | None, tmp_path: Path
) -> None:
    for request in (
        Request(tmp_path, mcpspy_server=named),
        Request(tmp_path, server=named, mcpspy_server=["x"]),
    ):
        options = read(request)
        assert (options.server, options.upstream) == (server, upstream)
        assert options.records_all
        assert options.records


def test_the_real_server_is_needed_only_to_record(existing: Path, tmp_path: Path) -> None:
    served, added = (
        Request(tmp_path, server=SERVER),
        Request(tmp_path, mark(mode="new_episodes"), server=SERVER),
    )

    assert existing.exists()
    assert not read(served).records
    assert served.asked_for == []
    assert read(added).records
    assert not read(added).records_all
    assert "mcp_recording_server" in added.asked_for


def test_a_recording_that_another_worker_writes_after_the_options_were_read_changes_nothing(
    tmp_path: Path,
) -> None:
    options = read(Request(tmp_path, server=SERVER))
    options.path.parent.mkdir(parents=True)
    options.path.touch()

    assert options.records_all
    assert options.recordings() == []
    assert read(Request(tmp_path)).recordings() == [options.path]


class OtherWorker(RunRecordings):
    """A run whose other worker writes the recording at the moment at which this one asks for its mark."""

    def has_written(self, target: Path) -> bool:
        with self.writing(target):
            target.parent.mkdir(parents=True)
            target.touch()
        return False


def test_a_recording_that_another_worker_writes_meanwhile_is_recorded_in_this_test_too(
    tmp_path: Path,
) -> None:
    request = cast(pytest.FixtureRequest, Request(tmp_path, server=SERVER))

    assert read_options(request, MODES, OtherWorker(tmp_path)).records_all
    assert read_options(request, MODES, RunRecordings(tmp_path)).mode == "new_episodes"


@pytest.mark.parametrize(
    ("marker", "line"),
    [
        (mark("a", "b"), "more than one recording (use one path per test)"),
        (mark(3), "3: not the path of a recording"),
        (mark(modes="all"), "unknown argument modes (use path, name, mode,"),
        (mark(mode="sometimes"), "mode 'sometimes': unknown value (use none, once,"),
        (mark(match="fuzzy"), "match 'fuzzy': unknown value"),
        (mark(on_exhausted="cry"), "on_exhausted 'cry': unknown value"),
        (mark(ignore="/params/a"), "ignore='/params/a': not a list"),
        (mark(ignore=["params"]), "ignore 'params': a JSON pointer must begin with /"),
        (mark(ignore=["/result"]), "ignore '/result': only pointers below /params are compared"),
        (mark(server=["a"], upstream="http://a"), "server and upstream exclude each other"),
        (mark(server="python weather.py"), "or a list for a command"),
        (mark(upstream="ftp://a"), "'ftp://a': not a server URL"),
        (mark(), "no server to record from (use @pytest.mark.mcp_recording(server="),
        (
            mark(mode="none"),
            "mode none (the default if CI is set) does not record (create it with pytest --mcpspy-record=once 'test_a.py::test_a')",
        ),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else "",
)
def test_invalid_options_are_refused_in_one_line(
    marker: pytest.MarkDecorator, line: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as refused:
        read(Request(tmp_path, marker))

    assert line in str(refused.value)
    assert "\n" not in str(refused.value)


def test_settings_of_redaction_are_read_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        read(Request(tmp_path, mcpspy_config="mcpspy.toml", mcpspy_server=SERVER))

    (tmp_path / "mcpspy.toml").write_text("[redact]\nkeys = 3\n", encoding="utf-8")
    with pytest.raises(UsageError, match="must be a list of strings"):
        read(Request(tmp_path, mcpspy_config="mcpspy.toml", mcpspy_server=SERVER))


def test_the_settings_are_the_defaults_of_the_markers(existing: Path, tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "mcpspy_match": "lenient",
        "mcpspy_ignore": ["/params/arguments/now"],
        "mcpspy_on_exhausted": "error",
        "mcpspy_strict": True,
        "mcpspy_volatile": True,
    }

    def chosen(*markers: pytest.MarkDecorator) -> tuple[str, tuple[str, ...], str, bool, bool]:
        options = read(Request(tmp_path, *markers, **settings))
        return options.match, options.ignore, options.on_exhausted, options.strict, options.volatile

    assert existing.exists()
    assert chosen() == ("lenient", ("/params/arguments/now",), "error", True, True)
    marker = mark(
        match="method",
        ignore=["/params/arguments/id"],
        on_exhausted="repeat",
        strict=False,
        volatile=False,
    )
    pointers = ("/params/arguments/now", "/params/arguments/id")
    assert chosen(marker) == ("method", pointers, "repeat", False, False)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"mcpspy_match": "fuzzy"}, "match 'fuzzy': unknown value"),
        ({"mcpspy_on_exhausted": "stop"}, "on_exhausted 'stop': unknown value"),
        ({"mcpspy_ignore": ["params/now"]}, "ignore 'params/now'"),
    ],
)
def test_wrong_settings_are_errors(
    settings: dict[str, Any], error: str, existing: Path, tmp_path: Path
) -> None:
    assert existing.exists()
    with pytest.raises(UsageError, match=error):
        read(Request(tmp_path, **settings))


@pytest.mark.parametrize("name", ["strict", "volatile"])
def test_some_options_are_booleans(name: str, existing: Path, tmp_path: Path) -> None:
    assert existing.exists()
    with pytest.raises(UsageError, match=f"{name}='yes': not a boolean"):
        read(Request(tmp_path, mark(**{name: "yes"})))


def test_the_function_of_the_marker_goes_before_that_of_the_fixture(tmp_path: Path) -> None:
    marked = mark(server=SERVER, before_record=print)

    asked = Request(tmp_path, marked)
    assert read(asked).before_record is print
    assert asked.asked_for == []
    asked = Request(tmp_path, mark(server=SERVER))
    assert read(asked).before_record is None
    assert asked.asked_for == ["mcp_before_record"]
    with pytest.raises(UsageError, match="before_record='x': not a function"):
        read(Request(tmp_path, mark(server=SERVER, before_record="x")))
