"""The pytest plugin: recordings in place of MCP servers.

Holds the option, the settings, the marker and the fixtures, and decides when a test fails. Every pytest of an
environment loads this module, so it imports only pytest; the first test that uses `mcp_recording` imports the rest.

    McpRecording                                     the value of the fixture
    assert_lint_clean(session, ignore=[…])           the session has no protocol violations
    assert_matches(session, recording, ignore=[…])   the session matches the recording
    assert_contract(session, forbid_tools=[…])       the session meets a contract
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mcpspy.ui.pytest_plugin.assertions import assert_contract, assert_lint_clean, assert_matches
    from mcpspy.ui.pytest_plugin.fixture import McpRecording

__all__ = ["McpRecording", "assert_contract", "assert_lint_clean", "assert_matches"]

MODES = ("none", "once", "new_episodes", "all")

SELECTING = (
    *("keyword", "markexpr", "deselect", "lf", "stepwise", "ignore", "ignore_glob", "maxfail", "collectonly"),
)
"""Options of pytest that leave out tests."""

MARKER = (
    "mcp_recording(path, name=, mode=, match=, ignore=[], on_exhausted=, strict=, volatile=, server=[], upstream=, "
    "listing=, fixtures=[], before_record=, block_network=, allowed_hosts=[]): "
    "the recording that the fixture mcp_recording serves or creates; with name=, one of mcp_recordings (mcpspy, docs/pytest.md)"
)

_RECORDINGS = pytest.StashKey["list[McpRecording]"]()
"""The recordings of the test that runs."""

_USE = pytest.StashKey["RecordingUse"]()


def __getattr__(name: str) -> Any:
    if name == "McpRecording":
        from mcpspy.ui.pytest_plugin import fixture

        return fixture.McpRecording
    if name in __all__:
        from mcpspy.ui.pytest_plugin import assertions

        return getattr(assertions, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("mcpspy", "recordings of MCP servers")
    group.addoption(
        "--mcpspy-record",
        metavar="MODE",
        choices=MODES,
        help="none: serve recordings only; once: record if no recording exists; new_episodes: also record unrecorded "
        "requests; all: record again. Overrides markers (default: once; none if CI is set)",
    )
    parser.addini("mcpspy_record", "default mode: none, once, new_episodes, all")
    parser.addini("mcpspy_match", "default of match: exact, lenient, nearest, tool, method")
    parser.addini("mcpspy_ignore", "JSON pointers that every test ignores, one per line", type="linelist")
    parser.addini("mcpspy_on_exhausted", "default of on_exhausted: repeat, error")
    parser.addini("mcpspy_strict", "fail tests that do not send every recorded request", type="bool")
    parser.addini("mcpspy_volatile", "assert_matches ignores values that change from run to run", type="bool")
    parser.addini("mcpspy_block_network", "tests may reach only their mock", type="bool")
    parser.addini("mcpspy_allowed_hosts", "HOST:PORT that they may also reach, one per line", type="linelist")
    parser.addini("mcpspy_server", "the real server: a command or a URL", type="args")
    parser.addini(
        "mcpspy_config", "mcpspy.toml with redaction settings for recordings, relative to the rootdir"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_USE] = RecordingUse()
    config.addinivalue_line("markers", MARKER)


@pytest.fixture
def mcp_recording_server() -> list[str] | str | None:
    """The real server of tests whose marker names none: a command or a URL. Override it; used only to record."""
    return None


@pytest.fixture
def mcp_before_record() -> Callable[[dict[str, Any], str], dict[str, Any] | None] | None:
    """A function of tests whose marker names none. It changes or drops messages before they are written; override it.

    It gets a message and its sender, `client` or `server`, and returns the message, or None to drop it.
    """
    return None


@pytest.fixture
def mcp_recording(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[McpRecording]:
    """A recorded MCP server, or the real server while recording: `command`, `url`, `stdio_parameters`."""
    with _started(request, tmp_path_factory, [None]) as recordings:
        yield recordings[None]


@pytest.fixture
def mcp_recordings(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str | None, McpRecording]]:
    """The recordings of a test with several servers, by the names of their markers."""
    with _started(request, tmp_path_factory, None) as recordings:
        yield recordings


@contextmanager
def _started(
    request: pytest.FixtureRequest, factory: pytest.TempPathFactory, names: list[str | None] | None
) -> Iterator[dict[str | None, McpRecording]]:
    """Begin recordings of a test, by name, or those of all its markers with a name; end them."""
    from mcpspy.errors import McpspyError, UsageError
    from mcpspy.ui.pytest_plugin.cassettes import RunRecordings
    from mcpspy.ui.pytest_plugin.fixture import McpRecording
    from mcpspy.ui.pytest_plugin.network import blocking
    from mcpspy.ui.pytest_plugin.options import marked_names, read_options

    error_line = ""
    base = factory.getbasetemp()
    # A worker of pytest-xdist has its own folder in that of the run.
    run = RunRecordings(base.parent if hasattr(request.config, "workerinput") else base)
    recordings: dict[str | None, McpRecording] = {}
    try:
        for name in marked_names(request.node) if names is None else names:
            options = read_options(request, MODES, run, name)
            recordings[name] = McpRecording(options, factory.mktemp("mcpspy"), run)
        if not recordings:
            raise UsageError("mcp_recordings: no recording", 'use @pytest.mark.mcp_recording(name="…")')
        paths = [recording.path for recording in recordings.values() if not recording.is_listing]
        if len(set(paths)) < len(paths):
            raise UsageError(f"{paths[-1].name}: two servers of a test have one recording", "use two paths")
    except McpspyError as error:
        error_line = f"mcpspy: {error}"
    if error_line:
        pytest.fail(error_line, pytrace=False)
    running = request.node.stash.setdefault(_RECORDINGS, [])
    running += recordings.values()
    request.config.stash[_USE].paths.update(map(str, paths))
    with blocking([recording.access for recording in recordings.values()]):
        yield recordings
        errors = []
        for recording in recordings.values():
            running.remove(recording)
            try:
                errors.append(recording.finish())
            except McpspyError as error:
                errors.append(f"mcpspy: {error}")
    if any(errors):
        pytest.fail("\n".join(filter(None, errors)), pytrace=False)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test for unrecorded requests and blocked connections, even if the code under test ignores the errors."""
    recordings = item.stash.get(_RECORDINGS, [])
    try:
        result = yield
    except BaseException:
        if report := _failures(recordings):
            item.add_report_section("call", "mcpspy", report)
        raise
    if report := _failures(recordings):
        pytest.fail(report, pytrace=False)
    return result


def _failures(recordings: list[McpRecording]) -> str:
    return "\n".join(filter(None, [recording.report_failures() for recording in recordings]))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Store the outcome of the test: the recording of a failed test is discarded."""
    report = yield
    if call.when == "teardown":
        return report
    for recording in item.stash.get(_RECORDINGS, []):
        recording.has_passed = call.when == "call" and report.passed
        if not report.passed and (section := recording.report_discarded()):
            report.sections.append(("mcpspy", section))
    return report


class RecordingUse:
    """The recordings that the tests of a run use. Those of the workers of pytest-xdist reach the main process."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.is_whole = True
        """False if a file of tests could not be imported, or was skipped as a whole."""


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if not report.passed:
        collector.config.stash[_USE].is_whole = False
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Store the recordings of the tests before they run: a test that is skipped uses its recording, too."""
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if "mcp_recording" in fixtures or "mcp_recordings" in fixtures:
            from mcpspy.errors import UsageError
            from mcpspy.ui.pytest_plugin.options import used_paths

            use = config.stash[_USE]
            try:
                use.paths.update(map(str, used_paths(item, fixtures)))
            except UsageError:  # The test reports it.
                use.is_whole = False


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the recordings that this worker of pytest-xdist knows of."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        use = session.config.stash[_USE]
        output["mcpspy"] = {"paths": sorted(use.paths), "is_whole": use.is_whole}


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    use = node.config.stash[_USE]
    sent = getattr(node, "workeroutput", {}).get("mcpspy")  # A worker that was killed sends nothing.
    if sent is None:
        use.is_whole = False
    else:
        use.paths.update(sent["paths"])
        use.is_whole = use.is_whole and sent["is_whole"]


def pytest_terminal_summary(terminalreporter: Any, exitstatus: int, config: pytest.Config) -> None:
    """List the recordings that no test uses, after a run of all tests."""
    use = config.stash[_USE]
    is_subset = config.args_source is pytest.Config.ArgsSource.ARGS or any(
        config.getoption(name, None) for name in SELECTING
    )
    if not use.paths or not use.is_whole or is_subset or exitstatus > pytest.ExitCode.TESTS_FAILED:
        return
    from mcpspy.ui.pytest_plugin.cassettes import shown_path, unused

    if found := unused(config.args, use.paths):
        terminalreporter.section("mcpspy: recordings that no test uses")
        for path in found:
            terminalreporter.line(shown_path(path))
