"""Writes N bytes of lines and ends at once: with an exit code, or by a signal."""

import os
import signal
import sys

how, size = sys.argv[1], int(sys.argv[2])
data = b"".join(b'{"last":%07d}\n' % n for n in range(size // 17))
while data:
    data = data[os.write(1, data) :]
if how.isdigit():
    os._exit(int(how))
number = getattr(signal, how)
if number != signal.SIGKILL:
    signal.signal(number, signal.SIG_DFL)
os.kill(os.getpid(), number)
