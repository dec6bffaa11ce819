"""Interception of a session whose server is restarted: that of a bridge, for the lines of stdio."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING

from mcpspy.core.recording.encode import frame_prefix, note, oversized, splice
from mcpspy.io.bridge.interception import BridgeInterception

if TYPE_CHECKING:
    from mcpspy.core.intercept.actions import Disconnect
    from mcpspy.core.recording.encode import Value
    from mcpspy.io.intercept.executor import Lines
    from mcpspy.io.recording.recorder import Recorder
    from mcpspy.io.stdio.base import RunOptions


class WatchInterception(BridgeInterception):
    transport = "stdio"

    def __init__(
        self,
        recorder: Recorder,
        options: RunOptions,
        *,
        to_host: Callable[[bytes], None],
        to_server: Callable[[bytes], None],
        is_connected: Callable[[], bool],
        disconnect: Callable[[], None],
    ) -> None:
        """Prepare the interception. `disconnect` ends the session, for a rule."""
        super().__init__(
            recorder,
            options.interception,
            options.session_name,
            to_host=to_host,
            to_server=lambda data, _exchange: to_server(data),
            exchange_for=lambda _data: None,
            is_connected=is_connected,
        )
        self._limit = options.line_limit
        self._disconnect = disconnect
        self._is_watching_stderr = False

    def remove_noise(self, line: bytes, how: str, *, is_torn: bool) -> None:
        """Record a line of the server that is not forwarded; `how` is that of `--stdout-noise`."""
        at = self.now()
        entry = self._entry(at, "server", line, {"to": "mcpspy", **_torn(is_torn)})
        self._recorder.write([*entry, note(at, "noise", {"did": how})])

    def disconnect(self, step: Disconnect) -> None:
        self._disconnect()

    def stderr(self, line: bytes) -> None:
        """Pass a line of the server's stderr to the scripts that have a hook for it."""
        if self._is_watching_stderr:
            self._tell_stderr(line)

    def _watch_stderr(self, *, is_wanted: bool) -> None:
        lines, self._stderr_lines = self._stderr_lines, []
        self._is_watching_stderr = is_wanted
        for line in lines if is_wanted else ():
            self._tell_stderr(line)

    def _entry(self, at: float, side: str, data: bytes, fields: dict[str, Value]) -> Lines:
        """Return the entry of a line without its LF; `"eol": ""` in the fields is an unfinished one."""
        is_torn = "eol" in fields
        fields = {key: value for key, value in fields.items() if key != "eol"}
        if len(data) > self._limit:
            digest = sha256(data).hexdigest()
            return [oversized(at, side, fields, len(data), digest, lacks="newline" if is_torn else "")]
        return list(splice(frame_prefix(side, fields) % at, [data], torn=is_torn))


def _torn(is_torn: bool) -> dict[str, Value]:
    return {"eol": ""} if is_torn else {}


def fields_of(*, by: bool = False, to: bool = False, is_torn: bool = False) -> dict[str, Value]:
    """Return the fields of an entry: sent by mcpspy, kept by mcpspy, unfinished."""
    return {**({"by": "mcpspy"} if by else {}), **({"to": "mcpspy"} if to else {}), **_torn(is_torn)}
