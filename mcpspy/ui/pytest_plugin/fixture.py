"""The value of the fixture `mcp_recording`: the recorded server, or the real server while recording.

Records every message of a test into a temporary folder, and moves new sessions to the recording at the end. Starts
nothing before the test uses it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

from mcpspy.core.jsontools import pointer
from mcpspy.core.mock.delivery import PROGRESS_GAP
from mcpspy.core.mock.selector import MatchMode
from mcpspy.core.mock.steering import MockOptions
from mcpspy.core.recording.origin import PYTEST
from mcpspy.core.sanitize import sanitize
from mcpspy.io.mock.loader import RecordingsLoader
from mcpspy.io.recording.reader import Recording, RecordingState, read_header_of
from mcpspy.ui.pytest_plugin import cassettes
from mcpspy.ui.pytest_plugin.before_record import write_changed
from mcpspy.ui.pytest_plugin.cassettes import RunRecordings, recorded, shown_path
from mcpspy.ui.pytest_plugin.misses import unrecorded, unsent
from mcpspy.ui.pytest_plugin.network import Address, NetworkAccess
from mcpspy.ui.pytest_plugin.options import PluginOptions, redaction_of

if TYPE_CHECKING:
    # Not a dependency of mcpspy: only tests that use the SDK read `stdio_parameters`.
    from mcp import StdioServerParameters  # type: ignore[import-not-found,unused-ignore]

    from mcpspy.core.mock.answer_rules import AnswerRules
    from mcpspy.ui.pytest_plugin.servers import ServedEndpoint

MCPSPY = (sys.executable, "-P", "-m", "mcpspy")
"""The command of this mcpspy. -P: modules in the client's working folder must not be imported."""

SEED = "0"
"""The seed of values that are generated from a listing, for both transports: the default of `mcpspy mock --seed`."""

END_TIMEOUT = 10.0
"""Seconds for a real server to end after its client disconnects: the SDK's client waits four."""

END_POLL = 0.02
"""Seconds between two checks for its end."""


class McpRecording:
    """An MCP server for one test: the recorded server, or the real server while recording."""

    def __init__(self, options: PluginOptions, folder: Path, run: RunRecordings | None = None) -> None:
        """Record into `folder`, a new one. `run` knows what other tests recorded; None if there are none.

        Raises UsageError or CannotStart for a file that is not a recording.
        """
        self.path = options.path
        """The file of the recording; a new recording exists only after the test has passed."""
        self.mode = options.mode
        self.volatile = options.volatile
        """True if `assert_matches` ignores values that change from run to run."""
        self.records_all = options.records_all
        """True if the real server responds and is recorded, False if the recording is served."""
        self.is_listing = options.listing is not None
        """True if a listing is served in place of the recording."""
        self.has_passed = False
        """True after the test has passed; set by the plugin."""
        self._options = options
        self._records = options.records
        """True if sessions are kept. Options are read once: another worker may write the recording meanwhile."""
        self._run = RunRecordings(folder) if run is None else run
        self._played = folder / "played"
        self._added = folder / "added"
        self._new_folder = self._played if self.records_all else self._added
        self._changed = folder / "changed"
        self._recorded = options.recordings()
        # Not later, when it would be an error inside of pytest.
        for path in self._recorded:
            read_header_of(path)
        self._rules = self._read_rules()
        self._serving: ServedEndpoint | None = None
        self.access = NetworkAccess(
            is_blocked=options.block_network,
            is_open=options.records,
            allowed=options.allowed_hosts,
            is_own=self._is_own,
        )
        """The addresses that the test may reach, for `network.blocking`."""
        self._reported = 0
        """Number of unrecorded requests that have been reported."""

    @property
    def command(self) -> list[str]:
        """The server's command and its arguments; a test may start it several times."""
        options = self._options
        arguments = ["--record", f"{self._played}/", "--origin", PYTEST]
        if options.config is not None:
            arguments += ["--config", str(options.config)]
        if self.records_all and options.upstream is not None:
            return [*MCPSPY, "bridge", "--upstream", options.upstream, *arguments]
        server = [*options.server] if self.records_all else self._mock()
        return [*MCPSPY, "run", *arguments, "--", *server]

    @property
    def stdio_parameters(self) -> StdioServerParameters:
        """`command` for `mcp.client.stdio.stdio_client`, with the whole environment: a real server may need it."""
        from mcp import StdioServerParameters

        command, *arguments = self.command
        return StdioServerParameters(command=command, args=arguments, env=dict(os.environ))

    @property
    def url(self) -> str:
        """The server's HTTP endpoint on loopback; the first access starts the listener."""
        if self._serving is None:
            self._serving = self._serve()
        return self._serving.url

    @property
    def sessions(self) -> list[Path]:
        """The sessions of this test so far: one recording per start of the server."""
        return cassettes.sessions(self._played)

    def report_failures(self) -> str:
        """Return a report of blocked connections and of new unrecorded requests; empty without any."""
        return "\n".join(filter(None, [self.access.report(), self.report_unrecorded()]))

    def report_unrecorded(self) -> str:
        """Return a report of new unrecorded requests; empty without any."""
        if self.records_all:
            return ""
        options = self._options
        ignored = [pointer(text) for text in options.ignore]
        played = [Recording(path).session() for path in self.sessions]
        known = [Recording(path).session() for path in self._recorded]
        found = unrecorded(played, known, ignored)[self._reported :]
        if not found:
            return ""
        self._reported += len(found)
        count = "1 request" if len(found) == 1 else f"{len(found)} requests"
        if options.is_written:
            files = [*filter(None, [options.listing]), *options.fixtures, *self._recorded]
            return "\n".join(
                [f"mcpspy: {count} without a response in {', '.join(map(shown_path, files))}", *found]
            )
        return "\n".join(
            [
                f"mcpspy: {count} without a recorded response in {shown_path(self.path)}",
                *found,
                "to add new requests to the recording (=all: to record all of it again):",
                f"  pytest --mcpspy-record=new_episodes '{sanitize(options.test)}'",
            ]
        )

    def report_unsent(self) -> str:
        """Return a report of the recorded requests that the test did not send; empty unless it is strict."""
        options = self._options
        if self.records_all or not options.strict:
            return ""
        ignored = [pointer(text) for text in options.ignore]
        loader = RecordingsLoader(self._recorded, ignored, merge=False, rules=self._rules)
        played = [Recording(path).session() for path in self.sessions]
        found = unsent(played, loader.recordings(), MatchMode(options.match))
        if not found:
            return ""
        count = "1 recorded request was" if len(found) == 1 else f"{len(found)} recorded requests were"
        return "\n".join([f"mcpspy: strict: {count} not sent", *(f"  {line}" for line in found)])

    def report_discarded(self) -> str:
        """Return the paths of the sessions of a failed test; empty without any."""
        discarded = cassettes.sessions(self._new_folder) if self._records else []
        if not discarded:
            return ""
        commands = "\n".join(f"  mcpspy show {shown_path(path)}" for path in discarded)
        return f"not saved as {shown_path(self.path)}, because the test did not pass:\n{commands}"

    def finish(self) -> str:
        """End the server, and save the recording of a test that passed; return an error, or an empty string."""
        if self._serving is not None:
            self._serving.close()
        report = self.report_failures()  # A client may send requests until its own fixture has ended.
        if report or not self.has_passed:
            return report
        if report := self.report_unsent():
            return report
        if not self._records:
            return ""
        if not self._has_ended():
            return (
                f"mcpspy: not saved as {shown_path(self.path)}: its server still runs {END_TIMEOUT:.0f} s after the test\n"
                "  close the client in the test, or in a fixture that uses mcp_recording"
            )
        new = cassettes.sessions(self._new_folder)
        if (change := self._options.before_record) is not None:
            self._changed.mkdir(exist_ok=True)
            kept = [path for path in new if write_changed(path, self._changed / path.name, change)]
            if new and not kept:
                return (
                    f"mcpspy: not saved as {shown_path(self.path)}: before_record dropped every message\n"
                    "  return the message, or None to drop it"
                )
            new = [self._changed / path.name for path in kept]
        served = [path for path in new if cassettes.is_served(path)]
        if served:
            self._save(served)
        return ""

    def _is_own(self, address: Address) -> bool:
        """Return whether this is the address of the listener, or it is this listener that connects to it."""
        return self._serving is not None and self._serving.is_own(address)

    def _read_rules(self) -> AnswerRules | None:
        """Return the rules of the listing and the fixtures; None without them. Raises UsageError or CannotStart."""
        options = self._options
        if not options.is_written:
            return None
        from mcpspy.io.mock.listing import rules_of

        listing = None if options.listing is None else str(options.listing)
        return rules_of(listing, [*map(str, options.fixtures)], self._recorded, seed=SEED, find=Path)

    def _save(self, served: list[Path]) -> None:
        """Write sessions to the recording: in place of what was there before this run, beside what it has written.

        Without a recording at the start of the test (mode once), one that exists by now is of another worker.
        """
        redaction = redaction_of(self._options.config)
        ignored = [pointer(text) for text in self._options.ignore]
        with self._run.writing(self.path) as is_shared:
            existing = recorded(self.path)
            if self.records_all and self.mode == "all" and not is_shared:
                cassettes.replace(served, self.path, redaction)
            elif not self.records_all:
                cassettes.add(served, self.path, redaction)
            elif new := cassettes.missing(served, existing, ignored):
                cassettes.add(new, self.path, redaction)

    def _has_ended(self) -> bool:
        """Wait for all servers to end; return whether they did."""
        until = monotonic() + END_TIMEOUT
        while any(Recording(path).state is RecordingState.LIVE for path in self.sessions):
            if monotonic() > until:
                return False
            sleep(END_POLL)
        return True

    def _mock(self) -> list[str]:
        options = self._options
        arguments = ["--match", options.match, "--on-exhausted", options.on_exhausted]
        for text in options.ignore:
            arguments += ["--ignore-path", text]
        if options.listing is not None:
            arguments += ["--from-listing", str(options.listing), "--seed", SEED]
        for path in options.fixtures:
            arguments += ["--fixtures", str(path)]
        server: list[str] = []
        if options.records:
            arguments += ["--on-miss", "forward", "--record", f"{self._added}/", "--origin", PYTEST]
            if options.upstream is not None:
                arguments += ["--upstream", options.upstream]
            else:
                server = ["--", *options.server]
        return [*MCPSPY, "mock", *arguments, *map(str, self._recorded), *server]

    def _serve(self) -> ServedEndpoint:
        """Start the listener. The imports are not at the top: a test on stdio does not wait for aiohttp."""
        from mcpspy.io.client import ServerCommand
        from mcpspy.ui.pytest_plugin.servers import MockSettings, ServedEndpoint, real

        options = self._options
        redaction = redaction_of(options.config)
        if not self.records_all:
            upstream = real(options.server, options.upstream, f"{self._added}/") if options.records else None
            answering = MockOptions(
                match=MatchMode(options.match),
                repeats=options.on_exhausted == "repeat",
                forwards=upstream is not None,
                gap=PROGRESS_GAP,
            )
            ignored = [pointer(text) for text in options.ignore]
            return ServedEndpoint(
                MockSettings(self._recorded, ignored, answering, upstream, self._rules),
                self._played,
                redaction,
            )
        source = ServerCommand([*options.server]) if options.upstream is None else options.upstream
        return ServedEndpoint(source, self._played, redaction)
