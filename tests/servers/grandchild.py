"""Exits with 5 and leaves a process behind that keeps its stdout and stderr open.

The process left behind is `silent`, `chatty` (a line every 10 ms) or a `flood`.
"""

import os
import select
import signal
import sys

os.write(2, b"last words on stderr\n")
read, write = os.pipe()
pid = os.fork()
if pid:
    os.write(1, f'{{"grandchild":{pid}}}\n'.encode())
    os._exit(5)
signal.alarm(60)
os.close(write)
os.read(read, 1)  # Its parent has printed, and has exited.
while sys.argv[1] == "silent":
    signal.pause()
pause, padding = (0.01, 0) if sys.argv[1] == "chatty" else (0, 2000)
while True:
    select.select([], [], [], pause)
    os.write(1, b'{"still":"here%s"}\n' % (b"x" * padding))
