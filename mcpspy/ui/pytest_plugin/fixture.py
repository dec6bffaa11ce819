"""The recording of a test, and the server that stands where the real one stood.

Owns what the fixture gives, and what becomes of what was recorded: everything that is said in a test is recorded
into a folder of its own first, whoever answers. Starts nothing before it is asked for.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

from mcpspy.core.jsontools import pointer
from mcpspy.core.mock.selector import MatchMode
from mcpspy.core.mock.session import MockOptions
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import UsageError
from mcpspy.io.recording.reader import Recording, RecordingState
from mcpspy.ui.pytest_plugin import cassettes
from mcpspy.ui.pytest_plugin.cassettes import recorded, shown_path
from mcpspy.ui.pytest_plugin.misses import unrecorded
from mcpspy.ui.pytest_plugin.options import PluginOptions, redaction_of

if TYPE_CHECKING:
    # Not a dependency of ours: it is there where somebody asks for its parameters.
    from mcp import StdioServerParameters  # type: ignore[import-not-found,unused-ignore]

    from mcpspy.ui.pytest_plugin.servers import ServedEndpoint

MCPSPY = (sys.executable, "-P", "-m", "mcpspy")
"""This mcpspy, wherever a client starts it. -P: what lies in its working folder must not be imported."""

ENDING = 10.0
"""Seconds that a real server gets to end after its client has left: the SDK's client gives it four."""

LOOK = 0.02
"""Seconds between two looks at whether it has."""


class McpRecording:
    """An MCP server for one test: out of the recording, or the real one, recorded."""

    def __init__(self, asked: PluginOptions, folder: Path) -> None:
        self.path = asked.path
        """The recording: a file, which is there, or will be once the test has passed."""
        self.mode = asked.mode
        self.is_anew = asked.is_anew
        """Whether the real server answers, and all it says is recorded. Otherwise the recording answers."""
        self.has_passed = False
        """Whether the test has passed; told by the plugin."""
        self._asked = asked
        self._played = folder / "played"
        self._added = folder / "added"
        self._kept_from = self._played if self.is_anew else self._added
        self._recorded = [] if self.is_anew else recorded(asked.path)
        self._serving: ServedEndpoint | None = None
        self._told = 0
        """Requests that were not recorded and have been told."""

    @property
    def command(self) -> list[str]:
        """The server's command and its arguments, to be started as often as needed."""
        asked = self._asked
        options = ["--record", f"{self._played}/"]
        if asked.config is not None:
            options += ["--config", str(asked.config)]
        if self.is_anew and asked.upstream is not None:
            return [*MCPSPY, "bridge", "--upstream", asked.upstream, *options]
        server = [*asked.server] if self.is_anew else self._mock()
        return [*MCPSPY, "run", *options, "--", *server]

    @property
    def stdio_parameters(self) -> StdioServerParameters:
        """`command` for `mcp.client.stdio.stdio_client`, with the whole environment: a real server may need it."""
        from mcp import StdioServerParameters

        command, *arguments = self.command
        return StdioServerParameters(command=command, args=arguments, env=dict(os.environ))

    @property
    def url(self) -> str:
        """The server's endpoint over HTTP, on loopback; listens from the first time it is asked for."""
        if self._serving is None:
            self._serving = self._serve()
        return self._serving.url

    @property
    def sessions(self) -> list[Path]:
        """What was said in this test so far, a recording for each time that the server was started."""
        return cassettes.sessions(self._played)

    def unrecorded(self) -> str:
        """Return what was asked for and not recorded, for a person; nothing if there is nothing new to tell."""
        if self.is_anew:
            return ""
        asked = self._asked
        ignored = [pointer(text) for text in asked.ignore]
        played = [Recording(path).session() for path in self.sessions]
        found = unrecorded(played, [Recording(path).session() for path in self._recorded], ignored)[
            self._told :
        ]
        if not found:
            return ""
        self._told += len(found)
        what = "1 request" if len(found) == 1 else f"{len(found)} requests"
        return "\n".join(
            [
                f"mcpspy: {what} without an answer in {shown_path(self.path)}",
                *found,
                "to add what is new to the recording (or =all: to record it anew):",
                f"  pytest --mcpspy-record=new_episodes '{sanitize(asked.test)}'",
            ]
        )

    def left_behind(self) -> str:
        """Return where what was recorded in a test that failed is, for a person; nothing if there is none."""
        made = cassettes.sessions(self._kept_from) if self._asked.is_recorded else []
        if not made:
            return ""
        shown = "\n".join(f"  mcpspy show {shown_path(path)}" for path in made)
        return f"not kept as {shown_path(self.path)}, because the test did not pass:\n{shown}"

    def finish(self) -> str:
        """End what was started, and keep what is to be kept; return what is wrong, if anything is."""
        if self._serving is not None:
            self._serving.close()
        told = self.unrecorded()  # A client may go on asking until its own fixture has ended.
        if told or not self.has_passed:
            return told
        if not self._asked.is_recorded:
            return ""
        if not self._has_ended():
            return (
                f"mcpspy: not kept as {shown_path(self.path)}, for its server still runs {ENDING:.0f} s after the test\n"
                "  close the client in the test, or in a fixture that uses mcp_recording"
            )
        served = [path for path in cassettes.sessions(self._kept_from) if cassettes.is_served(path)]
        if served:
            keep = cassettes.replace if self.is_anew else cassettes.add
            keep(served, self.path, redaction_of(self._asked.config))
        return ""

    def _has_ended(self) -> bool:
        """Wait for all that was started to end; return whether it has."""
        until = monotonic() + ENDING
        while any(Recording(path).state is RecordingState.LIVE for path in self.sessions):
            if monotonic() > until:
                return False
            sleep(LOOK)
        return True

    def _mock(self) -> list[str]:
        asked = self._asked
        options = ["--match", asked.match, "--on-exhausted", asked.on_exhausted]
        for text in asked.ignore:
            options += ["--ignore", text]
        server: list[str] = []
        if asked.is_recorded:
            options += ["--on-miss", "forward", "--append", f"{self._added}/"]
            if asked.upstream is not None:
                options += ["--upstream", asked.upstream]
            else:
                server = ["--", *asked.server]
        return [*MCPSPY, "mock", *options, *map(str, self._recorded), *server]

    def _serve(self) -> ServedEndpoint:
        """Listen. The imports are not at the top: a test on stdio should not wait for aiohttp."""
        from mcpspy.ui.pytest_plugin.servers import MockedRecordings, ServedEndpoint, real

        asked = self._asked
        redaction = redaction_of(asked.config)
        if not self.is_anew:
            behind = real(asked.server, asked.upstream, f"{self._added}/") if asked.is_recorded else None
            answering = MockOptions(
                match=MatchMode(asked.match),
                repeats=asked.on_exhausted == "repeat",
                forwards=behind is not None,
            )
            ignored = [pointer(text) for text in asked.ignore]
            return ServedEndpoint(
                MockedRecordings(self._recorded, ignored, answering, behind), self._played, redaction
            )
        if asked.upstream is None:
            raise UsageError(
                f"{asked.test}: url records from a server that speaks HTTP, and {asked.server[0]} is a command",
                "name it with upstream=; once it is recorded, from a command too, url serves it",
            )
        return ServedEndpoint(asked.upstream, self._played, redaction)
