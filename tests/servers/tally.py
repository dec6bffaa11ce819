"""Floods stdout with numbered lines and counts the lines of stdin; at EOF it writes the count to a file.

SIGTERM does not stop it before EOF.
"""

import os
import signal
import sys
import threading


def flood() -> None:
    """Write numbers until the pipe is closed."""
    number = 0
    try:
        while True:
            lines = (b'{"n":%d,"padding":"%b"}\n' % (n, b"s" * 300) for n in range(number, number + 50))
            os.write(1, b"".join(lines))
            number += 50
    except BrokenPipeError:
        pass


signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.alarm(60)
threading.Thread(target=flood, daemon=True).start()
lines = 0
while data := os.read(0, 65536):
    lines += data.count(b"\n")
with open(sys.argv[1], "w", encoding="ascii") as file:
    file.write(str(lines))
os._exit(0)
