"""Starts a server that has its stdin and stdout, and exits with 0, or with another code.

The server `serves` until stdin is closed, is `late` with its first read, or only `writes` ten lines, 80 ms apart.
"""

import os
import select
import signal
import sys

read, write = os.pipe()
pid = os.fork()
if pid:
    os.write(1, f'{{"pid":{pid}}}\n'.encode())
    os._exit(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
signal.alarm(60)
os.close(write)
os.read(read, 1)  # Its parent has printed, and has exited.
if sys.argv[1] == "writes":
    os.close(0)
    for n in range(10):
        select.select([], [], [], 0.08)
        os.write(1, f'{{"line":{n}}}\n'.encode())
    os._exit(0)
select.select([], [], [], 0.8 if sys.argv[1] == "late" else 0)
while data := os.read(0, 1 << 16):
    os.write(1, data)
