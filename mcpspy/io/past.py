"""What was said before somebody reached into a session, read back from its own recording.

Owns how much is read: the beginning, where the peers introduce themselves, and
the end, where the requests stand that still wait. A bounded part of a file of any size.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcpspy.core.recording.decode import Frame
    from mcpspy.io.recorder import Recorder

HEAD = 1 << 16
"""Bytes of the beginning."""

TAIL = 1 << 18
"""Bytes of the end."""


def frames(recorder: Recorder, since: float) -> Iterator[Frame]:
    """Yield the messages said after `since` seconds, in their order; of a long time the first and the last ones.

    Nothing, if there is no recording, or it cannot be read.
    """
    from mcpspy.core.recording.decode import Frame, read_entry

    if recorder.writer is None or recorder.path is None:
        return
    for line in _lines(recorder.path, recorder.writer.path):
        entry = read_entry(line)
        if isinstance(entry, Frame) and entry.at > since:
            yield entry


def _lines(first: str, current: str) -> Iterator[bytes]:
    """Yield whole lines of the first part's beginning and of the current part's end."""
    try:
        size = os.stat(current).st_size
        if first != current or size > HEAD + TAIL:
            yield from _some(first, 0, HEAD)[1:-1]
            yield from _some(current, max(0, size - TAIL), TAIL)[1:-1]
        else:
            yield from _some(current, 0, size)[1:-1]
    except OSError:  # A device, or a file that somebody has moved: then nothing is known.
        return


def _some(path: str, start: int, size: int) -> list[bytes]:
    """Return the lines; the first may be the header, or the end of one, and the last has not ended."""
    with open(path, "rb") as file:
        file.seek(start)
        return file.read(size).split(b"\n")
