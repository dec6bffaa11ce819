"""Writes numbered lines without end, or as many as its argument. SIGPIPE ends it, like a C program."""

import os
import signal
import sys

signal.signal(signal.SIGPIPE, signal.SIG_DFL)
signal.alarm(60)
last = int(sys.argv[1]) if sys.argv[1:] else sys.maxsize
number = 0
while number < last:
    batch = range(number, min(number + 100, last))
    data = b"".join(b'{"jsonrpc":"2.0","method":"flood","params":{"n":%d}}\n' % n for n in batch)
    while data:
        data = data[os.write(1, data) :]
    number += len(batch)
