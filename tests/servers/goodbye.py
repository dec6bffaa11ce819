"""Prints goodbye on SIGTERM, SIGINT or SIGHUP with all signals of a third of a second, and exits with 3."""

import os
import select
import signal
import sys

read, write = os.pipe()
os.set_blocking(write, False)
signal.set_wakeup_fd(write)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, lambda *_: None)
signal.alarm(60)
os.write(1, f'{{"pid":{os.getpid()}}}\n'.encode())
got = list(os.read(read, 512))
while select.select([read], [], [], 0.3)[0]:
    got += os.read(read, 512)
padding = "x" * int(sys.argv[1]) if sys.argv[1:] else ""
last = b'{"got":[%b],"padding":"%b"}\n' % (",".join(map(str, got)).encode(), padding.encode())
while last:
    last = last[os.write(1, last) :]
sys.exit(3)
