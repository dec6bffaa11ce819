"""The pytest plugin: recordings in place of MCP servers.

Holds the option, the settings, the marker and the fixtures, and decides when a test fails. Every pytest of an
environment loads this module, so it imports only pytest; the first test that uses `mcp_recording` imports the rest.

    McpRecording                                     the value of the fixture
    assert_lint_clean(session, ignore=[…])           the session has no protocol violations
    assert_matches(session, recording, ignore=[…])   the session matches the recording
    assert_contract(session, forbid_tools=[…])       the session meets a contract
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mcpspy.ui.pytest_plugin.assertions import assert_contract, assert_lint_clean, assert_matches
    from mcpspy.ui.pytest_plugin.fixture import McpRecording

__all__ = ["McpRecording", "assert_contract", "assert_lint_clean", "assert_matches"]

MODES = ("none", "once", "new_episodes", "all")

MARKER = (
    "mcp_recording(path, mode=, match=, ignore=[], on_exhausted=, strict=, volatile=, server=[], upstream=): "
    "the recording that the fixture mcp_recording serves or creates (mcpspy, docs/pytest.md)"
)

_RECORDING = pytest.StashKey["McpRecording"]()


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
    parser.addini("mcpspy_server", "the real server: a command or a URL", type="args")
    parser.addini(
        "mcpspy_config", "mcpspy.toml with redaction settings for recordings, relative to the rootdir"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)


@pytest.fixture
def mcp_recording_server() -> list[str] | str | None:
    """The real server of tests whose marker names none: a command or a URL. Override it; used only to record."""
    return None


@pytest.fixture
def mcp_recording(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[McpRecording]:
    """A recorded MCP server, or the real server while recording: `command`, `url`, `stdio_parameters`."""
    from mcpspy.errors import McpspyError
    from mcpspy.ui.pytest_plugin.cassettes import RunRecordings
    from mcpspy.ui.pytest_plugin.fixture import McpRecording
    from mcpspy.ui.pytest_plugin.options import read_options

    error_line = ""
    base = tmp_path_factory.getbasetemp()
    # A worker of pytest-xdist has its own folder in that of the run.
    run = RunRecordings(base.parent if hasattr(request.config, "workerinput") else base)
    try:
        recording = McpRecording(read_options(request, MODES, run), tmp_path_factory.mktemp("mcpspy"), run)
    except McpspyError as error:
        error_line = f"mcpspy: {error}"
    if error_line:
        pytest.fail(error_line, pytrace=False)
    request.node.stash[_RECORDING] = recording
    yield recording
    del request.node.stash[_RECORDING]
    try:
        error_line = recording.finish()
    except McpspyError as error:
        error_line = f"mcpspy: {error}"
    if error_line:
        pytest.fail(error_line, pytrace=False)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test for unrecorded requests, even if the code under test ignores the errors."""
    recording = item.stash.get(_RECORDING, None)
    if recording is None:
        return (yield)
    try:
        result = yield
    except BaseException:
        if report := recording.report_unrecorded():
            item.add_report_section("call", "mcpspy", report)
        raise
    if report := recording.report_unrecorded():
        pytest.fail(report, pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Store the outcome of the test: the recording of a failed test is discarded."""
    report = yield
    if call.when != "teardown" and (recording := item.stash.get(_RECORDING, None)) is not None:
        recording.has_passed = call.when == "call" and report.passed
        if not report.passed and (section := recording.report_discarded()):
            report.sections.append(("mcpspy", section))
    return report
