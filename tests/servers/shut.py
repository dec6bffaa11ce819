"""Closes the standard descriptor in its argument (0, 1 or 2), reports it on another, waits for SIGTERM."""

import os
import signal
import sys

signal.alarm(60)
which = int(sys.argv[1])
os.close(which)
os.write(2 if which == 1 else 1, b'{"closed":%d}\n' % which)
while True:
    signal.pause()
