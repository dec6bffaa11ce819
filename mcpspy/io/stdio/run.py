"""`mcpspy run`: wraps a stdio server.

Starts the server first and imports everything else after that. Complete messages are recorded before they are
forwarded. A failure stops the recording, never the traffic.
"""

from __future__ import annotations

import os
import sys

from mcpspy.errors import NOT_FOUND
from mcpspy.io.host_process import parent
from mcpspy.io.recording.recorder import Recorder, say
from mcpspy.io.stdio.base import RunOptions, taps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from mcpspy.core.recording.encode import Value


HOST_PATH = " (a host often has another PATH than your shell: use the absolute path of the program)"


def run(options: RunOptions) -> NoReturn:
    """Start the server, forward until it has exited, and exit in the same way."""
    if sys.platform == "win32":
        from mcpspy.io.stdio import windows as system
    else:
        from mcpspy.io.stdio import process as system

    try:
        child = system.spawn(options.command)
    except OSError as error:
        code, line = system.explain(error, options.command[0])
        program = options.command[0]
        is_name = code == NOT_FOUND and not {"/", "\\", " "} & {*program} and not os.path.isfile(program)
        say(line + HOST_PATH if is_name else line)
        recorder = open_recorder(options)
        recorder.note("error", text=line)
        recorder.finish(code, None)
        os._exit(code)
    recorder = open_recorder(options)
    if sys.platform == "win32":
        from mcpspy.io.stdio.windows import ThreadedPump as Loop
    else:
        from mcpspy.io.stdio.poll_loop import PollLoop as Loop  # Import this after the server has started.
    status = Loop(child, recorder, taps(recorder, options.line_limit), options).run()
    recorder.finish(*system.outcome(status))
    system.leave(status)


def open_recorder(options: RunOptions) -> Recorder:
    """Return the recording of a session, with a note on placeholders that the host did not replace."""
    fields: dict[str, Value] = {
        "transport": "stdio",
        "command": options.command,
        "name": options.session_name,
        "parent": parent(),
    }
    recorder = Recorder(options, fields)
    if recorder.writer is not None:
        from mcpspy.core.unfilled import unfilled

        try:
            if found := unfilled(os.environ, options.command):
                recorder.note("placeholders", **found)
        except Exception as error:
            recorder.broke(error)
    return recorder
